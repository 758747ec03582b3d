"""Compares and merges texts with git's own rules, without a repository."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stillroom.pattern import late
from stillroom.workspace.program import call, failed

#: So much of what two texts begin or end with goes to git as well: it shows three lines of it, and among equal lines
#: chooses those that it would have chosen knowing all of them.
_MARGIN_BYTES = 64 * 1024
#: git wants one; what is compared or merged here is in none.
_NO_REPOSITORY = Path(os.devnull)
_PLACE = late(rb"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@", re.MULTILINE)
_DIFF = (
    *("diff", "--no-index", "--text", "--unified=3", "--no-prefix", "--no-renames", "--no-color"),
    *("--no-ext-diff", "--no-textconv", "--diff-algorithm=myers"),
)


class Pair(NamedTuple):
    """A text as it was and as it is."""

    old: bytes
    new: bytes


def hunks(pairs: Sequence[Pair]) -> list[bytes]:
    """How each text changed: the hunks of a unified diff, nothing where it is the same."""
    found = [b""] * len(pairs)
    middles = {number: _middle(*pair) for number, pair in enumerate(pairs) if pair.old != pair.new}
    if not middles:
        return found
    import tempfile  # most commands need none, and it takes longer to load than git to answer

    with tempfile.TemporaryDirectory(prefix="stillroom-diff-") as place:
        for side in Pair._fields:
            (Path(place) / side).mkdir()
        for number, (pair, _) in middles.items():
            for side, data in zip(Pair._fields, pair, strict=True):
                (Path(place) / side / str(number)).write_bytes(data)
        answer = call(*_DIFF, *Pair._fields, git_dir=_NO_REPOSITORY, folder=Path(place))
    if answer.returncode not in (0, 1):
        raise failed("diff", answer)
    # A line of content begins with a blank, a sign or a backslash: none can be taken for a header.
    for part in re.split(rb"^diff --git old/(?=\d+ new/)", answer.stdout, flags=re.MULTILINE)[1:]:
        number = int(part.partition(b" ")[0])
        found[number] = _moved(part[part.index(b"\n@@ ") + 1 :], middles[number].lines_before)
    return found


class _Middle(NamedTuple):
    pair: Pair
    lines_before: int


def _middle(old: bytes, new: bytes) -> _Middle:
    """Where two texts differ, in whole lines: git reads, hashes and compares every line that it is given."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start = old.rfind(b"\n", 0, max(head - _MARGIN_BYTES, 0)) + 1
    end = old.find(b"\n", len(old) - max(tail - _MARGIN_BYTES, 0)) + 1 or len(old)
    return _Middle(Pair(old[start:end], new[start : len(new) - len(old) + end]), old.count(b"\n", 0, start))


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _moved(hunks: bytes, lines: int) -> bytes:
    """The same hunks, of texts with so many lines more before them."""
    if not lines:
        return hunks
    return _PLACE.sub(lambda at: b"@@ -%d%b +%d%b @@" % (int(at[1]) + lines, at[2], int(at[3]) + lines, at[4]), hunks)


def merge(current: bytes, base: bytes, other: bytes) -> bytes | None:
    """`current` with what changed from `base` to `other`; None where both changed the same lines."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="stillroom-merge-") as place:
        paths = [Path(place) / name for name in ("current", "base", "other")]
        for path, data in zip(paths, (current, base, other), strict=True):
            path.write_bytes(data)
        answer = call("merge-file", "--stdout", "--quiet", *map(str, paths), git_dir=_NO_REPOSITORY)
    return answer.stdout if answer.returncode == 0 else None
