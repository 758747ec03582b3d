"""Undoes the content encodings of bodies, piece by piece, and makes no more of a piece than it may."""

from __future__ import annotations

import sys
import zlib
from typing import Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: What can be read of what a client may ask for.
READABLE = ("gzip", "deflate", "zstd")


class Unreadable(Exception):
    """These bytes are not what the encoding makes."""


class TooLarge(Exception):
    """A few bytes that would become very many: nobody packs a conversation so well."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Unpacker:
    """One body in one encoding."""

    def __init__(self, decoder: _Decoder | None, *, max_bytes: int) -> None:
        self._decoder = decoder
        self._max_bytes = max_bytes

    @property
    def is_whole(self) -> bool:
        """Whether the body is at its end, as far as its encoding tells."""
        return self._decoder is None or self._decoder.eof

    def feed(self, piece: bytes) -> bytes:
        """What a piece holds; nothing once the body is at its end. Raises `Unreadable` or `TooLarge`."""
        if self._decoder is None:
            return piece
        if self._decoder.eof:
            return b""
        try:
            data = self._decoder.decompress(piece, self._max_bytes + 1)
        except (zlib.error, zstd.ZstdError) as error:
            raise Unreadable(str(error)) from error
        if len(data) > self._max_bytes:
            raise TooLarge(f"more than {self._max_bytes:,} bytes")
        return data


def unpacker(encoding: str, *, max_bytes: int) -> Unpacker | None:
    """For a body in this encoding, of whose pieces none may become more than `max_bytes`; None if it is not known."""
    decoder: _Decoder | None
    match encoding.strip().lower():
        case "" | "identity":
            decoder = None
        case "gzip" | "x-gzip":
            decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
        case "deflate":
            decoder = zlib.decompressobj()
        case "zstd":
            decoder = zstd.ZstdDecompressor()
        case _:
            return None
    return Unpacker(decoder, max_bytes=max_bytes)
