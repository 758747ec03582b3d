"""Where the samples of a log of inspect_ai stand, in either of its forms, and what it tells of each."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents import documents
from stillroom.rollouts.agents.decoder import text_of
from stillroom.rollouts.agents.inspect_ai import archive
from stillroom.rollouts.item import UNREADABLE
from stillroom.rollouts.lines import open_stored

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
def opened(place: Place, *, reading: Reading = READING) -> Iterator[BinaryIO]:
    """The document in which a sample stands. Raises `OSError` or `RolloutError`."""
    if not place.is_member:
        with open_stored(place.log, reading=reading) as file:
            yield file
        return
    with archive.opened(place.log) as log, archive.member(log, f"samples/{place.key}.json", reading=reading) as file:
        yield file


def fields(place: Place, names: tuple[str, ...], *, reading: Reading = READING) -> dict[str, msgspec.Raw]:
    """Small fields of a sample. Raises `OSError` or `RolloutError`."""
    with opened(place, reading=reading) as file:
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
    with opened(place, reading=reading) as file:
        yield from documents.lines(file, (*place.inside, "messages"), reading=reading)


def attachments(place: Place, *, reading: Reading = READING) -> Mapping[bytes, bytes]:
    """The texts that messages name, as they stand inside of a JSON string, by their hashes; those that have room."""
    room = _MAX_ATTACHMENTS_BYTES
    found: dict[bytes, bytes] = {}
    with opened(place, reading=reading) as file:
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
        with archive.opened(path) as log:
            there = frozenset(log.namelist())
            name = "header.json" if "header.json" in there else "_journal/start.json"
            with archive.member(log, name, reading=reading) as file:
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
    with archive.opened(path) as log:
        return [
            Member(Place(path, name[1]), info.file_size, info.CRC)
            for info in log.infolist()
            if (name := _MEMBER.fullmatch(info.filename)) is not None
        ]


def summaries(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> dict[str, Summary]:
    """What an archive tells of its samples, by their keys; a log that is not finished has it in parts."""
    found: dict[str, Summary] = {}
    with archive.opened(path) as log:
        names = log.namelist()
        parts = sorted((int(part[1]), name) for name in names if (part := _SUMMARIES.fullmatch(name)) is not None)
        for name in ["summaries.json"] if "summaries.json" in names else [name for _, name in parts]:
            with archive.member(log, name, reading=reading) as file:
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
