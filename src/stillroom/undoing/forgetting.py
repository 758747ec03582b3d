"""Forgets sessions for good: what was made of them, what rests on them alone, and every copy of it on this machine.

    plan = plan_forgetting(settings, store, choice, now=…)  # shows what goes; nothing is changed
    report = forget(settings, store, plan)

The sessions' own files belong to their agents and are never touched, unless they were recorded into Stillroom's home.
Only hashes stay, by which the sessions are known if they come again. Killed at any point, the next `forget` or pass
finishes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from stillroom.config import Settings
from stillroom.errors import RolloutError
from stillroom.sessions.dedup import exchanges
from stillroom.sessions.readers import open_thread
from stillroom.store import Store
from stillroom.thread import Thread
from stillroom.undoing import unfinished
from stillroom.undoing.cleaning import Cleaning, clean, settle
from stillroom.undoing.planning import Line, Plan, Preview, count_lines, own_recordings, preview_of
from stillroom.undoing.purging import Purge
from stillroom.undoing.residue import Left, residue
from stillroom.undoing.traces import Finder
from stillroom.undoing.unfinished import Forgetting
from stillroom.wording import many
from stillroom.workspace.history import History
from stillroom.workspace.journal import Checkpoint, nothing
from stillroom.workspace.layout import EXTENSIONS, HANDBOOK, LINES, SUMMARY
from stillroom.workspace.tree import opened, parent, write_new

#: Of one session: 32 kB of hashes.
_MAX_EXCHANGES = 2000
#: Of a longer session's file only so much is read.
_WHOLE_BYTES = 64 * 1024 * 1024
_FOLDER = f"{EXTENSIONS}/forgotten"
_INSTRUCTIONS = f"{_FOLDER}/instructions.md"


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What went, and what is left."""

    threads: int
    lines: int
    files: int
    #: Contents in the history that are different now.
    old_contents: int
    undecided: tuple[Line, ...] = ()
    #: Files that somebody kept changing meanwhile.
    restless: tuple[str, ...] = ()
    #: Where something of it is still to be found.
    left: tuple[Left, ...] = ()
    #: Another process reads an old state of the database.
    log_in_use: bool = False

    @property
    def is_complete(self) -> bool:
        return not (any(each.kind != "said" for each in self.left) or self.log_in_use or self.restless)


def forget(settings: Settings, store: Store, plan: Plan, *, checkpoint: Checkpoint = nothing) -> Forgotten:
    """Carry the plan out. For whoever works alone (`undoing.alone`)."""
    settle(settings)
    unfinished.begin(settings.home, plan.work)
    checkpoint("begun")
    return finish_forgetting(settings, store, plan.work, preview=plan.preview, checkpoint=checkpoint)


def finish_forgetting(
    settings: Settings,
    store: Store,
    work: Forgetting,
    *,
    preview: Preview | None = None,
    checkpoint: Checkpoint = nothing,
) -> Forgotten:
    """Do all of it, whatever of it is done already. Without the `preview` that a person saw, one is made of what is
    left to do."""
    finder = Finder(work.traces)
    # 1. The database first: from now on no pass learns it again, nor what a fork repeats of it.
    said = [digest for thread in work.threads for digest in _exchanges(settings, thread)]  # read before it is locked
    store.forgetting.keep_exchanges(said)
    store.forgetting.forget(
        work.threads, finder.text_without, may_change=lambda text: finder.may_be_in(text.encode("utf-8", "replace"))
    )
    checkpoint("database cleaned")
    for path in own_recordings(settings, work.threads):
        path.unlink()
    checkpoint("recordings deleted")
    # 2. The folder and everything beside it. Summaries first: the handbook's record speaks of their lines.
    purge = Purge(finder)
    if preview is None:
        gone, dropped, unsure = preview_of(settings, work.traces)
        preview = Preview(threads=(), lines=tuple(dropped), files=tuple(gone), undecided=tuple(unsure))
    _learn_keys(settings, purge)
    cleaning = Cleaning(
        content=purge.data,
        line=lambda line: "" if finder.is_traced(line) else line,
        is_gone=finder.names_in,
        message=f"Forget {many(len(work.threads), 'session')}",
        now=work.at,
    )
    done = clean(settings, cleaning, checkpoint=checkpoint)
    if settings.root.is_dir() and (preview.files or preview.lines or done.folder.written or done.folder.deleted):
        _ask_next_consolidation(settings, preview.undecided, now=work.at)
    # 3. Free pages and the write-ahead log; then what says what is to be forgotten.
    emptied = store.compact()
    checkpoint("database written anew")
    unfinished.end(settings.home)
    checkpoint("ended")
    # 4. Believe nothing: look.
    left = residue(settings, lambda data: count_lines(finder, data), with_own=False)
    return Forgotten(
        threads=len(work.threads),
        lines=len(preview.lines),
        files=len(preview.files),
        old_contents=done.history.contents,
        undecided=preview.undecided,
        restless=done.folder.restless,
        left=tuple(left),
        log_in_use=not emptied,
    )


def _exchanges(settings: Settings, thread: Thread) -> list[bytes]:
    """What was said in it, as hashes; nothing if its file is gone."""
    try:
        is_long = Path(thread.rollout_path).stat().st_size > _WHOLE_BYTES
        stop = _WHOLE_BYTES if is_long else None
        with open_thread(thread, max_line_bytes=settings.stage_one.max_line_bytes, stop_after_bytes=stop) as items:
            return exchanges(items, limit=_MAX_EXCHANGES)
    except (OSError, RolloutError):
        return []


def _learn_keys(settings: Settings, purge: Purge) -> None:
    """Of every version of the record, the summary and the handbook, and of those that there are."""
    found: dict[str, list[bytes]] = {LINES: [], SUMMARY: [], HANDBOOK: []}
    history = History(settings.history, limits=settings.stage_two)
    if settings.history.exists() and history.repository.loads():
        paths = {blob: path for blob, path in history.repository.blob_paths().items() if path in found}
        history.repository.visit(lambda name, _, data: found[paths[name]].append(data), ids=paths)
    present = {path: _present(settings.root / path) for path in found}
    for data in (*found[LINES], present[LINES]):
        purge.learn_record(data)
    for data in (present[SUMMARY], *found[SUMMARY]):
        purge.data(data)
    purge.learn_handbooks(present[HANDBOOK], found[HANDBOOK])


def _present(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""


def _ask_next_consolidation(settings: Settings, lines: Iterable[Line], *, now: int) -> None:
    """Leave a resource of an extension: it has the folder consolidated once more, and goes by itself after a week."""
    moment = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(now))
    listed = [f"- {line.path}: {line.text.strip()}\n" for line in lines] or ["None is known.\n"]
    text = f"# Lines to check\n\n{''.join(listed)}"
    instructions = Path(__file__).with_name("forgotten_instructions.md").read_bytes()
    with opened(settings.root) as root:
        for path, data in ((_INSTRUCTIONS, instructions), (f"{_FOLDER}/resources/{moment}-check.md", text.encode())):
            try:
                with parent(root, path, create=True) as (folder, name):
                    write_new(folder, name, data, executable=False, durable=False)
            except FileExistsError:
                continue


__all__ = ["Forgotten", "finish_forgetting", "forget"]
