"""What became of a file of sessions that was taken in."""

from __future__ import annotations

from typing import Literal

import msgspec

from stillroom.homes import Format


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """What stood in the file and is not in the rollout."""

    #: Lines that could not be parsed.
    bad_lines: int = 0
    #: Bytes of blobs and of huge texts, which became their sizes.
    cut_bytes: int = 0
    images: int = 0
    #: Kinds of records that this version does not know.
    unknown: dict[str, int] = {}
    #: Records that are not part of the talk, by reason.
    dropped: dict[str, int] = {}
    #: The last line has no end: whoever writes the file is not done with it.
    torn: bool = False


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """A thread that is in Stillroom's home now."""

    thread_id: str
    #: `unchanged`: all of it was there already.
    outcome: Literal["new", "updated", "unchanged"]
    agent: str
    #: How the session was started; only a person's sessions are distilled.
    source: str
    cwd: str
    preview: str
    path: str
    #: Messages, calls and results.
    items: int
    #: Messages that the user took back, kept as such.
    superseded: int
    left_out: LeftOut


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A thread, or a file, that was not taken in; nothing was changed because of it."""

    thread_id: str | None
    reason: str


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a file."""

    file: str
    format: Format
    threads: tuple[Ingested, ...] = ()
    refused: tuple[Refused, ...] = ()


__all__ = ["IngestReport", "Ingested", "LeftOut", "Refused"]
