"""Nothing that should be gone hides where a database or a file is cut."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stillroom.config import Settings
from stillroom.undoing.planning import count_lines
from stillroom.undoing.residue import residue
from stillroom.undoing.traces import Finder, Traces

PHRASE = "the split of every bill rounds down by a cent"
NAME = "01a2273c-0036-7133-90f0-7698c74b216a"


def found(home: Path) -> dict[str, int]:
    """How often, by file."""
    finder = Finder(Traces(phrases=frozenset({PHRASE}), names=frozenset({NAME})))
    left = residue(Settings(home=home), lambda data: count_lines(finder, data))
    return {Path(each.place).name: each.count for each in left}


@pytest.mark.parametrize("text", [PHRASE, NAME])
def test_a_value_is_found_on_whatever_pages_its_parts_lie(tmp_path: Path, text: str) -> None:
    aheads = range(4096, 2 * 4096, 40)  # as long, so some of these have it on two pages
    with closing(sqlite3.connect(tmp_path / "a.sqlite3")) as db:
        db.execute("CREATE TABLE t (a TEXT, b TEXT)")
        rows = (("x", "y" * ahead + "\n" + text + "\n" + "z" * (14_000 - ahead)) for ahead in aheads)
        db.executemany("INSERT INTO t VALUES (?, ?)", rows)
        db.commit()
    assert found(tmp_path) == {"a.sqlite3": len(aheads)}


@pytest.mark.parametrize("text", [PHRASE, NAME])
def test_a_value_is_found_between_others_of_its_row(tmp_path: Path, text: str) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite3")) as db:
        db.execute("CREATE TABLE t (a TEXT, b TEXT, c BLOB)")
        db.execute("INSERT INTO t VALUES ('before', ?, 'behind')", (text,))
        db.commit()
    assert found(tmp_path) == {"a.sqlite3": 1}


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_long_file_is_found_at_whatever_byte_it_is_cut(tmp_path: Path, end: str) -> None:
    border = 1024 * 1024
    for ahead in range(border - 60, border + 20, 16):
        (tmp_path / f"{ahead}.log").write_text("y " * (ahead // 2) + end + NAME + end + " z" * 2000, encoding="utf-8")
    assert len(found(tmp_path)) == len(list(tmp_path.iterdir()))


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite3").write_bytes(b"SQLite format 3\0" + b"\xa5" * 5000)
    (left,) = residue(Settings(home=tmp_path), lambda data: 0)
    assert left.kind == "unreadable"
