"""What a session says, as digests by which copies of it are known, whatever they are stored in."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stillroom.rollouts.item import UNREADABLE, Item
from stillroom.rollouts.speech import said_in

DIGEST_BYTES = 8


class _Called(msgspec.Struct):
    call_id: str | None = None


_called = msgspec.json.Decoder(_Called)


def told_by(item: Item) -> tuple[str | bytes, ...]:
    """Who says what, or which call is made or answered: the same item may be written with other fields."""
    if (said := said_in(item)) is not None:
        return (item.type, item.role or "", *(word for speech in said for word in speech))
    try:
        if call_id := _called.decode(item.raw).call_id:
            return ("output" if item.type.endswith("_output") else "call", call_id)
    except UNREADABLE:
        pass
    return (item.raw,)


def chain_of(items: Iterable[Item], *, max_items: int) -> bytes | None:
    """A digest of the first item, of the first two, and so on; None if there are none, or more than `max_items`."""
    from hashlib import blake2b  # OpenSSL takes long to load with it

    chain, last = bytearray(), b""
    for item in items:
        if len(chain) == max_items * DIGEST_BYTES:
            return None
        told = (
            word.strip() if isinstance(word, bytes) else word.strip().encode("utf-8", "replace")
            for word in told_by(item)
        )
        last = blake2b(b"\0".join((last, *told)), digest_size=DIGEST_BYTES).digest()
        chain += last
    return bytes(chain) or None
