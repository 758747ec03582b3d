"""Opens every file below a place in the memory folder, one after the other, in the order of their paths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from stillroom.config import LOOKUP, Lookup
from stillroom.errors import NotFound, RecallError
from stillroom.folders import listed
from stillroom.recall.browse.paths import Node, components, open_step, opened_path


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder that could not be read."""

    path: str
    reason: str


class Met(NamedTuple):
    """A file on the way, open until the next one is asked for."""

    path: str
    node: Node


class Walk:
    """One way through the folder. Links, special files and hidden names are passed over in silence."""

    def __init__(self, *, limits: Lookup = LOOKUP) -> None:
        #: The first few that could not be opened; whoever reads adds those that are no text.
        self.skipped: list[Skipped] = []
        self._limits = limits

    def files(self, root: Path, path: str | None = None) -> Iterator[Met]:
        """Every file at or below `path`. Raises what `opened_path` does."""
        at = "/".join(components(path))
        with opened_path(root, path) as node:
            if node.is_folder:
                yield from self._folder(node.descriptor, f"{at}/" if at else "", 0)
            else:
                yield Met(at, node)

    def skip(self, path: str, reason: str) -> None:
        """Tell of a file that can't be used."""
        if len(self.skipped) < self._limits.skipped_told:
            self.skipped.append(Skipped(path=os.fsencode(path).decode("utf-8", "replace"), reason=reason))

    def _folder(self, descriptor: int, prefix: str, depth: int) -> Iterator[Met]:
        try:
            with listed(descriptor) as listing:
                seen = [entry for entry in listing if not entry.name.startswith(".")]
        except OSError as error:
            self.skip(prefix.rstrip("/") or ".", f"can't be listed: {error.strerror}")
            return
        # With the slash a folder stands where the paths of its files do.
        names = [entry.name for entry in seen if entry.is_file(follow_symlinks=False)]
        names += [f"{entry.name}/" for entry in seen if entry.is_dir(follow_symlinks=False)]
        for name in sorted(names):
            path = (prefix + name).rstrip("/")
            if name.endswith("/") and depth >= self._limits.max_folder_depth:
                self.skip(path, "lies too deep")
                continue
            try:
                node = open_step(descriptor, name.rstrip("/"), path)
            except NotFound:
                continue  # gone since it was listed
            except RecallError as error:
                self.skip(path, str(error))
                continue
            try:
                if node.is_folder:
                    yield from self._folder(node.descriptor, f"{path}/", depth + 1)
                else:
                    yield Met(path, node)
            finally:
                os.close(node.descriptor)
