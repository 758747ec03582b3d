"""Items as one line of JSON, redacted, then cut in the middle: what extraction sends by default (spec §1.4, §1.11)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from stillroom.config import READING, Reading
from stillroom.sessions.item import Item
from stillroom.sessions.rendered import Rendered
from stillroom.sessions.truncate import BYTES_PER_TOKEN, ceil_boundary, floor_boundary, marker, middle_truncate

__all__ = ["Rendered", "render_string", "render_texts"]


def render_string(
    items: Iterable[Item], *, token_limit: int, redact: Callable[[str], str], reading: Reading = READING
) -> Rendered:
    """The JSON array of `items`, redacted and cut to `token_limit`, at constant memory.

    As long as the array is at most a margin longer than the limit, the result is `middle_truncate(redact(array))`.
    Beyond that only both ends are held and redacted. Each is redacted with more text than is kept of it, so that no
    part of a secret is left at the seam.
    """
    return render_texts((item.raw for item in items), token_limit=token_limit, redact=redact, reading=reading)


def render_texts(
    texts: Iterable[bytes], *, token_limit: int, redact: Callable[[str], str], reading: Reading = READING
) -> Rendered:
    """The same of items as `ItemStream.texts` gives them: their JSON, one or several at a time, joined by commas."""
    budget = BYTES_PER_TOKEN * token_limit
    ends = _Ends(head=budget // 2 + reading.seam_margin_bytes, tail=budget - budget // 2 + reading.seam_margin_bytes)
    opening = b"["
    for joined in texts:
        ends.add(opening)
        ends.add(joined)
        opening = b","
    ends.add(b"]" if opening == b"," else b"[]")
    if not ends.apart:
        whole = redact(_text(ends.whole()))
        return _rendered(middle_truncate(whole, token_limit), whole=whole, source_bytes=ends.total)
    first = ends.head_bytes()
    head = redact(_text(first[: floor_boundary(first, len(first))])).encode()
    last = ends.tail_bytes()
    tail = redact(_text(last[ceil_boundary(last, max(len(last) - ends.tail_room, 0)) :])).encode()
    guard = reading.seam_guard_bytes
    head = head[: floor_boundary(head, max(min(budget // 2, len(head) - guard), 0))]
    kept = max(min(budget - budget // 2, len(tail) - guard), 0)
    tail = tail[ceil_boundary(tail, len(tail) - kept) :]
    text = head.decode() + marker(max(ends.total - len(head) - len(tail), 0)) + tail.decode()
    return _rendered(text, whole=None, source_bytes=ends.total)


class _Ends:
    """The first and last bytes of a long text that is handed over in pieces."""

    def __init__(self, *, head: int, tail: int) -> None:
        self.tail_room = tail
        self.total = 0
        self._head: list[bytes] = []
        self._head_room = head
        self._tail: deque[bytes] = deque()
        self._tail_length = 0

    def add(self, piece: bytes) -> None:
        room = self._head_room - self.total
        self.total += len(piece)
        if room > 0:
            self._head.append(piece[:room])
            if len(piece) <= room:
                return
            piece = piece[room:]
        self._tail.append(piece)
        self._tail_length += len(piece)
        while self._tail_length - len(self._tail[0]) >= self.tail_room:
            self._tail_length -= len(self._tail.popleft())

    @property
    def apart(self) -> bool:
        """Whether there is a middle that belongs to neither end; said by the length alone, however the pieces fell."""
        return self.total > self._head_room + self.tail_room

    def whole(self) -> bytes:
        return b"".join((*self._head, *self._tail))

    def head_bytes(self) -> bytes:
        return b"".join(self._head)

    def tail_bytes(self) -> bytes:
        return b"".join(self._tail)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _rendered(text: str, *, whole: str | None, source_bytes: int) -> Rendered:
    kept_bytes = len(text) if text.isascii() else len(text.encode())
    cut = text != whole
    note = ""
    if cut:
        note = (
            f"The session is {_size(source_bytes)} of records; its beginning and its end are given, {_size(kept_bytes)}"
            f" in all. The middle is missing, and nothing may be concluded from its absence."
        )
    return Rendered(text=text, source_bytes=source_bytes, kept_bytes=kept_bytes, cut=cut, note=note)


def _size(count: int) -> str:
    if count < 10_000:
        return f"{count:,} bytes"
    return f"{count / 1000:,.0f} kB" if count < 10_000_000 else f"{count / 1e6:,.0f} MB"
