"""The door to the state database. Its parts are named by what they keep."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from stillroom.clock import Clock
from stillroom.config import DatabaseLimits
from stillroom.errors import StoreReadOnly
from stillroom.store.consolidation import Consolidation
from stillroom.store.database import Database, copy_database
from stillroom.store.extraction import Extraction
from stillroom.store.folders import Folders
from stillroom.store.forgetting import Forgetting
from stillroom.store.jobs import Jobs
from stillroom.store.ledger import Ledger
from stillroom.store.memory_lines import MemoryLines
from stillroom.store.outputs import Outputs
from stillroom.store.reads import Reads
from stillroom.store.sql import execute
from stillroom.store.standings import Standings
from stillroom.store.threads import Threads
from stillroom.store.tombstones import Tombstones
from stillroom.store.uses import Uses


def _random_token() -> str:
    return str(uuid.uuid4())


class Store:
    """The state database, in parts: `store.threads.get(thread_id)`, `store.extraction.claim(...)`.

    Every method of a part is one transaction, at the time that the clock shows. Any thread may call it, and any number
    of processes may have the same file open. Open it with `Store.open`.
    """

    def __init__(
        self, database: Database, *, clock: Clock, new_token: Callable[[], str], limits: DatabaseLimits
    ) -> None:
        self._database = database
        self.threads = Threads(database, clock=clock, per_transaction=limits.threads_per_transaction)
        self.folders = Folders(database, clock=clock)
        self.standings = Standings(database)
        self.reads = Reads(database)
        self.memory_lines = MemoryLines(database)
        #: Phase 1, and what it leaves.
        self.extraction = Extraction(
            database, clock=clock, new_token=new_token, max_reason_chars=limits.max_reason_chars
        )
        self.outputs = Outputs(database, clock=clock)
        #: Phase 2.
        self.consolidation = Consolidation(
            database, clock=clock, new_token=new_token, max_reason_chars=limits.max_reason_chars
        )
        self.jobs = Jobs(database, clock=clock, max_reason_chars=limits.max_reason_chars)
        self.uses = Uses(database)
        self.tombstones = Tombstones(database, clock=clock)
        self.forgetting = Forgetting(database, clock=clock)
        self.ledger = Ledger(database, clock=clock, passes_kept=limits.passes_kept)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        new_token: Callable[[], str] = _random_token,
        limits: DatabaseLimits = DatabaseLimits(),  # noqa: B008 - frozen
    ) -> Self:
        """Open the database, creating or migrating it. Raises `StoreUnavailable` or `NewerSchema`."""
        return cls(Database(path, limits), clock=clock, new_token=new_token, limits=limits)

    @classmethod
    @contextmanager
    def trial(
        cls,
        path: Path,
        *,
        clock: Clock,
        limits: DatabaseLimits = DatabaseLimits(),  # noqa: B008 - frozen
    ) -> Iterator[Self]:
        """A copy to try things on: it goes with the block, and the database stays as it is. Raises as `open` does."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="stillroom-") as folder:
            copy = Path(folder) / path.name
            copy_database(path, copy, limits=limits)
            with cls.open(copy, clock=clock, limits=limits) as store:
                yield store

    @classmethod
    @contextmanager
    def look(
        cls,
        path: Path,
        *,
        clock: Clock,
        limits: DatabaseLimits = DatabaseLimits(),  # noqa: B008 - frozen
    ) -> Iterator[Self]:
        """The database for reading, also where it is not there (and stays so) or can't be written: an agent's sandbox,
        a read-only home, a full disk. Then it is a copy in memory, of this moment. Raises as `open` does."""
        try:
            database = Database(path, limits, in_memory=not path.exists())
        except StoreReadOnly:
            database = Database(path, limits, in_memory=True)
        with cls(database, clock=clock, new_token=_random_token, limits=limits) as store:
            yield store

    def close(self) -> None:
        """Close the database; what is committed stays."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def compact(self) -> bool:
        """Write the database anew, so that no free page and no log holds what was deleted. False: another process reads
        an old state right now, and the log stays until it ends."""
        return self._database.compact()

    def change_mark(self) -> tuple[int, int]:
        """Differs from an earlier one of this store if anything was written since, by anybody."""
        with self._database.read() as db:
            return int(db.execute("PRAGMA data_version").fetchone()[0]), db.total_changes

    def newest_moment(self) -> int:
        """The latest moment (seconds) that was written down here; one ahead of the clock says that this was set."""
        with self._database.read() as db:
            return int(execute(db, "newest_moment").fetchone()["at"])
