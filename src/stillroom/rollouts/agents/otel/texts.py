"""A text of any length that is an attribute of a span, read out of its line at constant memory.

Messages are JSON in a text in JSON. Where the line is too long to be held, its escapes are taken out as it passes by.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import BinaryIO

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.item import UNREADABLE

# Whole characters and escapes; a pair of surrogates stays together. A repetition costs memory until the match is made.
_WHOLE = re.compile(
    rb'(?:[^"\\]++|\\[^u]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}){0,1000}'
)
_QUOTE, _NEWLINE = b'"\n'
# Between a name and its text there is a handful of bytes.
_BEFORE_BYTES = 400


def attribute(file: BinaryIO, name: str, *, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The text of an attribute of the line at which the file stands, in pieces; nothing where it is not in the line.

    Quotes in texts are escaped, so that no text can pose as the attribute. Raises `OSError`.
    """
    start = re.compile(
        rb'"%s"\s{0,9}(?::|,\s{0,9}"value"\s{0,9}:\s{0,9}\{\s{0,9}"stringValue"\s{0,9}:)\s{0,9}"'
        % re.escape(name).encode()
    )
    held = b""
    while piece := file.readline(reading.chunk_bytes):
        held += piece
        if (match := start.search(held)) is not None:
            yield from _unescaped(file, held[match.end() :], reading.chunk_bytes)
            return
        if piece[-1] == _NEWLINE:
            return
        held = held[-_BEFORE_BYTES:]


def _unescaped(file: BinaryIO, held: bytes, size: int) -> Generator[bytes, None, None]:
    while True:
        end = _whole_end(held)
        done = end < len(held) and held[end] == _QUOTE
        if not done:
            end = _character_end(held, end)
        try:
            yield msgspec.json.decode(b'"' + held[:end] + b'"', type=str).encode()
        except UNREADABLE:
            return
        held = held[end:]
        if done or not (piece := file.readline(size)):
            return
        held += piece


def _whole_end(text: bytes) -> int:
    """Ahead of the quote that ends the text, or of an escape that is not whole."""
    end = -1
    at = 0
    while end < at:
        match = _WHOLE.match(text, at)
        assert match is not None
        end, at = at, match.end()
    return at


def _character_end(text: bytes, end: int) -> int:
    """Ahead of a character whose last bytes may be missing."""
    start = end
    while start > max(end - 4, 0) and text[start - 1] & 0xC0 == 0x80:
        start -= 1
    return start - 1 if start and text[start - 1] >= 0xC0 else end
