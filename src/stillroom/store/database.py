"""One SQLite file in WAL mode: opened, migrated, and used by any number of threads and processes.

A process has one connection a store, and a lock lets one thread at a time use it. Writing transactions take SQLite's
write lock at their start (`BEGIN IMMEDIATE`): a transaction that reads first and then wants to write can't be made to
wait by SQLite, it fails with "database is locked".
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from stillroom.config import DatabaseLimits
from stillroom.errors import NewerSchema, StoreReadOnly, StoreUnavailable
from stillroom.private_file import create_private
from stillroom.store.holders import holders
from stillroom.system import Room

#: In the file's header: tells our database from somebody else's (ASCII "Stil").
APPLICATION_ID = 0x5374696C

#: The file that brings a database from version N to N + 1, N being its place here.
MIGRATIONS = (
    "schema.sql",
    "migrations/0002_repositories.sql",
    "migrations/0003_memory_uses.sql",
    "migrations/0004_budgets.sql",
    "migrations/0005_taken_back.sql",
    "migrations/0006_thread_reads.sql",
    "migrations/0007_trusted_lines.sql",
    "migrations/0008_made_by.sql",
    "migrations/0009_unknown_fields.sql",
    "migrations/0010_forgotten_exchanges.sql",
    "migrations/0011_thread_contents.sql",
    "migrations/0012_thread_copies.sql",
    "migrations/0013_life_of_outputs.sql",
    "migrations/0014_memory_lines.sql",
    "migrations/0015_tombstones.sql",
    "migrations/0016_without_unknown_fields.sql",
)
#: What all of them come to, in a quarter of the time. `make docs` writes it, a test compares the two.
_HEAD = "head.sql"

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_REFUSED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL}
_DAMAGED = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_UNWRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT}
_OPEN_RETRY_SECONDS = 0.02
#: The shared memory of a database grows by 32 KiB, its log by about as much.
_LEAST_ROOM_BYTES = 128 * 1024


class Database:
    """An open state database."""

    def __init__(self, path: Path, limits: DatabaseLimits, *, in_memory: bool = False) -> None:
        """`in_memory`: a copy of what is there now; the file is only read, and need not be there."""
        self.path = path
        self._in_memory = in_memory
        self._limits = limits
        #: Protects the connection: a transaction belongs to a connection, not to a thread.
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = self._open()
        _OPEN.add(self)

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """Read one state; writers go on meanwhile. Fetch all rows before leaving."""
        return self._transaction("BEGIN")

    def write(self) -> AbstractContextManager[sqlite3.Connection]:
        """Read and write in one transaction, alone. An exception rolls everything back."""
        return self._transaction("BEGIN IMMEDIATE")

    def compact(self) -> bool:
        """Write the file anew without its free pages, and empty the log; False: another process still reads the log."""
        with self._lock, self._typed_errors():
            db = self._connection()
            db.execute("PRAGMA temp_store = MEMORY")  # no copy of it anywhere else
            db.execute("VACUUM")
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        with self._lock:
            if self._db:
                self._db.close()

    def after_fork(self) -> None:
        """In a process that was forked off: use nothing of the parent's connection, not even to close it."""
        self._lock = threading.Lock()  # another thread of the parent may have held it
        _INHERITED.append(self._db)
        self._db = None

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = self._open()
        return self._db

    def _open(self) -> sqlite3.Connection:
        with self._typed_errors():
            if not self._in_memory:
                create_private(self.path)
            db = sqlite3.connect(
                ":memory:" if self._in_memory else self.path,
                timeout=self._limits.busy_timeout_ms / 1000,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                db.row_factory = sqlite3.Row
                if self._in_memory and self.path.exists():
                    with looking(self.path, limits=self._limits) as source:
                        source.backup(db)
                self._prepare(db)
            except BaseException:
                db.close()
                raise
            return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Bring the file up to our version. Nothing is written before it is known to be ours."""
        self._check_ours(db)
        self._enter_wal(db)
        db.execute("PRAGMA synchronous = NORMAL")  # a power cut may undo the last commits, never damage the file
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")  # what a user has forgotten must not linger in free pages
        if schema_version(db) < len(MIGRATIONS):
            self._migrate(db)

    def _check_ours(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN")  # one snapshot: another process may be creating the tables right now
        version = schema_version(db)
        ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        foreign = not ours and not is_empty(db)
        db.execute("COMMIT")
        if foreign:
            raise StoreUnavailable(
                f"`{self.path}` is the database of another program",
                hint="point `STILLROOM_HOME` at a folder of its own",
            )
        if version > len(MIGRATIONS):
            raise NewerSchema(
                f"`{self.path}` has schema version {version}; this Stillroom knows {len(MIGRATIONS)}",
                hint="upgrade it: `pip install --upgrade stillroom`",
            )

    def _enter_wal(self, db: sqlite3.Connection) -> None:
        """SQLite does not wait for a lock when it changes the journal mode: many first starts at once would collide."""
        deadline = time.monotonic() + self._limits.busy_timeout_ms / 1000
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_OPEN_RETRY_SECONDS)

    def _migrate(self, db: sqlite3.Connection) -> None:
        with _committed(db, "BEGIN IMMEDIATE"):
            # It is read again under the lock: another process may have been first.
            create_schema(db, version=len(MIGRATIONS))
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._typed_errors():
            db = self._connection()
            with _committed(db, begin):
                yield db

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise  # a fault of ours, not of the file
        except (sqlite3.DatabaseError, OSError) as error:
            raise _unavailable(self.path, error) from error


def copy_database(path: Path, into: Path, *, limits: DatabaseLimits) -> None:
    """Copy the database as it is now; where there is none, nothing. Raises `StoreUnavailable`."""
    if not path.exists():
        return
    with looking(path, limits=limits) as source, closing(sqlite3.connect(into)) as target:
        source.backup(target)


@contextmanager
def looking(path: Path, *, limits: DatabaseLimits) -> Iterator[sqlite3.Connection]:
    """The database as it is, whoever's it is and of whatever version, for reading. Raises `StoreUnavailable`."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    if _is_at_rest(path):
        uri += "&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=limits.busy_timeout_ms / 1000)) as db:
            yield db
    except (sqlite3.DatabaseError, OSError) as error:
        raise _unavailable(path, error) from error


def _is_at_rest(path: Path) -> bool:
    """Nobody has it open, and nobody here could: SQLite makes its shared memory beside the file, even to read."""
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm")]
    return not os.access(path.parent, os.W_OK) and not any(file.exists() for file in beside)


def schema_version(db: sqlite3.Connection) -> int:
    """How many of `MIGRATIONS` the database has been through."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def is_empty(db: sqlite3.Connection) -> bool:
    """Nobody's yet: a file that was just made."""
    return not schema_version(db) and not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()


def create_schema(db: sqlite3.Connection, *, version: int) -> None:
    """Bring a database to this version from the one that it has. A new one is made at once what it is to be."""
    if version == len(MIGRATIONS) and not schema_version(db):
        _run_script(db, _HEAD, version=version)
    else:
        migrate(db, version=version)


def migrate(db: sqlite3.Connection, *, version: int) -> None:
    """The same step by step, as databases came to it that are older."""
    for known in range(schema_version(db), version):
        _run_script(db, MIGRATIONS[known], version=known + 1)


def _run_script(db: sqlite3.Connection, name: str, *, version: int) -> None:
    for statement in _statements((Path(__file__).parent / name).read_text("utf-8")):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {version}")


#: SQLite's connections must not cross a fork: both processes would believe that they hold its locks.
_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_INHERITED: list[sqlite3.Connection | None] = []


@contextmanager
def _committed(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    """A transaction that ends with the block; an exception rolls everything back."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _after_fork() -> None:
    for database in list(_OPEN):
        database.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _statements(script: str) -> Iterator[str]:
    """Split a script; `executescript` would commit the transaction that holds the migration together."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _code(error: Exception) -> int:
    """SQLite's primary result code; the extended one has it in its low byte."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_refusal(error: Exception) -> bool:
    """The system lets nobody like us write there: a read-only folder, somebody else's, a full disk."""
    return _code(error) in _REFUSED or (isinstance(error, OSError) and error.errno in _UNWRITABLE)


def _is_disk_full(path: Path) -> bool:
    """SQLite says "disk I/O error" when it is the shared memory beside the file that finds no room."""
    try:
        return Room(path.parent).free_bytes < _LEAST_ROOM_BYTES
    except OSError:
        return False


def _unavailable(path: Path, error: Exception) -> StoreUnavailable:
    code = _code(error)
    if code in _BUSY:
        by = f" by {' and '.join(found)}" if (found := holders(path)) else ""
        return StoreUnavailable(
            f"`{path}` stays locked{by}: {error}",
            hint="another process holds it: wait until it is done, or end it, then try again",
        )
    if code in _DAMAGED:
        return StoreUnavailable(
            f"`{path}` is damaged: {error}",
            hint=f"keep a copy: `mv '{path}' '{path}.damaged'`; `stillroom run --backfill` then builds a new one",
        )
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_disk_full(path)):
        return StoreReadOnly(f"no space left for `{path}`: {error}", hint="free some disk space, then try again")
    if code == sqlite3.SQLITE_IOERR:
        return StoreUnavailable(
            f"the disk refused to read or write `{path}`: {error}",
            hint="look at the system's log; or a limit on the size of files is too low (`ulimit -f`)",
        )
    return (StoreReadOnly if is_refusal(error) else StoreUnavailable)(
        f"`{path}` can't be used: {error}", hint=f"`{path.parent}` and the files in it must be yours to read and write"
    )
