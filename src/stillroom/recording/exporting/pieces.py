"""What happened in a thread, piece by piece in the order of its record: said, called, returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from stillroom.sessions.calls import Call, Output, read_call, read_output
from stillroom.sessions.item import UNREADABLE, Item
from stillroom.sessions.speech import Message, Speaker, speeches

_message = msgspec.json.Decoder(Message)
_call = msgspec.json.Decoder(Call)
_output = msgspec.json.Decoder(Output)


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message, or the part of one that somebody else said."""

    who: Speaker
    text: str
    at_ms: int | None


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """A tool was asked for something."""

    call_id: str
    tool: str
    #: JSON text, or whatever the tool takes.
    arguments: str
    #: Of tools that run one.
    command: str | None
    at_ms: int | None

    def as_object(self) -> dict[str, Any]:
        """The arguments under their names; text that is no object stands under `input`."""
        try:
            value = msgspec.json.decode(self.arguments or "{}")
        except UNREADABLE:
            value = self.arguments
        return value if isinstance(value, dict) else {"input": value}


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """A tool gave an answer."""

    call_id: str | None
    text: str
    exit_code: int | None
    #: None: the record does not tell.
    ok: bool | None
    at_ms: int | None


Piece = Said | Called | Returned


def pieces(items: Iterable[Item], *, redact: Callable[[str], str], max_chars: int | None = None) -> Iterator[Piece]:
    """The items as pieces, without secrets. Texts are whole, unless `max_chars` cuts their middles.

    An item that can't be understood is passed over.
    """
    for item in items:
        raw = redact(item.raw.decode("utf-8", "replace")).encode()
        try:
            yield from (piece if max_chars is None else _cut(piece, max_chars) for piece in _read(item, raw))
        except UNREADABLE:
            continue


def _read(item: Item, raw: bytes) -> Iterator[Piece]:
    at = item.timestamp_ms
    if item.type in ("message", "agent_message"):
        message = _message.decode(raw)
        is_agent = item.type == "agent_message"
        for who, text in speeches(Message("user", message.content) if is_agent else message):
            yield Said(who="agent" if is_agent else who, text=text, at_ms=at)
    elif item.type.endswith("_output"):
        output = _output.decode(raw)
        ended = read_output(output)
        yield Returned(call_id=output.call_id, text=ended.text, exit_code=ended.exit_code, ok=ended.ok, at_ms=at)
    else:
        call = _call.decode(raw)
        asked = read_call(call)
        call_id = call.call_id or call.id or f"line-{item.line_no}"
        yield Called(call_id=call_id, tool=asked.tool, arguments=asked.arguments, command=asked.command, at_ms=at)


def _cut(piece: Piece, max_chars: int) -> Piece:
    if isinstance(piece, Called):
        return piece
    text = piece.text
    if len(text) <= max_chars:
        return piece
    half = max_chars // 2
    text = f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[len(text) - half :]}"
    return msgspec.structs.replace(piece, text=text)
