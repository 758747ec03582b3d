"""Compares and merges texts with git's own rules, without a repository."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stillroom.workspace.program import call, failed

#: git wants one; what is compared or merged here is in none.
_NO_REPOSITORY = Path(os.devnull)
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
    if all(old == new for old, new in pairs):
        return found
    import tempfile  # most commands need none, and it takes longer to load than git to answer

    with tempfile.TemporaryDirectory(prefix="stillroom-diff-") as place:
        for side in Pair._fields:
            (Path(place) / side).mkdir()
        for number, pair in enumerate(pairs):
            for side, data in zip(Pair._fields, pair, strict=True):
                (Path(place) / side / str(number)).write_bytes(data)
        answer = call(*_DIFF, *Pair._fields, git_dir=_NO_REPOSITORY, folder=Path(place))
    if answer.returncode not in (0, 1):
        raise failed("diff", answer)
    # A line of content begins with a blank, a sign or a backslash: none can be taken for a header.
    for part in re.split(rb"^diff --git old/(?=\d+ new/)", answer.stdout, flags=re.MULTILINE)[1:]:
        found[int(part.partition(b" ")[0])] = part[part.index(b"\n@@ ") + 1 :]
    return found


def merge(current: bytes, base: bytes, other: bytes) -> bytes | None:
    """`current` with what changed from `base` to `other`; None where both changed the same lines."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="stillroom-merge-") as place:
        paths = [Path(place) / name for name in ("current", "base", "other")]
        for path, data in zip(paths, (current, base, other), strict=True):
            path.write_bytes(data)
        answer = call("merge-file", "--stdout", "--quiet", *map(str, paths), git_dir=_NO_REPOSITORY)
    return answer.stdout if answer.returncode == 0 else None
