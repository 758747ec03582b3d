"""What reading a session file showed, beside its items."""

from __future__ import annotations

import msgspec

from stillroom.thread import MemoryMode

#: Of one session: a file can name as many kinds as it likes.
_MOST_NAMES = 100


class ReadStats(msgspec.Struct):
    """Counted while a file is read; complete when the iteration has ended."""

    #: Of the file's text, after decompression.
    bytes: int = 0
    lines: int = 0
    kept: int = 0
    #: Of those kept: what people, the assistant and other agents said.
    messages: int = 0
    #: Lines that could not be parsed, and were skipped.
    bad_lines: int = 0
    #: Lines over the limit.
    long_lines: int = 0
    #: Bytes of long lines that were taken out, whether the rest could be used or not.
    cut_bytes: int = 0
    #: Inline images that were replaced by their size.
    images: int = 0
    #: Kinds of lines and items that this version does not know.
    unknown: dict[str, int] = {}
    #: Records of known kinds that are not part of the talk, by reason.
    dropped: dict[str, int] = {}
    #: Messages of the user that they took back.
    superseded: int = 0
    #: From the last `session_meta` line that has one.
    memory_mode: MemoryMode | None = None
    last_cwd: str | None = None
    #: The thread whose lines this one begins with, where a session says so.
    copied_from: str | None = None
    #: The last line has no newline yet: its writer is alive, or died.
    torn: bool = False
    #: Why reading ended before the end of the file, e.g. a damaged archive.
    broken: str | None = None

    def count_unknown(self, kind: str) -> None:
        """Remember that `kind` was met; hostile files can't make the table grow without end."""
        name = kind[:80]
        if name in self.unknown or len(self.unknown) < _MOST_NAMES:
            self.unknown[name] = self.unknown.get(name, 0) + 1

    def drop(self, reason: str) -> None:
        """Remember that a record was left out; the reasons are a handful of words of the reader's."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
