"""Find copies: of a whole session by its contents, and of what a forgotten session said by its exchanges.

An exchange is two messages, one after the other, as a hash. A fork has an id of its own and copies what was said. Once
the session that it was made from is gone, nothing else tells that it repeats it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

import msgspec

from stillroom.sessions.item import UNREADABLE, Item
from stillroom.sessions.speech import said_in

# --- Whole sessions

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


#: Of both messages together: shorter ones ("go on", "Done.") are said in many sessions.
_LEAST_CHARS = 60
_DIGEST_BYTES = 16
#: Held until the next message tells whether a fork took them over; a turn beyond this is passed on.
_MAX_HELD_BYTES = 8 * 1024 * 1024


def exchanges(items: Iterable[Item], *, limit: int) -> list[bytes]:
    """The hashes of the first `limit` exchanges of a session."""
    found: dict[bytes, None] = {}
    last: str | None = None
    for item in items:
        if (said := _said(item)) is None:
            continue
        if last is not None and (digest := _digest(last, said)) is not None:
            found[digest] = None
            if len(found) >= limit:
                break
        last = said
    return list(found)


def without_exchanges(items: Iterable[Item], is_known: Callable[[bytes], bool]) -> Iterator[Item]:
    """The items without the messages of exchanges that are known, and without the calls behind these messages."""
    held: list[Item] = []  # the last message with its calls, until it is decided
    held_bytes = 0
    last: str | None = None
    is_gone = False
    for item in items:
        said = _said(item)
        if said is None:
            if last is None:
                yield item
            elif not is_gone:
                held.append(item)
                held_bytes += len(item.raw)
                if held_bytes > _MAX_HELD_BYTES:
                    yield from held
                    held, held_bytes = [], 0
            continue
        digest = None if last is None else _digest(last, said)
        repeats = digest is not None and is_known(digest)
        if not (is_gone or repeats):
            yield from held
        held, held_bytes = [item], len(item.raw)
        last, is_gone = said, repeats
    if not is_gone:
        yield from held


def _said(item: Item) -> str | None:
    """What a person or an agent says in it; None for everything else."""
    said = said_in(item) or ()
    text = "\n".join(" ".join(text.split()) for who, text in said if who != "harness")
    return f"{item.role}\0{text}" if text else None


def _digest(one: str, other: str) -> bytes | None:
    if len(one) + len(other) < _LEAST_CHARS:
        return None
    both = f"{one}\0{other}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"exchange\0" + both).digest()[:_DIGEST_BYTES]
