"""The state database: its file, its leases, the sessions that it knows, and the clock that it was written by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import msgspec

from stillroom.clock import Clock
from stillroom.config import DatabaseLimits, Settings
from stillroom.errors import StoreError, WorkspaceError
from stillroom.insight.doctor.finding import Found, found, ok
from stillroom.store import Store
from stillroom.store.health import examine
from stillroom.store.jobs import HeldJob
from stillroom.store.leases import STAGE1, is_leased
from stillroom.undoing.alone import alone
from stillroom.wording import span

#: Who asks what is wrong should hear of a lock, not wait for it.
_BUSY_TIMEOUT_MS = 500
#: Clocks of two machines that share a home differ by less.
_CLOCK_SLACK_SECONDS = 300
_GONE = "the process that worked on it was killed"


def check_database(settings: Settings, clock: Clock) -> Iterator[Found]:
    """The file itself, and then what is in it, if it can be read. Changes nothing but what is mended."""
    path = settings.database
    if not path.exists():
        yield found("database", "note", "there is none yet", where=str(path), remedy="stillroom run --backfill")
        return
    limits = msgspec.structs.replace(settings.database_limits, busy_timeout_ms=_BUSY_TIMEOUT_MS)
    try:
        wrong = list(_file(settings, limits))
        yield from wrong
        if any(each.finding.severity == "error" for each in wrong):
            return
        with Store.open(path, clock=clock, limits=limits) as store:
            yield from _leases(settings, store, clock)
            yield from _sessions(store)
            yield from _clock(store, clock)
    except StoreError as error:
        yield found("database", "error", str(error), where=str(path), remedy=error.hint)


def _file(settings: Settings, limits: DatabaseLimits) -> Iterator[Found]:
    path = str(settings.database)
    health = examine(settings.database, limits=limits)
    anew = f"mv '{path}' '{path}.damaged'; stillroom run --backfill"
    if not health.is_ours:
        what = "it is the database of another program"
        yield found("database", "error", what, where=path, remedy="export STILLROOM_HOME=…  # a folder of its own")
    elif health.schema_version > health.known_version:
        what = f"schema version {health.schema_version}; this Stillroom knows {health.known_version}"
        yield found("database", "error", what, where=path, remedy="pip install --upgrade stillroom")
    elif health.damage:
        yield found("database", "error", f"it is damaged: {health.damage[0]}", where=path, remedy=anew)
    elif health.missing:
        what = f"it lacks {', '.join(health.missing[:3])} of its schema"
        yield found("database", "error", what, where=path, remedy=anew)
    elif health.broken_references:
        what = f"{health.broken_references:,} rows name a row that is not there"
        yield found("database", "warning", what, where=path, remedy=anew)
    else:
        yield ok("database", f"whole, schema version {health.schema_version}", where=path)


def _leases(settings: Settings, store: Store, clock: Clock) -> Iterator[Found]:
    """A pass holds a lock for as long as it works: where nobody holds it, whoever has a job was killed."""
    held = store.jobs.running()
    if not held:
        yield ok("leases", "none is held")
        return
    try:
        with alone(settings.home, wait_seconds=0):
            stuck = store.jobs.running()
    except WorkspaceError:
        now = clock.now()
        stuck = [each for each in held if not is_leased(each.job, now=now)]
        if len(stuck) < len(held):
            yield ok("leases", f"{len(held) - len(stuck):,} held by a pass that is at work")
    for each in stuck:
        until = f", lease until {_moment(each.job.lease_until)}" if is_leased(each.job, now=clock.now()) else ""
        worker = each.job.worker_id or "nobody"
        yield found(
            "leases",
            "warning",
            f"{_called(each)}: {_GONE} ({worker}{until})",
            where=str(settings.database),
            remedy="stillroom doctor --fix  # or wait for the lease to run out",
            mend=partial(_end, settings, store, each),
        )


def _end(settings: Settings, store: Store, held: HeldJob) -> str:
    with alone(settings.home, wait_seconds=0):
        ended = store.jobs.end(held, reason=_GONE)
    return "it may be claimed again at once" if ended else "somebody else has it by now"


def _called(held: HeldJob) -> str:
    return f"extraction of {held.job_key}" if held.kind == STAGE1 else "consolidation"


def _sessions(store: Store) -> Iterator[Found]:
    missing, extracted = store.threads.count_missing()
    if not missing:
        yield ok("sessions", "the files of all known ones were there at the last look")
        return
    never = f"; {missing - extracted:,} of them were never extracted" if missing > extracted else ""
    what = f"the files of {missing:,} known ones are gone{never}. What was learnt of the others stays"
    yield found("sessions", "note", what, remedy="stillroom threads")


def _clock(store: Store, clock: Clock) -> Iterator[Found]:
    ahead = store.newest_moment() - clock.now()
    if ahead <= _CLOCK_SLACK_SECONDS:
        yield ok("clock", "nothing was written in the future")
        return
    what = f"something was written {span(ahead)} ahead of it: it was set back since, or is wrong now"
    yield found("clock", "warning", what, remedy="date -u  # is that the time? leases and pauses mend themselves")


def _moment(at: int | None) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at or 0))


__all__ = ["check_database"]
