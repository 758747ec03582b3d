"""The folder in which runs keep their copies of the memory folder, each in a folder of its own, with a lock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stillroom.errors import WorkspaceError
from stillroom.system import LOCK_FILE, lock
from stillroom.workspace.tree import naming, remove_tree, shown

#: What the agent works on.
TREE = "tree"
#: An old copy, as the start of the next.
SPARE = "spare"
LOCK = ".lock"


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a file's lock for the block; without `wait`, False when another process has it. A dead process has none."""
    descriptor = os.open(path, LOCK_FILE, 0o600)
    try:
        yield lock(descriptor, wait=wait)
    finally:
        os.close(descriptor)


def make_ours(staging_dir: Path) -> None:
    """Create the folder. One with other things in it is not ours to clear: our lock has always been there first."""
    with naming(str(staging_dir), "created"):
        staging_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (staging_dir / LOCK).exists() and (others := sorted(path.name for path in staging_dir.iterdir())):
        raise WorkspaceError(
            f"`{staging_dir}` holds `{shown(others[0])}`, which is none of Stillroom's",
            hint="move it away, or set `STILLROOM_HOME` to a folder of its own",
        )


def is_run(path: Path) -> bool:
    """A run locks its folder before anything else; what has no lock and is not empty, somebody else put there."""
    if path.name == SPARE or path.is_symlink() or not path.is_dir():
        return False
    return (path / LOCK).exists() or not any(path.iterdir())


def retire(run: Path) -> None:
    """Clear a run away, with the lock of the staging folder held.

    One old copy stays as the start of the next: most of its files will be the same then.
    """
    spare = run.parent / SPARE
    if (run / TREE).is_dir() and not spare.exists():
        (run / TREE).rename(spare)
    remove_tree(run)


def forget_copies(staging_dir: Path) -> None:
    """Delete the old copy that runs keep to be quick: for whoever wants a text gone from this machine."""
    if staging_dir.is_dir():
        with locked(staging_dir / LOCK, wait=True):
            remove_tree(staging_dir / SPARE)
