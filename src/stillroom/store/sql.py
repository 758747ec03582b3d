"""The statements of `queries.sql`, by name. Python holds no SQL.

A query starts with a line `-- its_name --`; the comment lines below say what it is for; the statement follows.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

_NAME = re.compile(r"-- ([a-z0-9_]+) --")


def parse_queries(text: str) -> dict[str, str]:
    """Split named queries. Raises `ValueError` for a name that comes twice or has no statement."""
    lines: dict[str, list[str]] = {}
    statement: list[str] = []
    for line in text.splitlines():
        if name := _NAME.fullmatch(line.strip()):
            if name[1] in lines:
                raise ValueError(f"the query `{name[1]}` comes twice")
            statement = lines[name[1]] = []
        elif not line.lstrip().startswith("--"):
            statement.append(line)
    queries = {name: "\n".join(statement).strip() for name, statement in lines.items()}
    if empty := [name for name, statement_text in queries.items() if not statement_text]:
        raise ValueError(f"no statement under {empty}")
    return queries


QUERIES = parse_queries(Path(__file__).with_name("queries.sql").read_text(encoding="utf-8"))


def execute(db: sqlite3.Connection, query: str, /, **parameters: object) -> sqlite3.Cursor:
    """Run the query of this name."""
    return db.execute(QUERIES[query], parameters)
