"""Makes the copy of the memory folder that a run works on."""

from __future__ import annotations

import errno
from pathlib import Path

from stillroom import folders
from stillroom.config import StageTwo
from stillroom.errors import WorkspaceError
from stillroom.workspace.history import gather
from stillroom.workspace.scanning import Memory, Scan, scan
from stillroom.workspace.tree import DIFF_FILE, Entry, drop, naming, opened, parent, remove_tree, write_new


def copy(root: Path, target: Path, *, memory: Memory, target_memory: Memory, limits: StageTwo) -> dict[str, Entry]:
    """Make `target` hold the files of `root` and nothing else; what is the same already stays."""
    old = _reusable(target, target_memory, limits)
    contents, live = gather(root, old.files, limits=limits, memory=memory)
    with opened(target) as below:
        drop(below, DIFF_FILE)
        for path in old.files.keys() - live.files.keys():
            with parent(below, path, create=False) as (descriptor, name):
                folders.unlink(descriptor, name)
        for path in reversed(old.folders):
            try:
                with parent(below, path, create=False) as (descriptor, name):
                    folders.remove_folder(descriptor, name)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
        for path, content in contents.items():
            with naming(path, "copied"), parent(below, path, create=True) as (descriptor, name):
                drop(descriptor, name)
                write_new(descriptor, name, content.data, executable=content.executable, durable=False)
    return live.files


def _reusable(target: Path, memory: Memory, limits: StageTwo) -> Scan:
    """What an old copy holds. One with anything odd in it is not worth the thought: begin anew."""
    if target.is_dir():
        try:
            found = scan(target, limits=limits, memory=memory)
        except WorkspaceError:
            found = None
        odd = found is None or (found.links + found.odd + found.too_large + found.shared)
        if found is not None and not odd and set(found.unseen) <= {DIFF_FILE}:
            return found
        remove_tree(target)
    target.mkdir(mode=0o700)
    return Scan()
