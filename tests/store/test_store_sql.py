"""The parser of named queries, and the queries themselves."""

from __future__ import annotations

import ast
import re
import sqlite3
from pathlib import Path

import pytest

from stillroom import store
from stillroom.clock import FixedClock
from stillroom.store import Store
from stillroom.store.sql import QUERIES, parse_queries

ROOM = Path(store.__file__).parent


def test_a_query_has_a_name_a_sentence_and_a_statement() -> None:
    text = (
        "-- a preface\n\n-- one --\n-- What for.\nSELECT 1;\n\n-- two --\n-- And this.\nSELECT 2\n-- inside\nFROM t;\n"
    )
    assert parse_queries(text) == {"one": "SELECT 1;", "two": "SELECT 2\nFROM t;"}


@pytest.mark.parametrize("text", ["-- one --\nSELECT 1;\n-- one --\nSELECT 2;", "-- one --\n-- Only a sentence.\n"])
def test_a_name_that_comes_twice_or_without_a_statement_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="one"):
        parse_queries(text)


def test_every_query_compiles_and_tells_its_purpose(tmp_path: Path) -> None:
    Store.open(tmp_path / "state.sqlite3", clock=FixedClock(0)).close()
    db = sqlite3.connect(tmp_path / "state.sqlite3")
    for query in QUERIES.values():
        parameters = dict.fromkeys(re.findall(r":([a-z_]+)", query), 1)
        db.execute(f"EXPLAIN {query}", parameters).fetchall()
    db.close()
    text = (ROOM / "queries.sql").read_text(encoding="utf-8")
    assert re.findall(r"^-- [a-z0-9_]+ --\n(?!-- [A-Z])", text, re.MULTILINE) == []


def test_every_query_is_used_and_python_holds_no_sql() -> None:
    strings = [
        node.value
        for path in ROOM.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert set(QUERIES) <= set(strings)
    # What is not about our tables: pragmas, transactions, the look into a stranger's file, and that at every value.
    statements = {s for s in strings if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE)\b", s)}
    assert statements == {
        "SELECT 1 FROM sqlite_master LIMIT 1",
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0",
        'SELECT * FROM "',
    }


def test_the_scan_never_touches_the_table_of_threads(tmp_path: Path) -> None:
    Store.open(tmp_path / "state.sqlite3", clock=FixedClock(0)).close()
    db = sqlite3.connect(tmp_path / "state.sqlite3")
    for name in ("find_scan_edge", "scan_threads"):
        parameters = dict.fromkeys(re.findall(r":([a-z_]+)", QUERIES[name]), 1)
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", parameters)]
        assert "USING COVERING INDEX threads_eligible" in plan[0]
        assert not any("TEMP B-TREE" in step for step in plan)
    db.close()
