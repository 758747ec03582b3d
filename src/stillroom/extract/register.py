"""Learn which threads there are: every source is looked at, what is new or changed goes into the store."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import assert_never

import msgspec

from stillroom.config import Settings
from stillroom.extract.engine import redactor
from stillroom.extract.own_sessions import OwnFolders
from stillroom.extract.places import settle
from stillroom.homes import HOMES
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.sessions.discovery import Broken, Discovery, Found, Unchanged
from stillroom.sessions.discovery import refreshed as refreshes_none
from stillroom.sessions.readers import reader_of
from stillroom.store import Store
from stillroom.thread import FileStamp, Thread

_REPORT_EVERY = 200


class RegisterReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the scan of all sources showed."""

    found: int = 0  #: new or changed
    unchanged: int = 0
    missing: int = 0  #: gone since the last scan
    broken: tuple[Broken, ...] = ()
    #: A person had them forgotten: they are passed over in every pass.
    forgotten: int = 0

    @property
    def total(self) -> int:
        """Session files that are there."""
        return self.found + self.unchanged + len(self.broken) + self.forgotten


async def register_threads(
    settings: Settings, store: Store, *, on_progress: ProgressListener = silent
) -> RegisterReport:
    """Scan the sources and save what is new, in one transaction. An unchanged file costs one `stat`.

    A source that is not there has no threads; a file that can't be understood is in the report.
    """
    loop = asyncio.get_running_loop()

    def listen(progress: Progress) -> None:
        loop.call_soon_threadsafe(on_progress, progress)

    return await asyncio.to_thread(_register, settings, store, listen)


def _register(settings: Settings, store: Store, listen: ProgressListener) -> RegisterReport:
    report = RegisterReport()
    for agent in HOMES:
        report = _register_agent(agent, settings, store, report, listen)
    listen(Progress(stage="scan", done=report.total, total=report.total))
    return report


def _register_agent(
    agent: str, settings: Settings, store: Store, before: RegisterReport, listen: ProgressListener
) -> RegisterReport:
    """Register the threads of one agent; those under a root that is no source any more are missing."""
    roots = [Path(source.root).expanduser() for source in settings.sources if source.format == agent]
    roots = [root for root in roots if os.path.lexists(root)]
    known, clean = store.threads.file_stamps(agent), _Cleaner(settings)
    found: list[tuple[Thread, FileStamp]] = []
    unchanged: set[str] = set()
    broken: list[Broken] = []
    for number, discovery in enumerate(_discover(agent, roots, known, settings), before.total + 1):
        match discovery:
            case Found(thread, stamp):
                found.append((clean.thread(thread), stamp))
            case Unchanged(path):
                unchanged.add(path)
            case Broken():
                broken.append(discovery)
            case _:
                assert_never(discovery)
        if number % _REPORT_EVERY == 0:
            listen(Progress(stage="scan", done=number))
    forgotten = _save(settings, store, found, known)
    if unchanged:
        _refresh(agent, roots, store, clean, unchanged, known)
    present = unchanged | {thread.rollout_path for thread, _ in found} | {file.path for file in broken}
    return RegisterReport(
        found=before.found + len(found) - forgotten,
        forgotten=before.forgotten + forgotten,
        unchanged=before.unchanged + len(unchanged),
        missing=before.missing + store.threads.mark_missing(agent, present),
        broken=(*before.broken, *(Broken(file.path, clean.redact(file.reason)) for file in broken)),
    )


def _discover(
    agent: str, roots: Iterable[Path], known: Mapping[str, FileStamp], settings: Settings
) -> Iterator[Discovery]:
    for root in roots:
        yield from reader_of(agent).discover(root, known, max_line_bytes=settings.stage_one.max_line_bytes)


def _save(
    settings: Settings, store: Store, found: list[tuple[Thread, FileStamp]], known: Mapping[str, FileStamp]
) -> int:
    """How many of them are passed over."""
    if not found:
        return 0
    threads, copies, before = settle(found, store)
    forgotten = store.threads.save(threads)
    if copies:
        store.threads.save_copies(copies)
    if not settings.memories.generate_memories:
        # Off means: threads that begin from now on stay out. Those that were known before go on.
        for thread, _ in threads:
            if thread.rollout_path not in known and thread.thread_id not in before:
                store.threads.set_memory_mode(thread.thread_id, "disabled")
    return forgotten


def _refresh(
    agent: str,
    roots: Iterable[Path],
    store: Store,
    clean: _Cleaner,
    unchanged: set[str],
    known: Mapping[str, FileStamp],
) -> None:
    """Save what an agent changed of its threads without touching their files."""
    refreshed = reader_of(agent).refreshed
    if refreshed is refreshes_none:  # most: thousands of rows need not be read for it
        return
    stored = [
        thread for thread in store.threads.newest(limit=sys.maxsize, agent=agent) if thread.rollout_path in unchanged
    ]
    # What is stored is redacted: compared with what the agent has it would differ in every pass.
    before = {thread.thread_id: thread for thread in stored}
    for root in roots:
        told = map(clean.thread, refreshed(root, stored))
        if changed := [(thread, known[thread.rollout_path]) for thread in told if before[thread.thread_id] != thread]:
            store.threads.save(changed)


class _Cleaner:
    """What is kept and shown of a thread."""

    def __init__(self, settings: Settings) -> None:
        self.redact = redactor(settings)
        self._own = OwnFolders(settings)

    def thread(self, thread: Thread) -> Thread:
        """Without secrets. Paths stay: files are opened and folders compared by them."""
        texts = {name: getattr(thread, name) for name in ("title", "preview", "git_branch", "git_origin_url")}
        clean = {name: self.redact(text) for name, text in texts.items() if text}
        return self._own.told(msgspec.structs.replace(thread, **clean))
