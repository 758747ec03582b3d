"""Take one file of another agent's sessions into Stillroom's own home: each thread once, redacted, under its own id."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import BinaryIO, assert_never

import msgspec

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.errors import RecordingError, RolloutError, StoreError, way_out
from stillroom.homes import Format
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.recording.ingest_place import TEMPORARY, Place, alone_in
from stillroom.recording.ingested import Ingested, IngestReport, LeftOut, Refused
from stillroom.recording.lines import Redact, encoded, item_payload, line, meta_payload, usage_payload
from stillroom.recording.names import check_thread_id, file_id, private_folders, rollout_path
from stillroom.recording.originator import Program, program_of, recorded_by
from stillroom.recording.rollout_file import last_total
from stillroom.rollouts.redact import redact
from stillroom.sessions.discovery import Broken, Found, Unchanged
from stillroom.sessions.meta import Git
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.sessions.stats import ReadStats
from stillroom.spending import Usage
from stillroom.store import Store
from stillroom.thread import Thread

#: In `session_meta`: which format the thread was read from. Without it a rollout was recorded here as it happened.
MARK = "ingested_from"
_REPORT_EVERY = 500
_COMPARED_BYTES = 1024 * 1024


def ingest_file(
    settings: Settings,
    path: Path,
    *,
    format: Format,
    clock: Clock,
    cwd: str | None = None,
    on_progress: ProgressListener = silent,
) -> IngestReport:
    """Read every thread in the file `path` and keep it as a redacted rollout under `settings.home`.

    A thread that was taken in before is written anew only if the file tells more of it, or other things; so the same
    file again changes nothing, and neither does an earlier copy of it. `cwd` is where the threads worked, whatever the
    file says. Memory stays constant, the file itself is only read, and an interruption leaves every rollout as it was.
    Raises `RecordingError` if nothing can be read or written at all.
    """
    path = path.absolute()
    if not path.is_file():
        if not path.exists():
            raise RecordingError(f"`{path}` is not there")
        raise RecordingError(f"`{path}` is no file", hint="a folder of sessions is read by every pass: `[[sources]]`")
    reader = reader_of(format)
    threads: list[Ingested] = []
    refused: list[Refused] = []
    try:
        with alone_in(settings, clock) as place:
            for discovery in reader.discover(path, {}, max_line_bytes=settings.stage_one.max_line_bytes):
                match discovery:
                    case Found(thread, _):
                        outcome = _ingest(settings, thread, place, cwd, on_progress)
                        threads.append(outcome) if isinstance(outcome, Ingested) else refused.append(outcome)
                    case Broken(file, reason):
                        refused.append(
                            Refused(thread_id=None, reason=reason if file in reason else f"`{file}`: {reason}")
                        )
                    case Unchanged():
                        pass  # only what is known can be unchanged, and nothing is
                    case _:
                        assert_never(discovery)
    except StoreError as error:
        raise RecordingError(str(error), hint=error.hint) from error
    except OSError as error:
        where = Path(error.filename or path)
        raise RecordingError(f"`{where}`: {error.strerror}", hint=way_out(error, where.parent)) from error
    if not threads and not refused:
        refused.append(Refused(thread_id=None, reason=f"`{path}` holds no session of the format `{format}`"))
    return IngestReport(file=str(path), format=format, threads=tuple(threads), refused=tuple(refused))


def _ingest(
    settings: Settings, thread: Thread, place: Place, cwd: str | None, listen: ProgressListener
) -> Ingested | Refused:
    try:
        before = place.rollouts.get(file_id(check_thread_id(thread.thread_id)))
        if reason := _known_elsewhere(thread, before, place.store):
            return Refused(thread_id=thread.thread_id, reason=reason)
        target = before or rollout_path(settings.home, thread.thread_id, created_at_ms=thread.created_at_ms)
        temporary = place.folder / f"{TEMPORARY}{target.name}"
        try:
            with open(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file:
                items, stats, used = _write(file, settings, thread, cwd, listen)
                if not items:
                    return Refused(
                        thread_id=thread.thread_id, reason=f"nothing is said or done in `{thread.rollout_path}`"
                    )
                is_old = before is not None and _is_beginning(file, before)
                if not is_old:
                    _end(file, thread, used)
            if not is_old:
                private_folders(target.parent)
                temporary.replace(target)
                place.rollouts[file_id(thread.thread_id)] = target
        finally:
            temporary.unlink(missing_ok=True)
    except (RolloutError, RecordingError) as error:
        return Refused(thread_id=thread.thread_id, reason=str(error))
    return Ingested(
        thread_id=thread.thread_id,
        outcome="unchanged" if is_old else "updated" if before else "new",
        agent=thread.agent,
        source=thread.source,
        cwd=cwd or thread.cwd,
        preview=redact(thread.preview, style=settings.memories.redaction),
        path=str(target),
        items=items,
        superseded=stats.superseded,
        left_out=LeftOut(
            bad_lines=stats.bad_lines,
            cut_bytes=stats.cut_bytes,
            images=stats.images,
            unknown=stats.unknown,
            dropped=stats.dropped,
            torn=stats.torn,
        ),
    )


def _write(
    file: BinaryIO, settings: Settings, thread: Thread, cwd: str | None, listen: ProgressListener
) -> tuple[int, ReadStats, Usage]:
    """The lines of the rollout but for the last; how many are items, what reading showed, and what was used."""

    def clean(text: str) -> str:
        return redact(text, style=settings.memories.redaction)

    at_ms, count = thread.created_at_ms, 0
    with open_thread(thread, max_line_bytes=settings.stage_one.max_line_bytes) as items:
        first = next(iter(items), None)  # the file has told whose it is by then
        program = program_of(thread, items.decoder)
        file.write(line("session_meta", _meta(thread, program, clean, cwd), at_ms=at_ms))
        for count, item in enumerate(chain([first] if first else [], items), 1):
            # Where no time is known it is that of what stands before.
            at_ms = item.timestamp_ms if item.timestamp_ms is not None else at_ms
            file.write(line("response_item", item_payload(item.raw, redact=clean), at_ms=at_ms))
            if count % _REPORT_EVERY == 0:
                listen(Progress(stage="ingest", done=count, note=thread.thread_id))
    listen(Progress(stage="ingest", done=count, total=count, note=thread.thread_id))
    file.flush()
    used = last_total(Path(thread.rollout_path)) if recorded_by(items.decoder) else Usage()
    return count, items.stats, used


def _meta(thread: Thread, program: Program, clean: Redact, cwd: str | None) -> bytes:
    source: object = thread.source
    if thread.source.startswith("{"):
        source = msgspec.json.decode(thread.source)
    texts = (thread.git_sha, thread.git_branch, thread.git_origin_url)
    git = Git(*(clean(text) if text else None for text in texts)) if any(texts) else None
    return meta_payload(
        thread.thread_id,
        at_ms=thread.created_at_ms,
        cwd=cwd or thread.cwd,
        agent=program.name,
        source=source,
        version=program.version,
        model_provider=thread.model_provider,
        parent_thread_id=thread.parent_thread_id,
        git=git,
        more={
            MARK: thread.agent,
            "preview": clean(thread.preview),
            "memory_mode": None if thread.memory_mode == "enabled" else thread.memory_mode,
        },
    )


def _end(file: BinaryIO, thread: Thread, used: Usage) -> None:
    """What was used, and a last line at the time of the thread's last activity, which may not be that of an item."""
    file.seek(0, os.SEEK_END)
    if used != Usage():
        file.write(line("event_msg", usage_payload(used, used), at_ms=thread.updated_at_ms))
    file.write(line("event_msg", encoded({"type": "task_complete"}), at_ms=thread.updated_at_ms))
    file.flush()
    os.fsync(file.fileno())


def _known_elsewhere(thread: Thread, before: Path | None, store: Store | None) -> str | None:
    """Why the thread may not be taken in: it has a rollout of its own, or every pass reads it where it lies."""
    if before is not None:
        with before.open("rb") as file:
            if f'"{MARK}"'.encode() not in file.readline(_COMPARED_BYTES):
                return f"`{thread.thread_id}` was recorded here as it happened: `{before}`"
    if store is not None and store.forgetting.is_forgotten(thread.thread_id):
        return f"a person had `{thread.thread_id}` forgotten"
    known = store.threads.get(thread.thread_id) if store is not None else None
    if known is None or known.agent == "stillroom" or not Path(known.rollout_path.partition("#")[0]).exists():
        return None
    return f"`{thread.thread_id}` is read by every pass already, where it lies: `{known.rollout_path}`"


def _is_beginning(file: BinaryIO, other: Path) -> bool:
    """Whether the other file begins with all that was written."""
    file.seek(0)
    with other.open("rb") as there:
        while piece := file.read(_COMPARED_BYTES):
            if there.read(len(piece)) != piece:
                return False
    return True


__all__ = ["MARK", "ingest_file"]
