"""Learn which threads there are: every source is looked at, what is new or changed goes into the store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import assert_never

import msgspec

from stillroom.clock import Clock
from stillroom.config import Settings, Source
from stillroom.extract.engine import Redact, redactor
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.rollouts.agents import codex
from stillroom.rollouts.agents.codex_state import State, refreshed, state_threads
from stillroom.rollouts.found import Broken, Discovery, Found, Unchanged
from stillroom.store import Store
from stillroom.thread import FileStamp, Thread

_REPORT_EVERY = 200


class RegisterReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the scan of all sources showed."""

    found: int = 0  #: new or changed
    unchanged: int = 0
    missing: int = 0  #: gone since the last scan
    broken: tuple[Broken, ...] = ()

    @property
    def total(self) -> int:
        """Session files that are there."""
        return self.found + self.unchanged + len(self.broken)


async def register_threads(
    settings: Settings, store: Store, clock: Clock, *, on_progress: ProgressListener = silent
) -> RegisterReport:
    """Scan the sources and save what is new, in one transaction. An unchanged file costs one `stat`.

    A source that is not there has no threads; a file that can't be understood is in the report.
    """
    loop = asyncio.get_running_loop()

    def listen(progress: Progress) -> None:
        loop.call_soon_threadsafe(on_progress, progress)

    return await asyncio.to_thread(_register, settings, store, listen)


def _register(settings: Settings, store: Store, listen: ProgressListener) -> RegisterReport:
    known, redact = store.file_stamps(codex.AGENT), redactor(settings)
    found: list[tuple[Thread, FileStamp]] = []
    unchanged: set[str] = set()
    broken: list[Broken] = []
    states = {home: state_threads(home) for home in _homes(settings.sources)}
    for number, discovery in enumerate(_discover(settings, states, known), 1):
        match discovery:
            case Found(thread, stamp):
                found.append((_clean(thread, redact), stamp))
            case Unchanged(path):
                unchanged.add(path)
            case Broken():
                broken.append(discovery)
            case _:
                assert_never(discovery)
        if number % _REPORT_EVERY == 0:
            listen(Progress(stage="scan", done=number))
    _save(settings, store, found, known)
    if unchanged:
        _refresh(settings, store, states.values(), unchanged, known)
    present = unchanged | {thread.rollout_path for thread, _ in found} | {file.path for file in broken}
    report = RegisterReport(
        found=len(found),
        unchanged=len(unchanged),
        missing=store.forget_missing(codex.AGENT, present),
        broken=tuple(_redacted(broken, settings)),
    )
    listen(Progress(stage="scan", done=report.total, total=report.total))
    return report


def _discover(settings: Settings, states: Mapping[Path, State], known: Mapping[str, FileStamp]) -> Iterator[Discovery]:
    for home, state in states.items():
        yield from codex.discover(home, known, state=state, max_line_bytes=settings.stage_one.max_line_bytes)


def _homes(sources: Iterable[Source]) -> Iterator[Path]:
    for source in sources:
        match source.format:
            case "codex":
                yield Path(source.root).expanduser()
            case _:
                assert_never(source.format)


def _save(
    settings: Settings, store: Store, found: list[tuple[Thread, FileStamp]], known: Mapping[str, FileStamp]
) -> None:
    if found:
        store.save_threads(found)
    if not settings.memories.generate_memories:
        # Off means: threads that begin from now on stay out. Those that were known before go on.
        for thread, _ in found:
            if thread.rollout_path not in known:
                store.set_memory_mode(thread.thread_id, "disabled")


def _refresh(
    settings: Settings,
    store: Store,
    states: Iterable[State],
    unchanged: set[str],
    known: Mapping[str, FileStamp],
) -> None:
    """Codex may change its table of threads (mode, title, archived) without touching the rollout."""
    redact = redactor(settings)
    stored = [thread for thread in store.threads(limit=sys.maxsize) if thread.rollout_path in unchanged]
    for state in states:
        # What is stored is redacted: compared with what Codex has it would differ in every pass.
        before = {thread.thread_id: thread for thread in stored}
        clean = (_clean(thread, redact) for thread in refreshed(state, stored))
        if changed := [(thread, known[thread.rollout_path]) for thread in clean if before[thread.thread_id] != thread]:
            store.save_threads(changed)


def _clean(thread: Thread, redact: Redact) -> Thread:
    """Without secrets in what is stored and shown. Paths stay: files are opened and folders compared by them."""
    texts = {name: getattr(thread, name) for name in ("title", "preview", "git_branch", "git_origin_url")}
    return msgspec.structs.replace(thread, **{name: redact(text) for name, text in texts.items() if text})


def _redacted(broken: list[Broken], settings: Settings) -> Iterator[Broken]:
    redact = redactor(settings)
    for file in broken:
        yield Broken(file.path, redact(file.reason))
