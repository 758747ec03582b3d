"""Find the samples of inspect_ai's logs, `.eval` archives and `.json` documents: each run of a sample is a thread.

Its path is the log's with the sample behind it, `LOG.eval#7_epoch_1` or `LOG.json#0`. In an archive a sample's stamp is
its size and its checksum, with the time of the log when it was seen first: a log grows while the evaluation runs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents import documents
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.decoder import text_of, time_of
from stillroom.rollouts.agents.inspect_ai.records import Records, outcome_of
from stillroom.rollouts.agents.inspect_ai.samples import (
    Evaluation,
    Place,
    Revision,
    Summary,
    asked_in,
    attachments,
    fields,
    lines,
    members,
    place_of,
    read_evaluation,
    read_summary,
    summaries,
)
from stillroom.rollouts.agents.scan import File, scan_stores
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Broken, Discovery, Found, Unchanged
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.speech import preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.thread import FileStamp, Thread

AGENT = "inspect-ai"
COPIES = False
# `2026-11-29T12-23-28-00-00_task_id.json`: a folder of logs holds other documents, too.
_LOG = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+[+-]?[\d-]*_.+\.json", re.ASCII)
_UUID = re.compile(r"[\w-]{8,100}", re.ASCII)
_MAX_THREADS_PER_FILE = 10_000


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every sample of the logs in `root`, a folder or a log, those of the oldest log first."""
    root = root.absolute()
    paths = [root]
    if not root.is_file():
        paths = [*root.rglob("*.eval"), *(path for path in root.rglob("*.json") if _LOG.fullmatch(path.name))]
    yield from scan_stores(paths, known, _is_unchanged, lambda file: _look(file, known, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a sample. Raises `RolloutError` if it can't be opened."""
    place = place_of(path)
    if not place.log.is_file():
        raise RolloutError(f"`{path}` can't be opened: the log is gone")
    return stream_chunks(
        _lines(place, reading),
        path,
        Records(ReadStats(), load=lambda: attachments(place, reading=reading), reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _lines(place: Place, reading: Reading) -> Generator[bytes, None, None]:
    def outcome() -> bytes:
        told = outcome_of(fields(place, ("scores", "error"), reading=reading))
        return msgspec.json.encode({"outcome": told}) if told else b""

    yield from documents.followed_by(lines(place, reading=reading), outcome)


def _is_unchanged(file: File, stamps: list[FileStamp]) -> bool:
    return any(stamp.mtime_ns == file.mtime_ns for stamp in stamps)


def _look(file: File, known: Mapping[str, FileStamp], max_line_bytes: int, reading: Reading) -> Iterator[Discovery]:
    try:
        evaluation = read_evaluation(file.path, reading=reading)
        look = _archived if file.path.suffix == ".eval" else _listed
        for count, discovery in enumerate(look(file, evaluation, known, max_line_bytes, reading)):
            if count >= _MAX_THREADS_PER_FILE:
                yield Broken(str(file.path), f"`{file.path}` has over {count} samples: the others are not read")
                return
            yield discovery
    except EOFError as error:
        raise RolloutError(f"`{file.path}` can't be used: it is damaged: {error}") from error


def _archived(
    file: File, evaluation: Evaluation, known: Mapping[str, FileStamp], max_line_bytes: int, reading: Reading
) -> Iterator[Discovery]:
    told: dict[str, Summary] | None = None
    for place, size, checksum in members(file.path):
        before = known.get(str(place.rollout))
        if before is not None and (before.size, before.offset) == (size, checksum):
            yield Unchanged(str(place.rollout))
            continue
        if told is None:
            told = summaries(file.path, max_line_bytes=max_line_bytes, reading=reading)
        stamp = FileStamp(size=size, mtime_ns=file.mtime_ns, offset=checksum)
        yield Found(_thread(file, place, evaluation, told.get(place.key) or Summary(), reading), stamp)


def _listed(
    file: File, evaluation: Evaluation, known: Mapping[str, FileStamp], max_line_bytes: int, reading: Reading
) -> Iterator[Discovery]:
    del known
    with open_stored(file.path, reading=reading) as text:
        every = documents.elements(text, ("samples",), max_line_bytes=max_line_bytes, reading=reading)
        for number, line in enumerate(every):
            if line != documents.TORN:
                place = Place(file.path, str(number))
                yield Found(_thread(file, place, evaluation, read_summary(line), reading), file.stamp(0))


def _thread(file: File, place: Place, evaluation: Evaluation, summary: Summary, reading: Reading) -> Thread:
    if summary.id is None:
        found = fields(place, Summary.__struct_fields__, reading=reading)
        text = b",".join(b'"%s":%s' % (name.encode(), bytes(raw)) for name, raw in found.items())
        summary = read_summary(b"{%s}" % text)
    seen = time_of(evaluation.created) or file.mtime_ns // 1_000_000
    began = time_of(summary.started_at) or seen
    uuid = text_of(summary.uuid)
    if _UUID.fullmatch(uuid) is None:
        named = f"{evaluation.eval_id}\n{summary.id}\n{summary.epoch}\n{place.key}"
        uuid = hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    revision = evaluation.revision or Revision()
    title = f"{text_of(evaluation.task)}: sample {summary.id}, epoch {summary.epoch}"
    return Thread(
        thread_id=f"inspect-{uuid}",
        agent=AGENT,
        rollout_path=str(place.rollout),
        source="cli",
        cwd="",
        created_at_ms=began,
        updated_at_ms=max(time_of(summary.completed_at) or began, began),
        title=preview_text(title, max_chars=reading.preview_chars),
        preview=preview_text(asked_in(summary), max_chars=reading.preview_chars),
        git_sha=text_of(revision.commit) or None,
        git_origin_url=text_of(revision.origin) or None,
        cli_version=text_of((evaluation.packages or {}).get("inspect_ai")) or None,
        model_provider=text_of(evaluation.model).partition("/")[0] or None,
    )
