"""The folders in which threads ran, and which project each was when it was last there.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from stillroom.store.records import Checkout, Folder
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import columns, values


def newest(db: sqlite3.Connection, *, limit: int) -> list[Folder]:
    return [_folder(values(row)) for row in execute(db, "list_folders", limit=limit)]


def save(db: sqlite3.Connection, found: Iterable[tuple[str, Checkout]]) -> None:
    rows = (columns({"cwd": cwd, **msgspec.structs.asdict(checkout)}) for cwd, checkout in found)
    db.executemany(QUERIES["save_folder"], rows)


def _folder(row: dict[str, object]) -> Folder:
    checkout = None
    if row["is_known"]:
        fields = {name: row[name] for name in Checkout.__struct_fields__}
        checkout = msgspec.convert({**fields, "is_git": bool(row["is_git"])}, Checkout)
    return Folder(
        cwd=str(row["cwd"]),
        git_origin_url=str(row["git_origin_url"]) if row["git_origin_url"] else None,
        has_output=bool(row["has_output"]),
        checkout=checkout,
    )
