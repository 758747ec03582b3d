"""Make a line of JSON small while it passes by: base64 becomes its size, huge strings lose their middle."""

from __future__ import annotations

from stillroom.config import READING, Reading
from stillroom.pattern import late
from stillroom.rollouts.rare import holder

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_TO_MASK = bytes(97 if byte in _LETTERS else 32 for byte in range(256))
# Where a JSON string may be cut: at the start of a run of backslashes, or where no escape can reach. Not between the
# two halves of a surrogate pair, nor inside a UTF-8 character.
_SAFE = late(rb"(?<=[^\\])\\(?!u[dD][c-fC-F])|(?<=[^\\]{6})[^\\\x80-\xbf]")
_SEARCHED_BYTES = 4096
_holds_escaped_quote = holder(b'\\"')
# The longest escape, `\uXXXX`, without its backslash.
_ESCAPE_BYTES = 5


class Squeezer:
    """Takes one line in pieces; memory stays at a few times `limit` whatever the line holds."""

    def __init__(self, *, limit: int, reading: Reading = READING) -> None:
        self._limit = limit
        self._chunk = reading.chunk_bytes
        self._run = reading.blob_run_bytes
        self._needle = b"a" * reading.blob_run_bytes
        # Of a blob every 64th byte is a letter, too: where a look at these finds none, there is none.
        self._stride = max(reading.blob_run_bytes // 64, 1)
        self._sampled = self._needle[: reading.blob_run_bytes // self._stride]
        self._end = reading.string_end_bytes
        self._out = bytearray()
        self._held = b""  # the end of the last piece: what may become a blob, or half an escape
        self._blob = 0  # bytes of the blob that is passing
        self._inside = False  # a string
        self._head = bytearray()  # of the string that is passing
        self._tail = bytearray()
        self._length = 0
        self.overflowed = False

    def feed(self, piece: bytes) -> None:
        """Take the next piece, of any size."""
        for start in range(0, len(piece), self._chunk):
            if not self.overflowed:
                self._shrink_blobs(self._held + piece[start : start + self._chunk], last=False)

    def finish(self) -> bytes | None:
        """The line; None if it stays over the limit or ends inside a string."""
        if not self.overflowed:
            self._shrink_blobs(self._held, last=True)
        return None if self.overflowed or self._inside else bytes(self._out)

    def _shrink_blobs(self, data: bytes, *, last: bool) -> None:
        """Pass `data` on with its blobs replaced, and hold back what the next piece decides about."""
        self._held = b""
        # Of a blob that goes on most pieces are letters throughout, which is told at half the cost of a mask.
        if self._blob and not last and not data.translate(None, _LETTERS):
            self._blob += len(data)
            return
        mask = self._mask(data)
        at = 0
        if self._blob:
            at = _run_end(mask, 0)
            self._blob += at
            if at == len(data) and not last:
                return
            self._close_blob()
        while (start := mask.find(self._needle, at)) >= 0:
            # The letters of an escape belong to it, not to the blob.
            kept = start + _ESCAPE_BYTES if data[start - 1 : start] == b"\\" else start
            self._shrink_strings(data[at:kept])
            at = _run_end(mask, start)
            self._blob = at - kept
            if at == len(data) and not last:
                return
            self._close_blob()
        end = len(data)
        if not last:
            end = max(mask.rfind(b" ") + 1, at)
            # A backslash goes with what it escapes.
            while end > at and data[end - 1] == 0x5C:
                end -= 1
        self._held = data[end:]
        if len(self._held) > 2 * self._run:  # nothing but backslashes: no text is lost with them
            self.overflowed = True
        self._shrink_strings(data[at:end])

    def _mask(self, data: bytes) -> bytes:
        """`a` for a letter and a space for all else; a space for a letter, too, far from the end and in no blob."""
        if self._blob or self._sampled in data[:: self._stride].translate(_TO_MASK):
            return data.translate(_TO_MASK)
        clear = max(len(data) - self._run, 0)
        return b" " * clear + data[clear:].translate(_TO_MASK)

    def _close_blob(self) -> None:
        self._shrink_strings(b"[blob: %d bytes]" % self._blob)
        self._blob = 0

    def _shrink_strings(self, data: bytes) -> None:
        """Write `data`, which never ends inside an escape, keeping only both ends of huge strings."""
        # Where no quote has a backslash ahead of it, none is escaped; most data is like that, and looking is cheap.
        quotes = data.replace(b"\\\\", b"  ").replace(b'\\"', b"  ") if _holds_escaped_quote(data) else data
        at = 0
        while at < len(data) and not self.overflowed:
            quote = quotes.find(b'"', at)
            end = quote if quote >= 0 else len(data)
            if self._inside:
                self._keep(data[at:end])
                if quote >= 0:
                    self._close_string()
            else:
                self._out += data[at:end]
            if quote >= 0:
                self._out += b'"'
                self._inside = not self._inside
            at = end + 1
            self.overflowed = len(self._out) > self._limit

    def _keep(self, text: bytes) -> None:
        self._length += len(text)
        room = self._end - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail += text
        if len(self._tail) > 2 * self._end:
            del self._tail[: -self._end]

    def _close_string(self) -> None:
        if self._length == len(self._head) + len(self._tail):
            self._out += self._head
            self._out += self._tail
        else:
            head = bytes(self._head)
            searched = max(len(head) - _SEARCHED_BYTES, 0)
            # Nearer to the end it can't be seen whether the second half of a pair follows.
            safe = [at for match in _SAFE.finditer(head, searched) if (at := match.start()) <= len(head) - 4]
            head = head[: safe[-1] if safe else 0]
            tail = bytes(self._tail[-self._end :])
            first = _SAFE.search(tail, 0, _SEARCHED_BYTES)
            tail = tail[first.start() :] if first else b""
            self._out += head
            self._out += "[… %d bytes cut …]".encode() % (self._length - len(head) - len(tail))
            self._out += tail
        self._head.clear()
        self._tail.clear()
        self._length = 0


def _run_end(mask: bytes, start: int) -> int:
    end = mask.find(b" ", start)
    return end if end >= 0 else len(mask)
