"""Aider's Markdown as lines of JSON, one a message: `{"kind":"user","text":…}`.

The client writes a person's words after a blank line, each line as `#### …` with two blanks at its end; its own words
as `> …`, the last line with two blanks at its end; and the assistant's as they are, between blank lines. A heading or a
quotation of the assistant's has no blanks at its end, and so is told from both.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import BinaryIO, Literal

import msgspec

from stillroom.rollouts.agents.aider.chats import PIECE_BYTES, started_at

Kind = Literal["user", "assistant", "client"]
_MARKS = b"#>"
_END = b'"}\n'
# Of one message; it is written in pieces of about this size.
_HELD_BYTES = 128 * 1024


class _Talk:
    """What the lines before tell about the next one."""

    def __init__(self) -> None:
        #: Behind the heading stands the command line.
        self.kind: Kind | None = None
        self.blank = False
        #: The client's message goes on: its last line had no blanks at its end.
        self.goes_on = False

    def next(self, line: bytes) -> tuple[Kind, bytes, bool]:
        """Whose line it is, without its marks, and whether a message begins with it."""
        if self.kind == "assistant" and line[0] not in _MARKS:
            return "assistant", line, False
        ends = line.endswith(b"  ")
        before, self.kind = self.kind, "assistant"
        if self.goes_on and before == "client":
            self.kind, self.goes_on = "client", not ends
            return "client", line, False
        if line.startswith(b"####") and ends and (self.blank or before == "user"):
            self.kind = "user"
            return "user", line[4:].removeprefix(b" ").removesuffix(b"  "), self.blank
        alone = self.blank if before == "assistant" else True
        if line.startswith(b"> ") and alone and (ends or not self.blank or before is None):
            self.kind, self.goes_on = "client", not ends
            return "client", line[2:], True
        return "assistant", line, before != "assistant"


def lines(file: BinaryIO) -> Generator[bytes, None, None]:
    """The messages of the chat whose heading the file stands at, in pieces; the file is closed at the end."""
    with file:
        file.readline(PIECE_BYTES)
        yield from _lines(file)


def _lines(file: BinaryIO) -> Generator[bytes, None, None]:
    talk = _Talk()
    held: list[bytes] = []  # of a message: its lines are written together, as each call costs more than a line
    size = 0
    open_ = inside = False
    while piece := file.readline(PIECE_BYTES):
        if inside:  # a line so long that it comes in several pieces
            held.append(piece.rstrip(b"\r\n"))
        elif piece[-1] == 10 and piece.isspace():
            talk.blank = True
        elif talk.blank and piece[0] == 35 and started_at(piece) is not None:
            break
        elif piece[-1] != 10 and len(piece) < PIECE_BYTES:
            break  # still being written: only a line's end tells whose it is
        else:
            kind, text, begins = talk.next(piece.rstrip(b"\r\n"))
            if begins:
                yield _escaped(held) + (_END if open_ else b"") + b'{"kind":"%s","text":"' % kind.encode()
                held, size, open_ = [text], 0, True
            else:
                held += (b"\n\n" if talk.blank and kind == "assistant" else b"\n", text)
            talk.blank = False
        inside = piece[-1] != 10
        size += len(piece)
        if size > _HELD_BYTES:
            yield _escaped(held)
            held, size = [], 0
    yield _escaped(held)
    if open_:
        yield _END


def _escaped(pieces: list[bytes]) -> bytes:
    return msgspec.json.encode(b"".join(pieces).decode("utf-8", "replace"))[1:-1]
