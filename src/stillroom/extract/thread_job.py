"""One claimed thread: extract it, write the end of its job, say how it ended. Whatever happens to it stays with it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from errno import EBUSY

import msgspec

from stillroom.config import OFFLINE, Settings
from stillroom.errors import AccessRefused, ModelError, RolloutError, SpendingCapped, StillroomError
from stillroom.extract.engine import Engine, Extracted, Opened, RulesEngine, redactor
from stillroom.extract.once import rest_of, told_before
from stillroom.extract.outcome import Busy, Capped, Failed, LostLease, NoOutput, Skipped, ThreadOutcome, WithOutput
from stillroom.extract.reading import thread_read
from stillroom.stopping import Stop, Stopped
from stillroom.store import Store
from stillroom.store.records import Stage1Claim, ThreadRead
from stillroom.thread import MemoryMode, Thread

_log = logging.getLogger(__name__)

ExtractThread = Callable[[Stage1Claim, Stop], ThreadOutcome]
"""Does a job from its first byte to its end in the store. Blocking."""


def extract_thread(
    claim: Stage1Claim, stop: Stop, *, settings: Settings, store: Store, engine: Engine
) -> ThreadOutcome:
    """Blocking: all of a job in one thread. Never raises."""
    try:
        return _extract(claim, stop, settings=settings, store=store, engine=engine)
    except Stopped:
        return LostLease(thread_id=claim.thread_id)
    except SpendingCapped as capped:
        return hand_back(claim, str(capped), store=store)
    except RolloutError as error:
        reason = str(error)
        if isinstance(error.__cause__, OSError) and error.__cause__.errno == EBUSY:
            _release(claim, store=store)
            return Busy(thread_id=claim.thread_id, reason=redactor(settings)(reason))
    except AccessRefused as error:
        return refuse(claim, stop, redactor(settings)(told(error)), settings=settings, store=store)
    except ModelError as error:
        failed = fail(claim, redactor(settings)(str(error)), settings=settings, store=store)
        return _with_fallback(failed, claim, stop, settings=settings, store=store)
    except StillroomError as error:
        reason = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001  # a fault of ours on one session must not take the others with it
        _log.exception("thread %s could not be extracted", claim.thread_id)
        reason = f"{type(error).__name__}: {error}"
    return fail(claim, redactor(settings)(reason), settings=settings, store=store)


def hand_back(claim: Stage1Claim, reason: str, *, store: Store) -> Capped:
    """Leave the thread to a later pass, because nothing more may be spent in this one."""
    _release(claim, store=store)
    return Capped(thread_id=claim.thread_id, reason=reason)


def refuse(claim: Stage1Claim, stop: Stop, reason: str, *, settings: Settings, store: Store) -> ThreadOutcome:
    """Leave the thread, with all its tries, until the provider takes the key; the offline engine's result serves
    meanwhile."""
    _release(claim, store=store)
    failed = Failed(thread_id=claim.thread_id, reason=reason, refused=True)
    return _with_fallback(failed, claim, stop, settings=settings, store=store)


def _with_fallback(
    failed: Failed | LostLease, claim: Stage1Claim, stop: Stop, *, settings: Settings, store: Store
) -> Failed | LostLease:
    """Have the offline engine do what the model did not, unless there is what a model made before."""
    if isinstance(failed, LostLease):
        return failed
    try:
        there = store.outputs.get(claim.thread_id)
        if there is not None and (there.engine != OFFLINE or there.source_updated_at >= claim.source_updated_at):
            return msgspec.structs.replace(failed, fallback=there.engine == OFFLINE)
        engine = RulesEngine(settings, redact=redactor(settings), forgotten=store.forgetting.exchange_check())
        session = _open(claim.thread_id, settings, store, engine, stop)
        draft = session.extract().draft if isinstance(session, Opened) else None
        used = draft is not None and store.extraction.save_fallback(claim, draft)
    except (StillroomError, Stopped) as error:
        _log.warning("the offline engine could not do thread %s either: %s", claim.thread_id, error)
        return failed
    return msgspec.structs.replace(failed, fallback=used)


def told(error: StillroomError) -> str:
    """Its words, and what to do about it."""
    return f"{error} (hint: {error.hint})" if error.hint else str(error)


def fail(claim: Stage1Claim, reason: str, *, settings: Settings, store: Store) -> Failed | LostLease:
    """Mark the job (`reason` is redacted); if even that fails, the lease runs out by itself."""
    delay = settings.stage_one.retry_delay_seconds
    try:
        held = store.extraction.fail(claim, reason=reason, retry_delay_seconds=delay)
    except StillroomError as error:
        _log.warning("the failure of thread %s could not be recorded: %s", claim.thread_id, error)
        held = True
    return Failed(thread_id=claim.thread_id, reason=reason) if held else LostLease(thread_id=claim.thread_id)


def _release(claim: Stage1Claim, *, store: Store) -> None:
    """As if it had not been claimed."""
    try:
        store.extraction.release(claim)
    except StillroomError as error:
        _log.warning("thread %s could not be handed back: %s", claim.thread_id, error)


def _extract(claim: Stage1Claim, stop: Stop, *, settings: Settings, store: Store, engine: Engine) -> ThreadOutcome:
    stop.check()
    session = _open(claim.thread_id, settings, store, engine, stop)
    if isinstance(session, LostLease):
        return session
    if session is None:
        _release(claim, store=store)
        return Skipped(thread_id=claim.thread_id, reason="it was switched off since it was claimed")
    read = thread_read(session.read, session.unknown) if isinstance(session, Opened) else None
    try:
        found = session.extract() if isinstance(session, Opened) else session
    except (ModelError, SpendingCapped):
        if read is not None:  # true whatever became of the request
            store.reads.save(claim.thread_id, read)
        raise
    return _finish(claim, found, read, store, engine)


def _open(
    thread_id: str, settings: Settings, store: Store, engine: Engine, stop: Stop
) -> Opened | Skipped | LostLease | None:
    """The session, read, or why nothing may come of it; None: a person does not want it any more."""
    thread = store.threads.get(thread_id)
    if thread is None:
        return LostLease(thread_id=thread_id)  # deleted after it was claimed
    if thread.memory_mode != "enabled":
        return None  # a backfill takes hours: much may be switched off meanwhile
    told = told_before(thread, store, stage=settings.stage_one)
    if told is not None and told.items == told.of:
        return Skipped(thread_id=thread_id, reason=f"word for word what `{told.thread_id}` says")
    session = engine.open(rest_of(thread, told), stop=stop)
    recorded = session.memory_mode
    if recorded is None or recorded == thread.memory_mode or _learn_mode(store, thread, recorded):
        return session
    store.reads.save(thread_id, thread_read(session.read, session.unknown))
    outside = "it took in words of the web or of an MCP server (`memories.disable_on_external_context`)"
    reason = outside if recorded == "polluted" else "the session says that it must not be remembered"
    return Skipped(thread_id=thread_id, reason=reason)


def _learn_mode(store: Store, thread: Thread, recorded: MemoryMode) -> bool:
    """Keep what the session's own later metadata says, unless the user said otherwise here, which counts."""
    stamp = store.threads.file_stamps(thread.agent).get(thread.rollout_path)
    if stamp is None:
        return recorded == "enabled"
    store.threads.save([(msgspec.structs.replace(thread, memory_mode=recorded), stamp)])
    found = store.threads.get(thread.thread_id)
    return found is not None and found.memory_mode == "enabled"


def _finish(
    claim: Stage1Claim, found: Extracted | Skipped, read: ThreadRead | None, store: Store, engine: Engine
) -> ThreadOutcome:
    """Write the end of the job."""
    draft = found.draft if isinstance(found, Extracted) else None
    reason = found.reason if isinstance(found, Skipped) else None
    finished = store.extraction.finish(claim, draft, engine=engine.name, prompt=engine.prompt, reason=reason, read=read)
    if not finished:
        return LostLease(thread_id=claim.thread_id)
    if isinstance(found, Skipped):
        return found
    kind = NoOutput if draft is None else WithOutput
    return kind(thread_id=claim.thread_id, usage=found.usage, read=found.read, cut=found.cut)
