"""Whether the file of the state database is whole, looked at without changing it or bringing it up to date."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from stillroom.config import DatabaseLimits
from stillroom.store.database import APPLICATION_ID, MIGRATIONS, create_schema, is_empty, looking, schema_version
from stillroom.store.sql import execute

#: One damaged page may make a thousand complaints.
_TOLD_DAMAGE = 5


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at the file found."""

    schema_version: int
    known_version: int
    #: It says that it is ours; a file without tables is nobody's yet.
    is_ours: bool
    #: SQLite's own words; empty: every page is as it should be.
    damage: tuple[str, ...] = ()
    #: Rows that name a row that is not there.
    broken_references: int = 0
    #: Tables, indexes and triggers that its version has, and it has not.
    missing: tuple[str, ...] = ()


def examine(path: Path, *, limits: DatabaseLimits) -> Health:
    """Read the whole file: about a second for a gigabyte. Raises `StoreUnavailable` for one that can't be read."""
    with looking(path, limits=limits) as db:
        version = schema_version(db)
        ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        if not ours or version > len(MIGRATIONS):
            return Health(schema_version=version, known_version=len(MIGRATIONS), is_ours=ours or is_empty(db))
        answers = [row[0] for row in db.execute(f"PRAGMA quick_check({_TOLD_DAMAGE})")]
        return Health(
            schema_version=version,
            known_version=len(MIGRATIONS),
            is_ours=True,
            damage=() if answers == ["ok"] else tuple(str(answer) for answer in answers),
            broken_references=len(db.execute("PRAGMA foreign_key_check").fetchall()),
            missing=tuple(sorted(_expected(version) - _names(db))),
        )


def _expected(version: int) -> set[str]:
    with closing(sqlite3.connect(":memory:")) as db:
        create_schema(db, version=version)
        return _names(db)


def _names(db: sqlite3.Connection) -> set[str]:
    return {f"{kind} {name}" for kind, name in execute(db, "list_schema")}


__all__ = ["Health", "examine"]
