"""The unified diff between the baseline and a folder, in the form of the diff file (spec §1.8).

Whole files that came or went are written here; git compares the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from stillroom.pattern import late
from stillroom.workspace.tree import Entry

_HEADER = late(
    rb"(diff --git [^\n]*\n)((?:(?:old mode|new mode|new file mode|deleted file mode) [^\n]*\n)*)"
    rb"(?:index [^\n]*\n)?(?:(--- [^\n]*?)\t?\n(\+\+\+ [^\n]*?)\t?\n)?"
)
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


def modified(patch: bytes) -> Iterator[bytes]:
    """The parts of a patch by git, file by file, without index lines, hunk titles, and tabs after names with blanks.

    Lines of content begin with a blank, `+`, `-` or a backslash, so they can't be mistaken for a header.
    """
    for part in re.split(rb"^(?=diff --git )", patch, flags=re.MULTILINE):
        match = _HEADER.match(part)
        if match:
            names = b"%s\n%s\n" % (match[3], match[4]) if match[3] else b""
            yield match[1] + match[2] + names + _HUNK.sub(rb"\1", part[match.end() :])


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
