"""One thread of any agent, found by its id or the beginning of it, as the text of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Literal, TypeVar, assert_never

import msgspec

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.errors import RecordingError, RolloutError
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.recording.exporting.atif import atif
from stillroom.recording.exporting.codex import codex
from stillroom.recording.exporting.markdown import markdown
from stillroom.recording.exporting.pieces import pieces
from stillroom.recording.originator import program_of, recorded_by
from stillroom.recording.rollout_file import last_total
from stillroom.rollouts.redact import redact
from stillroom.sessions.discovery import Found
from stillroom.sessions.item import Item
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.spending import Usage
from stillroom.store import Store
from stillroom.thread import Thread, meant_by

ExportFormat = Literal["atif", "codex", "markdown"]
# Threads that an ambiguous beginning is told with.
_TOLD = 5
_REPORT_EVERY = 500
_T = TypeVar("_T")


def find_thread(settings: Settings, text: str, *, clock: Clock) -> Thread:
    """The thread of this id, or the only one whose id begins so. Raises `RecordingError` with what there is instead.

    Threads of the state database, and what was recorded here since the last pass.
    """
    found: list[Thread] = []
    if settings.database.exists():
        with Store.look(settings.database, clock=clock, limits=settings.database_limits) as store:
            found = store.threads.beginning(text, limit=_TOLD + 1)
    if not found:
        found = _recorded_here(settings, text)
    meant = meant_by(text, (thread.thread_id for thread in found))
    if len(meant) == 1:
        return next(thread for thread in found if thread.thread_id == meant[0])
    if not found:
        raise RecordingError(
            f"no thread has an id that begins with `{text}`",
            hint="`stillroom run` looks for new sessions; `stillroom threads` lists those that are known",
        )
    names = ", ".join(f"`{thread.thread_id}`" for thread in found[:_TOLD])
    more = ", …" if len(found) > _TOLD else ""
    raise RecordingError(f"`{text}` is the beginning of several ids: {names}{more}", hint="give more of the id")


def export_thread(
    settings: Settings,
    thread: Thread,
    *,
    format: ExportFormat,
    max_chars: int | None = None,
    on_progress: ProgressListener = silent,
) -> Iterator[bytes]:
    """The thread in parts, without secrets, at constant memory. Raises `RecordingError` if it can't be read.

    Nothing is cut, but what a reader of session files cuts: blobs, and lines over 8 MiB. `max_chars` cuts the middle of
    every longer message and result; a rollout is never cut.
    """

    def clean(text: str) -> str:
        return redact(text, style=settings.memories.redaction)

    texts = {name: getattr(thread, name) for name in ("title", "preview", "git_branch", "git_origin_url")}
    thread = msgspec.structs.replace(thread, **{name: clean(text) for name, text in texts.items() if text})
    try:
        with open_thread(thread, max_line_bytes=settings.stage_one.max_line_bytes) as stream:
            first = next(iter(stream), None)  # the file has told whose it is by then
            agent, version = program_of(thread, stream.decoder)
            thread = msgspec.structs.replace(thread, cli_version=version)
            items: Iterable[Item] = _told(chain([first] if first else [], stream), on_progress)
            match format:
                case "atif":
                    used = last_total(Path(thread.rollout_path)) if recorded_by(stream.decoder) else Usage()
                    yield from atif(thread, pieces(items, redact=clean, max_chars=max_chars), agent=agent, used=used)
                case "codex":
                    yield from codex(thread, items, agent=agent, redact=clean)
                case "markdown":
                    yield from markdown(thread, pieces(items, redact=clean, max_chars=max_chars), agent=agent)
                case _:
                    assert_never(format)
    except RolloutError as error:
        raise RecordingError(str(error), hint="was the session moved, or deleted by its client?") from error


def _recorded_here(settings: Settings, text: str) -> list[Thread]:
    found = reader_of("stillroom").discover(settings.home, {}, max_line_bytes=settings.stage_one.max_line_bytes)
    threads = (each.thread for each in found if isinstance(each, Found))
    return [thread for thread in threads if thread.thread_id.startswith(text)]


def _told(items: Iterable[_T], listen: ProgressListener) -> Iterator[_T]:
    count = 0
    for count, item in enumerate(items, 1):
        yield item
        if count % _REPORT_EVERY == 0:
            listen(Progress(stage="export", done=count))
    listen(Progress(stage="export", done=count, total=count))


__all__ = ["ExportFormat", "export_thread", "find_thread"]
