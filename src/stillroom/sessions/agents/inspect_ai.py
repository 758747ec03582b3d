"""Find the samples of inspect_ai's logs, `.eval` archives and `.json` documents: each run of a sample is a thread.

Its path is the log's with the sample behind it, `LOG.eval#7_epoch_1` or `LOG.json#0`. In an archive a sample's stamp is
its size and its checksum, with the time of the log when it was seen first: a log grows while the evaluation runs.
"""

from __future__ import annotations

import hashlib
import io
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import quote, unquote

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions import documents
from stillroom.sessions.chat_parts import ChatDecoder, Message, role_of
from stillroom.sessions.conversation import text_of, time_of
from stillroom.sessions.discovery import Broken, Discovery, File, Found, Unchanged, scan_stores
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.normalize import NormalizedItem, said_by_agent
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, stream_chunks
from stillroom.thread import FileStamp, Thread

if sys.version_info >= (3, 14):
    import zipfile

    from compression import zstd
else:
    from backports import zstd
    from backports.zstd import zipfile


# --- Members of a ZIP archive as streams, also those that are packed with Zstandard.

# The archive's directory is held while it is read: this has room for 100,000 members.
_MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
# The end of an archive: a record, and a comment of up to 64 KiB behind it. Large archives have another one ahead of it.
_END = b"PK\x05\x06"
_END_BYTES = 22 + 65535
_LARGE_END = b"PK\x06\x06"


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive. Raises `RolloutError` for what is none, or none that can be used, and `OSError`."""
    with open_stored(path) as file:
        if _directory_bytes(file) > _MAX_DIRECTORY_BYTES:
            raise RolloutError(f"`{path}` can't be used: it has too many members")
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise RolloutError(f"`{path}` can't be used: it is no archive, or not all of it is there") from error
        with archive:
            yield archive


@contextmanager
def member(archive: zipfile.ZipFile, name: str) -> Iterator[BinaryIO]:
    """The text of a member, unpacked piece by piece.

    Raises `RolloutError` if there is no such member, or it can't be unpacked, and `EOFError` where it is
    damaged.
    """
    try:
        with archive.open(name) as text:
            yield cast("BinaryIO", text)
    except zstd.ZstdError as error:
        raise EOFError(str(error)) from error
    except (KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise RolloutError(f"`{name}` can't be read from the archive") from error


def _directory_bytes(file: BinaryIO) -> int:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - _END_BYTES, 0))
    end = file.read(_END_BYTES)
    at = end.rfind(_END)
    large = end.rfind(_LARGE_END, 0, max(at, 0))
    if large >= 0:
        return int.from_bytes(end[large + 40 : large + 48], "little")
    return int.from_bytes(end[at + 12 : at + 16], "little") if at >= 0 else 0


# --- The messages of a sample of an evaluation as the items that memory keeps.

#: Who typed a message that is the user's: a person who watched the evaluation.
_OPERATOR = "operator"
_REFERENCE = re.compile(rb"attachment://([0-9a-f]{8,64})")
_LEFT_OUT = b"[attachment left out]"
# Of what the attachments of one message may add to it.
_MAX_ATTACHED_BYTES = 4 * 1024 * 1024
_GRADES = {"C": "C (correct)", "I": "I (incorrect)", "P": "P (partially correct)", "N": "N (no answer)"}
_EXPLANATION_CHARS = 500


class _Error(msgspec.Struct):
    message: Any = None


class _Sent(Message):
    source: Any = None
    error: _Error | None = None
    #: Ours: what the sample was worth, put behind its messages.
    outcome: Any = None


class Score(msgspec.Struct):
    """What a scorer gave."""

    value: Any = None
    explanation: Any = None


class Outcome(msgspec.Struct):
    """The fields of a sample that tell how it ended."""

    scores: dict[str, Score] | None = None
    error: _Error | None = None


_sent = msgspec.json.Decoder(_Sent)
_outcome = msgspec.json.Decoder(Outcome)


class Records(ChatDecoder):
    """Decodes messages, one a line. `load` is asked for the sample's attachments when one is first met."""

    def __init__(
        self, stats: ReadStats, *, load: Callable[[], Mapping[bytes, bytes]], reading: Reading = READING
    ) -> None:
        super().__init__(stats, of_agent=True, reading=reading)
        self._load = load

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message."""
        sent = _sent.decode(self._with_attachments(line) if b"attachment://" in line else line)
        return None, self._made(sent)

    def _made(self, sent: _Sent) -> Iterator[NormalizedItem]:
        role = role_of(sent)
        if sent.outcome is not None:
            yield said_by_agent(text_of(sent.outcome))
        elif role == "user":
            yield from self.prompt(*self.texts(sent), of_agent=sent.source != _OPERATOR)
        elif role == "tool":
            error = text_of(sent.error.message) if sent.error is not None else ""
            text = "\n".join(filter(None, [*self.texts(sent), error]))
            # A command that failed is no error to the harness.
            yield from self.result(text_of(sent.tool_call_id), text, failed=True if sent.error is not None else None)
        else:
            yield from self.message(sent)

    def _with_attachments(self, line: bytes) -> bytes:
        """Attachments are named inside of texts, and their own texts are JSON as the message is."""
        room = _MAX_ATTACHED_BYTES

        def attached(reference: re.Match[bytes]) -> bytes:
            nonlocal room
            text = self._attachments.get(reference[1])
            if text is None or len(text) > room:
                self.stats.drop("attachment left out")
                return _LEFT_OUT
            room -= len(text)
            return text

        return _REFERENCE.sub(attached, line)

    @cached_property
    def _attachments(self) -> Mapping[bytes, bytes]:
        return self._load()


def outcome_of(fields: Mapping[str, msgspec.Raw]) -> str:
    """What a sample was worth, in words; "" if nothing tells."""
    told: list[str] = []
    for name, raw in fields.items():
        try:
            outcome = _outcome.decode(b'{"%s":%s}' % (name.encode(), bytes(raw)))
        except UNREADABLE:
            continue
        told += [_scored(scorer, score) for scorer, score in (outcome.scores or {}).items()]
        if outcome.error is not None:
            told.append(f"The run of this sample broke off: {text_of(outcome.error.message)[:_EXPLANATION_CHARS]}")
    return "\n".join(told)


def _scored(scorer: str, score: Score) -> str:
    value = _GRADES.get(score.value, score.value) if isinstance(score.value, str) else score.value
    why = text_of(score.explanation).strip()
    return f"The scorer `{scorer}` gave {value}." + (f" {why[:_EXPLANATION_CHARS]}" if why else "")


# --- Where the samples of a log of inspect_ai stand, in either of its forms, and what it tells of each.

_INSIDE = re.compile(r"(.+\.(?:eval|json))#([\w.%~-]{1,300})", re.ASCII)
_MEMBER = re.compile(r"samples/(.+)\.json", re.DOTALL)
_SUMMARIES = re.compile(r"_journal/summaries/(\d{1,9})\.json", re.ASCII)
_MAX_FIELD_BYTES = 1024 * 1024
# Attachments are mostly images, which are left out anyway.
_MAX_ATTACHMENT_BYTES = 256 * 1024
_MAX_ATTACHMENTS_BYTES = 16 * 1024 * 1024


class Revision(msgspec.Struct):
    """The repository that the evaluation ran in."""

    origin: Any = None
    commit: Any = None


class Evaluation(msgspec.Struct):
    """What a log tells of all its samples."""

    eval_id: Any = None
    created: Any = None
    task: Any = None
    model: Any = None
    revision: Revision | None = None
    packages: dict[str, Any] | None = None


class Summary(msgspec.Struct):
    """What is told of a sample without its messages."""

    id: Any = None
    epoch: Any = None
    input: Any = None
    uuid: Any = None
    started_at: Any = None
    completed_at: Any = None


class Place(NamedTuple):
    """A sample in its log: `key` is the name of a member without what all members share, or a number in a list."""

    log: Path
    key: str

    @property
    def rollout(self) -> Path:
        return self.log.with_name(f"{self.log.name}#{quote(self.key, safe='')}")

    @property
    def is_member(self) -> bool:
        return self.log.suffix == ".eval"

    @property
    def inside(self) -> documents.Path:
        """Where the sample stands in its document."""
        return () if self.is_member else ("samples", int(self.key))


def place_of(rollout: Path) -> Place:
    """Raises `RolloutError` for what names no sample."""
    found = _INSIDE.fullmatch(rollout.name)
    if found is None or (found[1].endswith(".json") and not (found[2].isdigit() and len(found[2]) < 10)):
        raise RolloutError(f"`{rollout}` can't be opened: it names no sample of a log")
    return Place(rollout.with_name(found[1]), unquote(found[2]))


@contextmanager
def open_sample(place: Place, *, reading: Reading = READING) -> Iterator[BinaryIO]:
    """The document in which a sample stands. Raises `OSError` or `RolloutError`."""
    if not place.is_member:
        with open_stored(place.log, reading=reading) as file:
            yield file
        return
    with open_archive(place.log) as log, member(log, f"samples/{place.key}.json") as file:
        yield file


def fields(place: Place, names: tuple[str, ...], *, reading: Reading = READING) -> dict[str, msgspec.Raw]:
    """Small fields of a sample. Raises `OSError` or `RolloutError`."""
    with open_sample(place, reading=reading) as file:
        return documents.fields(
            file,
            names,
            path=place.inside,
            max_bytes=_MAX_FIELD_BYTES,
            stop_after_bytes=sys.maxsize,
            reading=reading,
        )


def lines(place: Place, *, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The text of a sample's messages, as `documents.lines` has it."""
    with open_sample(place, reading=reading) as file:
        yield from documents.lines(file, (*place.inside, "messages"), reading=reading)


def attachments(place: Place, *, reading: Reading = READING) -> Mapping[bytes, bytes]:
    """The texts that messages name, as they stand inside of a JSON string, by their hashes; those that have room."""
    room = _MAX_ATTACHMENTS_BYTES
    found: dict[bytes, bytes] = {}
    with open_sample(place, reading=reading) as file:
        every = documents.all_fields(
            file, path=(*place.inside, "attachments"), max_bytes=_MAX_ATTACHMENT_BYTES, reading=reading
        )
        for name, raw in every:
            text = bytes(raw)
            if text.startswith(b'"') and len(text) <= room:
                found[name.encode()] = text[1:-1]
                room -= len(text)
    return found


def read_evaluation(path: Path, *, reading: Reading = READING) -> Evaluation:
    """Raises `RolloutError` for what is no log, and `OSError`."""
    if path.suffix == ".eval":
        with open_archive(path) as log:
            there = frozenset(log.namelist())
            name = "header.json" if "header.json" in there else "_journal/start.json"
            with member(log, name) as file:
                found = documents.fields(file, ("eval",), max_bytes=_MAX_FIELD_BYTES, reading=reading)
    else:
        with open_stored(path, reading=reading) as file:
            # It stands ahead of the samples.
            found = documents.fields(
                file, ("eval",), max_bytes=_MAX_FIELD_BYTES, stop_after_bytes=reading.head_bytes, reading=reading
            )
    try:
        return msgspec.json.decode(found["eval"], type=Evaluation)
    except (KeyError, *UNREADABLE) as error:
        cut = "" if path.suffix == ".eval" else documents.cut(path, reading=reading)
        raise RolloutError(f"`{path}` can't be used: it is no log of an evaluation{cut}") from error


class Member(NamedTuple):
    """A sample of an archive, as the archive's directory has it."""

    place: Place
    size: int
    checksum: int


def members(path: Path) -> list[Member]:
    """The samples of an archive, in their order. Raises `OSError` or `RolloutError`."""
    with open_archive(path) as log:
        return [
            Member(Place(path, name[1]), info.file_size, info.CRC)
            for info in log.infolist()
            if (name := _MEMBER.fullmatch(info.filename)) is not None
        ]


def summaries(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> dict[str, Summary]:
    """What an archive tells of its samples, by their keys; a log that is not finished has it in parts."""
    found: dict[str, Summary] = {}
    with open_archive(path) as log:
        names = log.namelist()
        parts = sorted((int(part[1]), name) for name in names if (part := _SUMMARIES.fullmatch(name)) is not None)
        for name in ["summaries.json"] if "summaries.json" in names else [name for _, name in parts]:
            with member(log, name) as file:
                for line in documents.elements(file, (), max_line_bytes=max_line_bytes, reading=reading):
                    summary = read_summary(line)
                    found[f"{summary.id}_epoch_{summary.epoch}"] = summary
    return found


def read_summary(text: bytes) -> Summary:
    """What a line of the summaries, or the beginning of a sample, tells."""
    try:
        return msgspec.json.decode(text, type=Summary)
    except UNREADABLE:
        return Summary()


def asked_in(summary: Summary) -> str:
    """What the sample is about."""
    asked: Any = summary.input
    if isinstance(asked, list):
        messages = [each for each in asked if isinstance(each, dict) and each.get("role") == "user"]
        asked = messages[-1].get("content") if messages else ""
    if isinstance(asked, list):
        asked = " ".join(text_of(part.get("text")) for part in asked if isinstance(part, dict))
    return text_of(asked)


# --- Sessions

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
