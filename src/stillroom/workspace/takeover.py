"""Asks before a folder that another program keeps memories in becomes ours.

The first run in such a folder deletes the rollout summaries of threads that we don't know (spec §1.7), and what the
handbook says because of them. That is for a person to decide, and what was there is kept in the history first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from stillroom.config import StageTwo
from stillroom.errors import MemoriesFound
from stillroom.workspace.artifacts import RAW_MEMORIES, SUMMARIES, is_written_by_code, raw_memories_text
from stillroom.workspace.history import History
from stillroom.workspace.scanning import scan
from stillroom.workspace.tree import DEFAULTS, shown

_HINT = "`stillroom run --adopt` takes it over: what is in it is kept in history.git first"


def check_consent(
    root: Path, history: History, *, has_succeeded: bool, adopt: bool, limits: StageTwo = DEFAULTS
) -> bool:
    """Whether a person consents to our taking over what another program wrote; False when there is none of it.

    Raises `MemoriesFound`, having changed nothing, when there is and they don't. `has_succeeded`: there was a
    consolidation before.
    """
    found = list(_memories(root))
    if not found or _is_ours(root, history, has_succeeded=has_succeeded, limits=limits):
        return False
    if not adopt:
        raise MemoriesFound(f"`{root}` holds memories that Stillroom did not write: {_told(found)}", hint=_HINT)
    return True


def _memories(root: Path) -> Iterator[str]:
    """Files in the places that code writes. Nothing behind a link is in the folder."""
    if root.is_symlink():
        return
    raw, summaries = root / RAW_MEMORIES, root / SUMMARIES
    if raw.is_file() and not raw.is_symlink() and not _says_none(raw):
        yield RAW_MEMORIES
    if summaries.is_symlink():
        return
    for folder, folders, files in os.walk(summaries):
        folders.sort()
        for path in (Path(folder, name) for name in sorted(files)):
            if is_written_by_code(relative := str(path.relative_to(root))) and not path.is_symlink():
                yield relative


def _says_none(raw: Path) -> bool:
    """Codex writes the file before there are any."""
    none = raw_memories_text(()).encode()
    with raw.open("rb") as file:
        return file.read(len(none) + 1) == none


def _is_ours(root: Path, history: History, *, has_succeeded: bool, limits: StageTwo) -> bool:
    if not history.git_dir.is_dir():
        return has_succeeded
    noted = history.noted_folder()
    if noted is None or noted == str(root.resolve()):
        return True
    # Another folder than last time: it may still be the same one, moved.
    if not history.repository.loads():
        return False
    baseline = history.baseline()
    present = scan(root, limits=limits).files
    return any(is_written_by_code(path) and baseline.get(path) == entry for path, entry in present.items())


def _told(found: list[str]) -> str:
    summaries = [path for path in found if path != RAW_MEMORIES]
    parts = [f"`{RAW_MEMORIES}`"] if len(summaries) < len(found) else []
    if len(summaries) == 1:
        parts.append(f"`{shown(summaries[0])}`")
    elif summaries:
        parts.append(f"{len(summaries):,} files in `{SUMMARIES}`, `{shown(Path(summaries[0]).name)}` one of them")
    return " and ".join(parts)
