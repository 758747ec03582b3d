"""How a repository looks from outside: an equal look says that git wrote nothing since. No program is started."""

from __future__ import annotations

import os
from pathlib import Path

from stillroom.recall.injection.prepared import stamp_of
from stillroom.system import READ

_WRITTEN = ("HEAD", "index", "logs/HEAD", "packed-refs")
_POINTER_BYTES = 8192


def look_of(folder: str, place: str) -> list[list[int] | None]:
    """The stamps of what git writes at a commit, a checkout, a pull. `place` is the repository's, `folder` the work
    tree's."""
    git_dir = git_dir_of(folder, place)
    return [stamp_of(f"{git_dir}/{name}") for name in _WRITTEN]


def git_dir_of(folder: str, place: str) -> str:
    """The git directory of the work tree itself: worktrees have an index and a HEAD of their own."""
    try:
        descriptor = os.open(f"{folder}/.git", READ)
    except OSError:
        return place
    try:
        text = os.fsdecode(os.read(descriptor, _POINTER_BYTES)).strip()
    except OSError:  # a folder: the main work tree
        return place
    finally:
        os.close(descriptor)
    directory = Path(folder, text.removeprefix("gitdir:").strip())
    return str(directory) if text.startswith("gitdir:") and directory.is_dir() else place
