"""Any Python string goes into SQLite and comes back the same.

A path with bytes that are not UTF-8 is a `str` with lone surrogates, which SQLite's text can't hold. Such a string is
stored as bytes.
"""

from __future__ import annotations

import sqlite3
from typing import Any


def to_sql(text: str) -> str | bytes:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def from_sql(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def columns(values: dict[str, Any]) -> dict[str, Any]:  # Any: what a record holds is checked where it is made
    """A record's values as parameters of a query."""
    return {name: to_sql(value) if isinstance(value, str) else value for name, value in values.items()}


def values(row: sqlite3.Row) -> dict[str, Any]:  # Any: the schema says what a column holds
    """A row's columns as values of a record."""
    return {name: from_sql(row[name]) if isinstance(row[name], bytes) else row[name] for name in row.keys()}  # noqa: SIM118
