"""The full-text index: a file that is brought up to date before it is searched, and built again when it is damaged."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from stillroom.errors import RecallError
from stillroom.private_file import create_private
from stillroom.recall.fulltext.words import indexed
from stillroom.store.database import is_refusal
from stillroom.store.sql import parse_queries
from stillroom.store.texts import from_sql, to_sql

_QUERIES = parse_queries(Path(__file__).with_name("ranked.sql").read_text(encoding="utf-8"))
#: Raised whenever the tables, or what is put in, change: an index of another version is built again.
_VERSION = 3
_DAMAGED = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
#: Another process's refresh takes a second or two at most, the first one of a large home.
_BUSY_SECONDS = 20
#: A word of the title says more of a passage than one of its text.
_TITLE_WEIGHT = 4.0

T = TypeVar("T")


class Passage(NamedTuple):
    """A piece of memory that can be found."""

    title: str
    body: str
    #: The file in the memory folder that has it, or has it once the session is selected.
    path: str
    #: Where the body begins in its file, counted from 1.
    line: int = 1
    #: The folder that it is about; None: it is about no one folder.
    cwd: str | None = None
    updated_at: int | None = None  #: seconds


class Origin(NamedTuple):
    """Where passages come from: an equal stamp says that they are the same."""

    stamp: str
    load: Callable[[], Iterable[Passage]]


class Row(NamedTuple):
    """A passage that was found."""

    origin: str
    passage: Passage


class SearchIndex:
    """One file, used by any number of threads and processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Protects the connection: a transaction belongs to it, not to a thread.
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        #: How often the file was opened: it may be another one each time.
        self.openings = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        with self._lock:
            self._close()

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work`. A damaged index is thrown away first, and `work` done again: it has to bring the index up to
        date. Raises `RecallError` when the file can't be used."""
        with self._lock:
            try:
                try:
                    return work(self._opened())
                except (sqlite3.DatabaseError, OSError) as error:
                    if _is_damage(error):
                        self._throw_away()
                    elif is_refusal(error):
                        self._copy()
                    else:
                        raise
                    return work(self._opened())
            except (sqlite3.DatabaseError, OSError) as error:
                self._close()
                raise RecallError(
                    f"the search index `{self.path}` can't be used: {error}",
                    hint="it may be deleted at any time; it is built again from the memory",
                ) from error

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            create_private(self.path)
            self.openings += 1
            self._db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA secure_delete = ON")  # what a user has forgotten must not linger
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                self._throw_away()
                return self._opened()
            if not version:
                _create_tables(self._db)
        return self._db

    def _copy(self) -> None:
        """Go on in memory where the file can't be written, as in an agent's sandbox: with what it holds."""
        self._close()
        self.openings += 1
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(uri, uri=True)) as stored:
            if stored.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
                stored.backup(self._db)
                return
        _create_tables(self._db)

    def _throw_away(self) -> None:
        self._close()
        for suffix in ("", "-journal"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def refresh(db: sqlite3.Connection, origins: Mapping[str, Origin]) -> int:
    """Bring the index in line with the origins; returns how many were new, changed or gone."""
    if _stamps(db) == {name: origin.stamp for name, origin in origins.items()}:
        return 0
    db.execute("BEGIN IMMEDIATE")
    try:
        known = _stamps(db)  # another process may have been first
        gone = [name for name in known if name not in origins]
        changed = [name for name, origin in origins.items() if known.get(name) != origin.stamp]
        for name in (*gone, *(name for name in changed if name in known)):
            for query in ("delete_words", "delete_texts", "delete_passages"):
                db.execute(_QUERIES[query], {"origin": to_sql(name)})
        for name in changed:
            _add(db, name, origins[name])
        if gone:
            db.execute(_QUERIES["merge_words"])
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return len(gone) + len(changed)


def folders(db: sqlite3.Connection) -> list[str]:
    """Every folder that passages are about."""
    return [from_sql(row[0]) for row in db.execute(_QUERIES["list_folders"])]


def find(
    db: sqlite3.Connection, expression: str, *, among: Collection[str] | None, limit: int, offset: int
) -> list[Row]:
    """The passages that match, best first; with `among`, only those about one of these folders, or about none."""
    listed = None
    if among is not None:
        import json

        listed = json.dumps(sorted(among))
    rows = db.execute(
        _QUERIES["find"],
        {
            "expression": expression,
            "folders": listed,
            "title_weight": _TITLE_WEIGHT,
            "limit": limit,
            "offset": offset,
        },
    )
    return [
        Row(from_sql(origin), Passage(title, body, from_sql(path), line, cwd and from_sql(cwd), updated_at))
        for origin, cwd, updated_at, path, line, title, body in rows
    ]


def _stamps(db: sqlite3.Connection) -> dict[str, str]:
    return {from_sql(origin): stamp for origin, stamp in db.execute(_QUERIES["list_stamps"])}


def _add(db: sqlite3.Connection, name: str, origin: Origin) -> None:
    # An origin without a passage gets an empty one, which is never found: else it would be read at every refresh.
    for passage in list(origin.load()) or [Passage("", "", "")]:
        title, body = _storable(passage.title), _storable(passage.body)
        row = {
            "origin": to_sql(name),
            "stamp": origin.stamp,
            "cwd": passage.cwd and to_sql(passage.cwd),
            "updated_at": passage.updated_at,
            "path": to_sql(passage.path),
            "line": passage.line,
        }
        added = db.execute(_QUERIES["add_passage"], row).lastrowid
        db.execute(_QUERIES["add_text"], {"passage_id": added, "title": title, "body": body})
        db.execute(_QUERIES["add_words"], {"passage_id": added, "title": indexed(title), "body": indexed(body)})


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _create_tables(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("PRAGMA user_version").fetchone()[0]:  # read again under the lock
        for query in ("create_passages", "create_passages_by_origin", "create_texts", "create_words"):
            db.execute(_QUERIES[query])
        db.execute(f"PRAGMA user_version = {_VERSION}")
    db.execute("COMMIT")


def _is_damage(error: Exception) -> bool:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in _DAMAGED
