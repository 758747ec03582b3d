"""In which of the usual ways a file stores conversations, told from its beginning."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents import documents
from stillroom.rollouts.agents.chat_parts import is_message
from stillroom.rollouts.item import UNREADABLE
from stillroom.rollouts.lines import BOM, open_stored

#: Names of the list of messages.
_NAMES = ("messages", "conversations", "conversation")
_LINES = frozenset({".jsonl", ".ndjson"})
_BLANK = b" \t\r\n"


class Layout(NamedTuple):
    """`lines`: each line a message; `rows`: each line a conversation; `document`: the file is one conversation;
    `listed`: it is a list of them."""

    kind: Literal["lines", "rows", "document", "listed"]
    #: Where the messages stand in a conversation: `()` where it is a list itself.
    path: documents.Path


def layout_of(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Layout:
    """Raises `RolloutError` for a file without messages, and `OSError`."""
    with open_stored(path, reading=reading) as file:
        head = file.read(reading.batch_bytes).removeprefix(BOM).lstrip(_BLANK)

    def begins_with_message(*place: str | int) -> bool:
        with (
            open_stored(path, reading=reading) as file,
            elements(
                file,
                place,
                max_line_bytes=max_line_bytes,
                stop_after_bytes=reading.long_head_bytes,
                reading=reading,
            ) as found,
        ):
            return is_message(next(found, b""))

    if head[:1] == b"[":
        if begins_with_message():
            return Layout("document", ())
        for name in _NAMES:
            if begins_with_message(0, name):
                return Layout("listed", (name,))
    elif head[:1] == b"{":
        in_lines = path.name.removesuffix(".zst").endswith(tuple(_LINES)) or _is_whole(head.partition(b"\n"))
        for name in _NAMES:
            if begins_with_message(name):
                return Layout("rows" if in_lines else "document", (name,))
        if in_lines and is_message(head.partition(b"\n")[0]):
            return Layout("lines", ())
    cut = documents.cut(path, reading=reading)
    raise RolloutError(f"`{path}` can't be used: no messages were found in it{cut}")


@contextmanager
def elements(
    file: BinaryIO,
    path: documents.Path,
    *,
    max_line_bytes: int,
    stop_after_bytes: int = sys.maxsize,
    reading: Reading = READING,
) -> Generator[Generator[bytes, None, None], None, None]:
    """The elements of a list of which no more is read than is asked for."""
    found = documents.elements(
        file, path, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
    )
    try:
        yield found
    finally:
        found.close()


def _is_whole(parts: tuple[bytes, bytes, bytes]) -> bool:
    """Whether the first line is a document, and another follows."""
    line, _, rest = parts
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return False
    return rest.lstrip(_BLANK)[:1] == b"{"
