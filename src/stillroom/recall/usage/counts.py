"""Counts how memory is used, from what the agents recorded: no hook has to run, and nothing counts twice.

What counts, and why, is in `docs/decisions/0004-what-counts-as-use.md`.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from stillroom import telemetry
from stillroom.clock import Clock
from stillroom.config import CITING, Citing, Settings
from stillroom.errors import RolloutError
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.recall.usage.citations import MemoryCitation, parse_memory_citation
from stillroom.recall.usage.cited_lines import CitedLines
from stillroom.recall.usage.uses import Cited, Folder, Looked, ThreadUses, handed_in, read_uses
from stillroom.rollouts.redact import redact
from stillroom.sessions.discovery import Broken
from stillroom.sessions.readers import reader_of
from stillroom.store import Store
from stillroom.store.records import RecordedUse, Use
from stillroom.thread import FileStamp, Thread

_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: What is told of a citation: enough for a path.
_TOLD_CHARS = 200
_REPORT_EVERY = 100


class Invalid(msgspec.Struct, frozen=True, kw_only=True):
    """Something cited that does not count."""

    #: The session that cites it; None: nobody said which.
    thread_id: str | None
    #: `MEMORY.md:9-2`, or the id of a thread.
    cited: str
    reason: str


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a search for uses of memory showed. Everything in it is new: no earlier search found it."""

    searched: int = 0  #: sessions
    left: int = 0  #: sessions for the next pass
    bytes: int = 0
    citing: int = 0  #: messages that cite memory
    counted: int = 0  #: uses of a memory by a message
    reads: dict[str, int] = {}  #: commands that read or searched memory, by kind
    invalid: tuple[Invalid, ...] = ()  #: the first ones
    invalid_total: int = 0
    broken: tuple[Broken, ...] = ()
    duration_ms: int = 0


class CitationReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a citation that somebody handed in."""

    counted: tuple[str, ...] = ()  #: threads whose memory counts as used, by this or by a message that says the same
    invalid: tuple[Invalid, ...] = ()


def count_usage(
    settings: Settings,
    store: Store,
    clock: Clock,
    *,
    on_progress: ProgressListener = silent,
    citing: Citing = CITING,
) -> UsageReport:
    """Search every session that is new or changed, and count what it used. Blocking; called in a thread.

    Safe at any time and in many processes: each use is recorded once. A session that can't be read is in the report,
    and tried again by the next pass.
    """
    return _Count(settings, store, clock, citing).run(on_progress)


def record_citation(
    settings: Settings, store: Store, clock: Clock, *, thread_id: str | None, citation: MemoryCitation | str
) -> CitationReceipt:
    """Count a citation that an agent hands in, now. Every call is a use of its own; where the same citation stands in
    the session's messages too, it is not counted once more."""
    found = parse_memory_citation(citation) if isinstance(citation, str) else citation
    if found is None:
        return CitationReceipt()
    count = _Count(settings, store, clock, CITING)
    thread = store.threads.get(thread_id) if thread_id else None
    times = (clock.now(), thread.created_at_ms // 1000) if thread else (clock.now(),)
    use = count.judged(handed_in(found, at=clock.now()), thread_id, times)
    count.account(store.uses.record(thread_id or "", [use]), thread_id)
    return CitationReceipt(counted=tuple(count.counted), invalid=tuple(count.invalid))


class _Count:
    """One search, and what it adds up to."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, citing: Citing) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._citing = citing
        self._lines = CitedLines(settings.root, settings.history, limits=settings.stage_two, citing=citing)
        variables = {"HOME": str(Path.home()), "STILLROOM_HOME": str(settings.home)}
        self._folder = Folder(str(settings.root), variables)
        self._citing_messages = 0
        self._reads: Counter[str] = Counter()
        self._invalid_total = 0
        self.invalid: list[Invalid] = []
        self.counted: list[str] = []

    def run(self, on_progress: ProgressListener) -> UsageReport:
        started = time.perf_counter()
        due = self._store.uses.unsearched()
        unused: list[tuple[str, FileStamp]] = []
        broken: list[Broken] = []
        searched, total = 0, 0
        for number, (thread, stamp) in enumerate(due):
            if total > self._citing.max_search_bytes or time.perf_counter() - started > self._citing.max_search_seconds:
                break
            if number % _REPORT_EVERY == 0:
                on_progress(Progress(stage="usage", done=number, total=len(due)))
            try:
                uses = ThreadUses() if _is_memory_worker(thread) else self._read(thread)
            except RolloutError as error:
                broken.append(Broken(thread.rollout_path, redact(str(error))))
                continue
            searched, total = searched + 1, total + uses.read_bytes
            if uses.cited or uses.looked:
                self._record(thread, stamp, uses)
            else:
                unused.append((thread.thread_id, stamp))
            if len(unused) >= self._citing.searched_per_transaction:
                self._store.uses.mark_searched(unused)
                unused.clear()
        if unused:
            self._store.uses.mark_searched(unused)
        on_progress(Progress(stage="usage", done=len(due), total=len(due)))
        return UsageReport(
            searched=searched,
            left=len(due) - searched - len(broken),
            bytes=total,
            citing=self._citing_messages,
            counted=len(self.counted),
            reads=dict(sorted(self._reads.items())),
            invalid=tuple(self.invalid),
            invalid_total=self._invalid_total,
            broken=tuple(broken),
            duration_ms=round((time.perf_counter() - started) * 1000),
        )

    def _read(self, thread: Thread) -> ThreadUses:
        """What the session used. What others used is looked for only where it could make a difference."""
        read = partial(read_uses, thread, self._folder, stage=self._settings.stage_one, now=self._clock.now())
        uses = read(quick=True)
        if reader_of(thread.agent).COPIES and uses.keys - self._store.uses.known(thread.thread_id):
            return read()
        return uses

    def _record(self, thread: Thread, stamp: FileStamp, uses: ThreadUses) -> None:
        # What is known is not looked up again: the folder has changed since.
        known = self._store.uses.known(thread.thread_id)
        # Counted elsewhere: in the session whose lines this one begins with, or when the agent handed it in.
        elsewhere = self._store.uses.known(uses.origin) if uses.origin else set()
        elsewhere |= {cited.key for cited in uses.cited if (cited.twin, cited.nth) in known}
        new = [cited for cited in uses.cited if cited.key not in known]
        looked = {use.key: use for use in uses.looked if use.key not in known}
        started = thread.created_at_ms // 1000
        judged = [
            self.judged(cited, thread.thread_id, (started, cited.at)) if cited.key not in elsewhere else _use(cited)
            for cited in new
        ]
        judged += (_use(use, () if key in elsewhere else use.kinds) for key, use in looked.items())
        recorded = self._store.uses.record(thread.thread_id, judged, stamp=stamp)
        own = [done for done in recorded if done.use.key not in elsewhere and not done.again]
        self.account(own, thread.thread_id)
        for done in own:
            if (use := looked.get(done.use.key)) is not None:
                for kind in use.kinds:
                    self._reads[kind] += 1
                    telemetry.count("memories.usage", kind=kind, tool=use.tool, success=_told(use.success))

    def judged(self, cited: Cited, thread_id: str | None, times: Iterable[int]) -> Use:
        """The use that a citation is. One whose entries all fail has nothing to count."""
        entries, ids = cited.citation.entries, tuple(dict.fromkeys(map(_canonical, cited.citation.rollout_ids)))
        valid = 0
        for entry in entries[: self._citing.max_entries_per_message]:
            problem = self._lines.problem(entry, at=times)
            if problem is None:
                valid += 1
            else:
                self._refuse(thread_id, f"{entry.path}:{entry.line_start}-{entry.line_end}", problem)
        allowed = self._citing.max_ids_per_message
        for unread in ids[allowed:]:
            self._refuse(thread_id, unread, f"more than {allowed} threads in one message")
        return _use(cited, ids[:allowed] if valid or not entries else ())

    def account(self, recorded: Iterable[RecordedUse], thread_id: str | None) -> None:
        """Add up the citations among them."""
        for done in recorded:
            if done.use.kind == "citation":
                self._citing_messages += 1
                self.counted += done.counted
                for unknown in (name for name in done.use.used if name not in done.counted):
                    self._refuse(thread_id, unknown, "no memory of such a thread")

    def _refuse(self, thread_id: str | None, cited: str, reason: str) -> None:
        self._invalid_total += 1
        if len(self.invalid) < self._citing.invalid_told:
            told = redact("".join(char if char.isprintable() else "?" for char in cited[: 2 * _TOLD_CHARS]))
            self.invalid.append(Invalid(thread_id=thread_id, cited=told[:_TOLD_CHARS], reason=reason))


def _use(found: Cited | Looked, used: tuple[str, ...] = ()) -> Use:
    kind: Literal["citation", "command"] = "citation" if isinstance(found, Cited) else "command"
    twin = found.twin if isinstance(found, Cited) else None
    return Use(kind=kind, digest=found.digest, nth=found.nth, at=found.at, used=used, twin=twin)


def _is_memory_worker(thread: Thread) -> bool:
    """A session of the pipeline itself reads memory in order to write it."""
    return "internal" in thread.source or "memory_consolidation" in thread.source


def _canonical(name: str) -> str:
    return name.lower() if _ID.fullmatch(name) else name


def _told(success: bool | None) -> str:
    return "unknown" if success is None else "true" if success else "false"
