"""Every value that a database file holds, as SQLite reads it: on its pages the parts of a long one lie apart, and the
values of a row stand one behind the other with nothing between.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

_MAGIC = b"SQLite format 3\0"
#: Values that are given together.
_BATCH_BYTES = 1024 * 1024


def is_database(path: Path) -> bool:
    """Whether the file begins as SQLite's do. Raises `OSError`."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def values_of(path: Path) -> Iterator[bytes]:
    """All texts and blobs of all tables, a line between two. Changes nothing. Raises `sqlite3.Error`."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        db.text_factory = bytes
        tables = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0").fetchall()
        held: list[bytes] = []
        size = 0
        for (table,) in tables:
            for row in db.execute(f'SELECT * FROM "{table.decode()}"'):
                texts = [value for value in row if type(value) is bytes]
                held += texts
                size += sum(map(len, texts))
                if size > _BATCH_BYTES:
                    yield b"\n".join(held)
                    held, size = [], 0
        yield b"\n".join(held)
