"""What code makes of stage-1 outputs: `raw_memories.md`, `rollout_summaries/*.md` (spec §1.7), byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from stillroom.pattern import late
from stillroom.workspace.tree import Entry, blob_id

if TYPE_CHECKING:  # names of files and folders are asked for where no database is
    from stillroom.store.records import Stage1Output

RAW_MEMORIES = "raw_memories.md"
SUMMARIES = "rollout_summaries"

_RAW_TITLE = "# Raw Memories"
_SECTION = late(r"^## Thread `(.*)`\nupdated_at: ", re.MULTILINE)
_SLUG_CHARACTERS = 60
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HASH_SPACE = len(_ALPHABET) ** 4
_UUID = late(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}")
_SUMMARY = late(rf"{SUMMARIES}/\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-zA-Z]{{4}})(?:-[^/]*)?\.md")
_NOT_IN_SLUG = late(r"[^0-9a-zA-Z]")
#: The last second that a four-digit year can say.
_LAST_SECOND = 253_402_300_799


class Artifact(NamedTuple):
    """A file that code writes."""

    data: bytes
    entry: Entry


def is_written_by_code(path: str) -> bool:
    """Whether `sync` decides what is at a path, or that nothing is."""
    return path == RAW_MEMORIES or (path.startswith(f"{SUMMARIES}/") and path.endswith(".md"))


def summary_stem(thread_id: str, source_updated_at: int, slug: str | None) -> str:
    """`<timestamp>-<hash>[-<slug>]`: the same for the same thread, whatever happens to it later."""
    seconds = source_updated_at
    number = _uuid_number(thread_id)
    if number is not None and (number >> 76) & 0xF == 7 and (number >> 62) & 3 == 2:
        seconds = (number >> 80) // 1000
    stem = f"{_stem_time(seconds)}-{_hash(thread_id, number)}"
    tail = _slug(slug or "")
    return f"{stem}-{tail}" if tail else stem


def hash_in_name(path: str) -> str | None:
    """The `thread_hash` that the path of a summary has; None if it has a name of another form."""
    named = _SUMMARY.fullmatch(path)
    return named and named[1]


def thread_hash(thread_id: str) -> str:
    """The four characters that stand for a thread in the names of its summaries, whatever else is in them."""
    return _hash(thread_id, _uuid_number(thread_id))


def _uuid_number(thread_id: str) -> int | None:
    return int(thread_id.replace("-", ""), 16) if _UUID.fullmatch(thread_id) else None


def _hash(thread_id: str, number: int | None) -> str:
    seed = 0
    if number is not None:
        seed = number & 0xFFFFFFFF
    else:
        for byte in thread_id.encode("utf-8", "surrogatepass"):
            seed = (seed * 31 + byte) & 0xFFFFFFFF
    return _base62(seed % _HASH_SPACE)


def raw_memories_text(outputs: Sequence[Stage1Output]) -> str:
    """All raw memories in one file, ascending by thread id."""
    return _raw_memories_text(_stems(outputs))


def _raw_memories_text(named: Sequence[tuple[Stage1Output, str]]) -> str:
    if not named:
        return f"{_RAW_TITLE}\n\nNo raw memories yet.\n"
    parts = [f"{_RAW_TITLE}\n\nMerged stage-1 raw memories (stable ascending thread-id order):\n\n"]
    parts += [
        f"## Thread `{_line(output.thread_id)}`\n"
        f"updated_at: {_iso(output.source_updated_at)}\n"
        f"cwd: {_line(output.cwd)}\n"
        f"rollout_path: {_line(output.rollout_path)}\n"
        f"rollout_summary_file: {stem}.md\n\n"
        f"{output.raw_memory.strip()}\n\n"
        for output, stem in named
    ]
    return "".join(parts)


def raw_sections(text: str) -> Iterator[tuple[str, str]]:
    """The sections of a `raw_memories.md`, each with its thread's id as it stands there."""
    found = list(_SECTION.finditer(text)) if text.startswith(_RAW_TITLE) else []
    ends = [*(match.start() for match in found[1:]), len(text)][: len(found)]
    for match, end in zip(found, ends, strict=True):
        yield match[1], text[match.start() : end]


def summary_text(output: Stage1Output) -> str:
    """One thread's summary under the lines that say where it comes from."""
    branch = "" if output.git_branch is None else f"git_branch: {_line(output.git_branch)}\n"
    return (
        f"thread_id: {_line(output.thread_id)}\n"
        f"updated_at: {_iso(output.source_updated_at)}\n"
        f"rollout_path: {_line(output.rollout_path)}\n"
        f"cwd: {_line(output.cwd)}\n"
        f"{branch}\n{output.rollout_summary}\n"
    )


def render(outputs: Sequence[Stage1Output]) -> dict[str, Artifact]:
    """Every file that code makes of the outputs, by path."""
    named = _stems(outputs)
    texts = {f"{SUMMARIES}/{stem}.md": summary_text(output) for output, stem in named}
    texts[RAW_MEMORIES] = _raw_memories_text(named)
    return {path: _artifact(text) for path, text in texts.items()}


def _stems(outputs: Sequence[Stage1Output]) -> list[tuple[Stage1Output, str]]:
    """Every output with its stem, ascending by thread id. Two threads of one stem: the later id gets a number."""
    named: list[tuple[Stage1Output, str]] = []
    taken: set[str] = set()
    for output in sorted(outputs, key=lambda output: output.thread_id):
        stem = first = summary_stem(output.thread_id, output.source_updated_at, output.rollout_slug)
        number = 2
        while stem in taken:
            stem = f"{first}-{number}"
            number += 1
        taken.add(stem)
        named.append((output, stem))
    return named


@lru_cache(maxsize=8192)  # of each output it is written twice
def _iso(seconds: int) -> str:
    return _moment(seconds).isoformat()


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), UTC)


def _stem_time(seconds: int) -> str:
    return _iso(seconds)[:19].replace(":", "-")


def _base62(number: int) -> str:
    number, last = divmod(number, 62)
    number, third = divmod(number, 62)
    first, second = divmod(number, 62)
    return _ALPHABET[first] + _ALPHABET[second] + _ALPHABET[third] + _ALPHABET[last]


def _slug(text: str) -> str:
    return _NOT_IN_SLUG.sub("_", text[:_SLUG_CHARACTERS]).rstrip("_").lower()


def _line(text: str) -> str:
    """A header value can't begin another header."""
    return text if text.isprintable() else " ".join(text.splitlines())


def _artifact(text: str) -> Artifact:
    data = text.encode("utf-8", "replace")
    return Artifact(data, Entry(blob_id(data), False))
