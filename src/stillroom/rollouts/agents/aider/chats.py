"""Where the chats of Aider's history stand: one file of Markdown that grows for as long as its repository is worked in.

A chat is named `FILE#STARTED@OFFSET`, with the time of its heading and where that stands. The file is only appended to,
so an offset stays true; where somebody shortened the file the heading is looked for by its time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

_HEADING = re.compile(rb"# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)[ \t]*\r?\n")
_NAMED = re.compile(r"(.+)#(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?@(\d{1,18})", re.DOTALL | re.ASCII)
# Whatever is longer is no line that anybody wrote by hand.
PIECE_BYTES = 64 * 1024


class Chat(NamedTuple):
    """A chat of a file. They are ordered by where they stand."""

    offset: int
    #: As its heading says: local time, to the second.
    started: str
    #: Of several that began in the same second.
    number: int = 1

    def path(self, file: Path) -> str:
        """The `rollout_path` of the chat."""
        return f"{file}#{self._name}@{self.offset}"

    def thread_id(self, file: Path) -> str:
        """The same as long as the file stays where it is: only that tells chats of two repositories apart."""
        place = sha256(str(file).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        return f"{re.sub('[-:]', '', self._name)}-{place}"

    @property
    def _name(self) -> str:
        return self.started if self.number == 1 else f"{self.started}.{self.number}"


class Section(NamedTuple):
    """A chat with its length in bytes, and when the one behind it began; None: it is the last."""

    chat: Chat
    size: int
    next_started: str | None


def parse_path(path: str) -> tuple[Path, Chat] | None:
    """The file and the chat of a `rollout_path`; None if it names none."""
    if (match := _NAMED.fullmatch(path)) is None:
        return None
    return Path(match[1]), Chat(int(match[4]), match[2], int(match[3] or 1))


def started_at(line: bytes) -> str | None:
    """When the chat began whose heading this is; None for every other line."""
    match = _HEADING.fullmatch(line)
    return f"{match[1].decode()}T{match[2].decode()}" if match else None


def stands(file: BinaryIO, chat: Chat) -> bool:
    """Whether the chat's heading is where its name says. Leaves the file there. Raises `OSError`."""
    file.seek(chat.offset)
    there = started_at(file.readline(PIECE_BYTES)) == chat.started
    file.seek(chat.offset)
    return there


def sections(file: BinaryIO, first: Chat | None = None) -> Iterator[Section]:
    """The chats from where the file stands, which is the beginning or the heading of `first`. Raises `OSError`."""
    chat: Chat | None = None
    at, blank = file.tell(), True
    line_begins = True
    while piece := file.readline(PIECE_BYTES):
        if blank and line_begins and piece[0] == 35 and (started := started_at(piece)) is not None:
            if chat is not None:
                yield Section(chat, at - chat.offset, started)
            number = chat.number + 1 if chat is not None and chat.started == started else 1
            chat = first if chat is None and first is not None else Chat(at, started, number)
        at += len(piece)
        blank = line_begins and piece[-1] == 10 and piece.isspace()
        line_begins = piece[-1] == 10
    if chat is not None:
        yield Section(chat, at - chat.offset, None)


def find(file: BinaryIO, chat: Chat) -> bool:
    """Leave the file at the chat's heading, wherever it stands now; False if it is gone. Raises `OSError`."""
    if stands(file, chat):
        return True
    file.seek(0)
    for section in sections(file):
        if section.chat[1:] == chat[1:]:
            file.seek(section.chat.offset)
            return True
    return False
