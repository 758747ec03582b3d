"""What full-text search can find: what was extracted of each session, and the files that people and agents wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from stillroom.config import LOOKUP, Lookup
from stillroom.errors import NotFound, RecallError
from stillroom.lanes import Quarantined, admit
from stillroom.recall.browse.note_names import NOTES
from stillroom.recall.browse.paths import opened_path, read_text
from stillroom.recall.browse.walk import Walk
from stillroom.recall.fulltext.index import Origin, Passage
from stillroom.store import Store
from stillroom.store.records import OutputStamp
from stillroom.workspace.artifacts import SUMMARIES, summary_stem

HANDBOOK = "MEMORY.md"
#: `memory_summary.md` says again what these say, `raw_memories.md` and `rollout_summaries/` what the sessions' do.
_PLACES = (HANDBOOK, "skills", NOTES)
_THREAD, _FILE = "thread:", "file:"
_HEADING = re.compile(r"^# +(.*)$", re.MULTILINE)
_SCOPE = re.compile(r"^applies_to: *cwd=(/[^;\n]*)", re.MULTILINE)


def origins(store: Store | None, root: Path, *, limits: Lookup = LOOKUP) -> dict[str, Origin]:
    """Everything that there is to find now."""
    found = {name: Origin(stamp, partial(_file_passages, root, name, limits)) for name, stamp in file_stamps(root)}
    if store is not None:
        for stamp in store.outputs.stamps():
            load = partial(_thread_passages, store, stamp.thread_id, limits)
            found[f"{_THREAD}{stamp.thread_id}"] = Origin(_stamp(stamp), load)
    return found


def file_stamps(root: Path) -> list[tuple[str, str]]:
    """The files that are searched, and how they look. A folder that can't be used is an error, a missing one is not."""
    walk = Walk()
    found: list[tuple[str, str]] = []
    for place in _PLACES:
        try:
            for path, node in walk.files(root, place):
                if path.endswith(".md"):
                    found.append((f"{_FILE}{path}", f"{node.size}-{node.mtime_ns}"))
        except NotFound:
            continue
    return found


def thread_of(origin: str) -> str | None:
    """The thread that a passage was extracted from."""
    return origin.removeprefix(_THREAD) if origin.startswith(_THREAD) else None


def _stamp(stamp: OutputStamp) -> str:
    return f"{stamp.source_updated_at}-{stamp.generated_at}-{stamp.cwd}".encode("utf-8", "replace").decode()


def _thread_passages(store: Store, thread_id: str, limits: Lookup) -> Iterator[Passage]:
    output = store.outputs.get(thread_id)
    if output is not None:
        # What only a tool or the web said is no memory, not even for those who look for it.
        summary, memory = (admit(text, _nothing) for text in (output.rollout_summary, output.raw_memory))
        yield Passage(
            title=_first_words(summary) or output.rollout_slug or "",
            body=f"{summary}\n\n{memory}"[: limits.max_passage_chars],
            path=f"{SUMMARIES}/{summary_stem(thread_id, output.source_updated_at, output.rollout_slug)}.md",
            cwd=output.cwd,
            updated_at=output.source_updated_at,
        )


def _nothing(line: Quarantined) -> bool:
    return False


def _file_passages(root: Path, name: str, limits: Lookup) -> Iterator[Passage]:
    path = name.removeprefix(_FILE)
    try:
        with opened_path(root, path) as node:
            text, updated_at = read_text(node, path, max_bytes=limits.max_file_bytes), node.mtime_ns // 1_000_000_000
    except RecallError:
        return  # gone since, or no text
    for start, end in _parts(text) if path == HANDBOOK else [(0, len(text))]:
        body = text[start:end]
        scope = _SCOPE.search(body) if path == HANDBOOK else None
        yield Passage(
            title=_first_words(body),
            body=body[: limits.max_passage_chars],
            path=path,
            line=text.count("\n", 0, start) + 1,
            cwd=scope[1].strip() if scope else None,
            updated_at=updated_at,
        )


def _parts(text: str) -> list[tuple[int, int]]:
    """The task groups of the handbook; what stands before the first one is a part too."""
    starts = sorted({0, *(heading.start() for heading in _HEADING.finditer(text))})
    return [
        (start, end) for start, end in zip(starts, [*starts[1:], len(text)], strict=True) if text[start:end].strip()
    ]


def _first_words(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip(" #-=`")), "")
    return line.lstrip("# ").removeprefix("Task Group:").strip()[:200]
