"""Takes statements out of the files of a memory folder."""

from __future__ import annotations

from pathlib import Path

from stillroom.tombstones import Buried, without
from stillroom.workspace.layout import may_publish
from stillroom.workspace.scanning import scan
from stillroom.workspace.tree import DEFAULTS, Entry, drop, opened, parent, write_new


def rewrite_statements(folder: Path, buried: Buried) -> tuple[str, ...]:
    """Write what a consolidation may write without these statements; returns the paths that changed."""
    changed: dict[str, bytes] = {}

    def visit(path: str, data: bytes, _: Entry) -> None:
        if may_publish(path):
            text, gone = without(data.decode("utf-8", "surrogateescape"), buried)
            if gone:
                changed[path] = text.encode("utf-8", "surrogateescape")

    scan(folder, limits=DEFAULTS, visit=visit)
    for path, data in changed.items():
        _put(folder, path, data)
    return tuple(sorted(changed))


def put_text(folder: Path, path: str, text: str | None) -> None:
    """Write a file of the folder anew; None: it goes."""
    _put(folder, path, None if text is None else text.encode("utf-8", "surrogateescape"))


def _put(folder: Path, path: str, data: bytes | None) -> None:
    with opened(folder) as root, parent(root, path, create=False) as (below, name):
        drop(below, name)
        if data is not None:
            write_new(below, name, data, executable=False, durable=False)


__all__ = ["put_text", "rewrite_statements"]
