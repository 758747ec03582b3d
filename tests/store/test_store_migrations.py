"""A database that an older version wrote is brought up to date with all that is in it."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from store_samples import DAY, NOW, extract, save, selected_ids, thread

from stillroom.clock import FixedClock
from stillroom.errors import StoreUnavailable
from stillroom.store import Store, Use, database
from stillroom.store.database import APPLICATION_ID, MIGRATIONS, create_schema, migrate
from stillroom.thread import FileStamp


def version_1(path: Path) -> Path:
    """A database as the first version of Stillroom left it: a session, its output that was used, and its job."""
    db = sqlite3.connect(path)
    db.executescript(Path(database.__file__).with_name("schema.sql").read_text("utf-8"))
    db.executescript(f"PRAGMA user_version = 1; PRAGMA application_id = {APPLICATION_ID}; PRAGMA journal_mode = WAL;")
    db.execute(
        "INSERT INTO threads (thread_id, agent, rollout_path, source, cwd, created_at_ms, updated_at_ms, title,"
        " preview, recorded_mode, archived, file_size, file_mtime_ns, file_offset)"
        " VALUES ('old', 'codex', '/r', 'cli', '/w', 1000, ?, 't', 'p', 'enabled', 0, 10, 20, 5)",
        ((NOW - DAY) * 1000,),
    )
    db.execute(
        "INSERT INTO stage1_outputs (thread_id, source_updated_at, raw_memory, rollout_summary, generated_at, engine,"
        " usage_count, last_usage) VALUES ('old', ?, 'raw', 'summary', ?, 'offline', 3, ?)",
        (NOW - DAY, NOW, NOW),
    )
    db.execute(
        "INSERT INTO jobs (kind, job_key, status, retry_remaining, last_success_watermark)"
        " VALUES ('memory_stage1', 'old', 'done', 3, ?)",
        (NOW - DAY,),
    )
    db.commit()
    db.close()
    return path


def test_a_version_1_database_is_upgraded_with_its_rows(tmp_path: Path, clock: FixedClock) -> None:
    path = version_1(tmp_path / "state.sqlite3")
    for _ in range(2):  # the second time nothing is to be done
        with Store.open(path, clock=clock) as store:
            (output,) = store.outputs.latest()
            assert (output.thread_id, output.raw_memory, output.usage_count, output.last_usage) == (
                "old",
                "raw",
                3,
                NOW,
            )
            assert [t.title for t in store.threads.newest()] == ["t"]
            assert store.threads.file_stamps("codex") == {"/r": FileStamp(size=10, mtime_ns=20, offset=5)}
            assert [(folder.cwd, folder.checkout) for folder in store.folders.newest(limit=5)] == [("/w", None)]
            job = store.extraction.job("old")
            assert job is not None and job.last_success_watermark == NOW - DAY
    with Store.open(path, clock=clock) as store:
        ((found, stamp),) = store.uses.unsearched()
        use = Use(kind="citation", digest=b"d", nth=1, at=NOW, used=("old",))
        assert [done.counted for done in store.uses.record(found.thread_id, [use], stamp=stamp)] == [("old",)]
        assert store.outputs.latest()[0].usage_count == 4
        extract(store, "new")
        assert selected_ids(store) == ["old", "new"]
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def test_an_upgraded_database_has_the_same_schema_as_a_new_one() -> None:
    def made(make: Callable[..., None]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            make(db, version=len(MIGRATIONS))
            listed = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
            words = [(*row, " ".join(re.sub(r"--.*", "", sql or "").split())) for *row, sql in listed]
            tables = "sqlite_master AS tables, pragma_table_xinfo(tables.name) AS column"
            columns = f"SELECT tables.name, column.* FROM {tables} ORDER BY tables.name, column.cid"
            return words, db.execute(columns).fetchall()

    assert made(create_schema) == made(migrate), "run `make docs`: it writes `head.sql` anew"


def test_many_may_upgrade_at_once(tmp_path: Path, clock: FixedClock) -> None:
    path = version_1(tmp_path / "state.sqlite3")
    gate = threading.Barrier(6)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        gate.wait()
        try:
            with Store.open(path, clock=clock) as store:
                save(store, thread(f"t{number}"))
        except StoreUnavailable as error:
            failures.append(error)

    workers = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    with Store.open(path, clock=clock) as store:
        assert len(store.threads.newest()) == 7


def test_an_upgrade_that_fails_leaves_the_old_version(
    tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = version_1(tmp_path / "state.sqlite3")
    broken = tmp_path / "broken.sql"
    broken.write_text("CREATE TABLE half (a);\nCREATE TABLE half (a);\n", encoding="utf-8")
    monkeypatch.setattr(database, "MIGRATIONS", ("schema.sql", str(broken)))
    with pytest.raises(StoreUnavailable):
        Store.open(path, clock=clock)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    db.close()
