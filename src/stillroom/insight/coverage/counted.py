"""Remembers what was counted of each session, in `coverage.json`: numbers only. Losing it costs only time."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stillroom.private_file import write_private

FILE = "coverage.json"
_FORMAT = 1
_MOST_BYTES = 64 * 1024 * 1024


class Count(msgspec.Struct, frozen=True):
    """How much there is, how much of it the session's own output has, and how much the folder has."""

    total: int = 0
    extracted: int = 0
    folder: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.total + other.total, self.extracted + other.extracted, self.folder + other.folder)


class Counted(msgspec.Struct, frozen=True, array_like=True):
    """What was counted of a session."""

    #: How its file, its output and the folder looked.
    key: tuple[int, int, int, str]
    words: Count
    failures: Count
    files: Count
    bad_lines: int
    long_lines: int
    cut_bytes: int


class _Stored(msgspec.Struct, frozen=True):
    format: int = 0
    threads: dict[str, Counted] = {}


_decoder = msgspec.json.Decoder(_Stored)


def load_counts(home: Path) -> dict[str, Counted]:
    """What is stored, by thread; nothing when it can't be read."""
    try:
        with (home / FILE).open("rb") as file:
            stored = _decoder.decode(file.read(_MOST_BYTES))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return dict(stored.threads) if stored.format == _FORMAT else {}


def save_counts(home: Path, counts: dict[str, Counted]) -> None:
    """Keep it. A disk that is full or can't be written costs only time."""
    try:
        write_private(home / FILE, msgspec.json.encode(_Stored(format=_FORMAT, threads=counts)))
    except (OSError, UnicodeEncodeError):
        return
