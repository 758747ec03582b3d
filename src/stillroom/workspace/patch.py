"""The unified diff between the baseline and a folder, in the form of the diff file (spec §1.8).

How a text changed, git says; all around it is written here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from stillroom.pattern import late
from stillroom.workspace.tree import Entry

_HUNK = late(rb"^(@@ -[0-9,]+ \+[0-9,]+ @@)[^\n]*$", re.MULTILINE)
_NAMED = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}
_ODD = late(rb'[\x00-\x1f\x7f"\\]')


def added(path: str, data: bytes, entry: Entry) -> bytes:
    """The part of a file that is new."""
    head = b"diff --git %s %s\nnew file mode %s\n" % (_name("a", path), _name("b", path), entry.mode.encode("ascii"))
    if not data:
        return head
    names = b"--- /dev/null\n+++ %s\n" % _name("b", path)
    return head + names + b"@@ -0,0 +%s @@\n" % _span(data) + _lines(b"+", data)


def deleted(path: str, data: bytes, entry: Entry) -> bytes:
    """The part of a file that is gone."""
    head = b"diff --git %s %s\ndeleted file mode %s\n" % (
        _name("a", path),
        _name("b", path),
        entry.mode.encode("ascii"),
    )
    if not data:
        return head
    names = b"--- %s\n+++ /dev/null\n" % _name("a", path)
    return head + names + b"@@ -%s +0,0 @@\n" % _span(data) + _lines(b"-", data)


def modified(path: str, hunks: bytes, old: Entry, new: Entry) -> bytes:
    """The part of a file that is another now; its hunks lose the titles that git gave them."""
    head = b"diff --git %s %s\n" % (_name("a", path), _name("b", path))
    if old.mode != new.mode:
        head += b"old mode %s\nnew mode %s\n" % (old.mode.encode("ascii"), new.mode.encode("ascii"))
    if not hunks:
        return head
    return head + b"--- %s\n+++ %s\n" % (_name("a", path), _name("b", path)) + _HUNK.sub(rb"\1", hunks)


def bounded(parts: Iterator[bytes], *, max_bytes: int) -> str:
    """Lossy UTF-8, cut at a character boundary; that it was cut is said. Parts beyond the cut are not asked for."""
    texts: list[bytes] = []
    size = 0
    for part in parts:
        # One look beyond, so that what fits is whole; a lossy character takes three bytes at most.
        text = part[: max_bytes - size + 4]
        texts.append(text if text.isascii() else text.decode("utf-8", "replace").encode("utf-8"))
        size += len(texts[-1])
        if size > max_bytes:
            kept = b"".join(texts)[:max_bytes].decode("utf-8", "ignore")
            return f"{kept}\n\n[workspace diff truncated at {max_bytes} bytes]"
    return b"".join(texts).decode("utf-8")


def _lines(sign: bytes, data: bytes) -> bytes:
    whole = data.endswith(b"\n")
    body = sign + (data[:-1] if whole else data).replace(b"\n", b"\n" + sign) + b"\n"
    return body if whole else body + b"\\ No newline at end of file\n"


def _span(data: bytes) -> bytes:
    count = data.count(b"\n") + (not data.endswith(b"\n"))
    return b"1" if count == 1 else b"1,%d" % count


def _name(side: str, path: str) -> bytes:
    """A path as git shows it: in quotes when a character could end the line or the quotes."""
    raw = side.encode("ascii") + b"/" + os.fsencode(path)
    if not _ODD.search(raw):
        return raw
    escaped = _ODD.sub(lambda match: b"\\" + _NAMED.get(match[0][0], b"%03o" % match[0][0]), raw)
    return b'"%s"' % escaped
