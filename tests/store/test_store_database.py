"""Opening the file: what is refused, with which error, and that it is left alone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from store_samples import TWO, extract, save, thread

from stillroom.clock import FixedClock
from stillroom.config import DatabaseLimits
from stillroom.errors import NewerSchema, StoreUnavailable
from stillroom.store import Store

NO_WAIT = DatabaseLimits(busy_timeout_ms=1)


def test_a_new_database_is_its_owners_alone_and_opens_again(tmp_path: Path, clock: FixedClock) -> None:
    path = tmp_path / "not" / "there" / "state.sqlite3"
    with Store.open(path, clock=clock) as store:
        extract(store, "a")
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with Store.open(path, clock=clock) as store:
        assert [o.thread_id for o in store.outputs.latest()] == ["a"]
        store.close()  # twice is fine


def test_to_look_creates_nothing_and_sees_what_is_there(tmp_path: Path, clock: FixedClock) -> None:
    path = tmp_path / "not" / "there" / "state.sqlite3"
    with Store.look(path, clock=clock) as store:
        assert store.threads.newest() == []
    assert list(tmp_path.iterdir()) == []
    with Store.open(path, clock=clock) as store:
        extract(store, "a")
        with Store.look(path, clock=clock) as looking:
            assert [o.thread_id for o in looking.outputs.latest()] == ["a"]


def test_many_may_open_a_new_database_at_once(tmp_path: Path, clock: FixedClock) -> None:
    gate = threading.Barrier(8)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        gate.wait()
        try:
            with Store.open(tmp_path / "state.sqlite3", clock=clock) as store:
                save(store, thread(f"t{number}"))
        except StoreUnavailable as error:
            failures.append(error)

    workers = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    with Store.open(tmp_path / "state.sqlite3", clock=clock) as store:
        assert len(store.threads.newest()) == 8


@pytest.mark.parametrize(
    "content", [b"not a database at all " * 100, b"SQLite format 3\0" + b"\xff" * 4096, b"\0" * 5000]
)
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, clock: FixedClock, content: bytes) -> None:
    path = tmp_path / "state.sqlite3"
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=r"state\.sqlite3") as caught:
        Store.open(path, clock=clock)
    assert "mv" in str(caught.value.hint)
    assert path.read_bytes() == content


def test_damage_that_shows_later_is_told_the_same_way(tmp_path: Path, clock: FixedClock) -> None:
    path = tmp_path / "state.sqlite3"
    with Store.open(path, clock=clock) as store:
        for i in range(200):
            extract(store, f"t{i}")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StoreUnavailable, match="damaged"), Store.open(path, clock=clock) as store:
        store.outputs.latest()


def test_an_empty_file_becomes_a_database(tmp_path: Path, clock: FixedClock) -> None:
    (tmp_path / "state.sqlite3").touch()
    with Store.open(tmp_path / "state.sqlite3", clock=clock) as store:
        assert store.threads.newest() == []


def test_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path, clock: FixedClock) -> None:
    path = tmp_path / "state.sqlite3"
    Store.open(path, clock=clock).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    with pytest.raises(NewerSchema, match="99") as caught:
        Store.open(path, clock=clock)
    assert "upgrade" in str(caught.value.hint)
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path, clock: FixedClock) -> None:
    path = tmp_path / "state_5.sqlite"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE threads (id TEXT)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="another program") as caught:
        Store.open(path, clock=clock)
    assert caught.value.hint
    assert path.read_bytes() == before


def test_a_lock_that_stays_is_an_error_that_says_so(tmp_path: Path, clock: FixedClock) -> None:
    path = tmp_path / "state.sqlite3"
    with Store.open(path, clock=clock, limits=NO_WAIT) as store:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked") as caught:
            store.consolidation.enqueue(1)
        assert caught.value.hint
        assert store.consolidation.job() is None  # reading goes on
        db.execute("ROLLBACK")
        db.close()
        store.consolidation.enqueue(1)


HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA locking_mode = " + sys.argv[2])
db.execute("BEGIN IMMEDIATE")
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells who holds a lock")
@pytest.mark.parametrize("mode", ["NORMAL", "EXCLUSIVE"])
def test_who_holds_the_lock_is_named(tmp_path: Path, clock: FixedClock, mode: str) -> None:
    path = tmp_path / "state.sqlite3"
    Store.open(path, clock=clock).close()
    command = [sys.executable, "-c", HOLD, str(path), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin and other.stdout
        other.stdout.readline()
        with pytest.raises(StoreUnavailable) as caught, Store.open(path, clock=clock, limits=NO_WAIT) as store:
            store.consolidation.enqueue(1)
        other.stdin.close()
    assert f"stays locked by process {other.pid} (`" in str(caught.value)


@pytest.mark.parametrize("where", ["a-file/state.sqlite3", "a-folder"])
def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path, clock: FixedClock, where: str) -> None:
    (tmp_path / "a-file").write_text("x", encoding="utf-8")
    (tmp_path / "a-folder").mkdir()
    with pytest.raises(StoreUnavailable) as caught:
        Store.open(tmp_path / where, clock=clock)
    assert caught.value.hint


def run_confined(options: list[str], script: str, *arguments: str) -> str:
    """Run a script under bubblewrap, whose read-only and full file systems bind root too; returns what it printed."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("needs bubblewrap")
    preface = (
        "import pathlib, sys\n"
        "from stillroom.clock import SystemClock\n"
        "from stillroom.errors import StoreUnavailable\n"
        "from stillroom.store import Store\n"
    )
    done = subprocess.run(
        [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", *options, sys.executable, "-c", preface + script, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]},
        check=False,
    )
    if "bwrap:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_that_can_not_be_written_is_refused(tmp_path: Path, clock: FixedClock, exists: bool) -> None:
    if exists:
        Store.open(tmp_path / "state.sqlite3", clock=clock).close()
    script = (
        "try:\n"
        "    with Store.open(pathlib.Path(sys.argv[1]), clock=SystemClock()) as store:\n"
        "        store.consolidation.enqueue(1)\n"
        "except StoreUnavailable as error:\n"
        "    print('refused:', bool(error.hint))\n"
    )
    assert run_confined([], script, str(tmp_path / "state.sqlite3")) == "refused: True\n"


def test_a_full_disk_is_an_error_that_says_so_and_loses_nothing() -> None:
    script = (
        "with Store.open(pathlib.Path('/mnt/state.sqlite3'), clock=SystemClock()) as store:\n"
        "    kept = 0\n"
        "    try:\n"
        "        while True:\n"
        "            store.ledger.record_pass(kept, b'x' * 50_000)\n"
        "            kept += 1\n"
        "    except StoreUnavailable as error:\n"
        "        print('no space' in str(error) or str(error), error.hint)\n"
        "    print(kept > 3 and [p.at for p in store.ledger.last_passes(1000)] == list(range(kept - 1, -1, -1)))\n"
    )
    printed = run_confined(["--size", "2000000", "--tmpfs", "/mnt"], script)
    assert printed == "True free some disk space, then try again\nTrue\n"


def test_an_error_inside_a_transaction_leaves_nothing_behind(tmp_path: Path, clock: FixedClock) -> None:
    def no_token() -> str:
        raise RuntimeError("no entropy")

    path = tmp_path / "state.sqlite3"
    with Store.open(path, clock=clock, new_token=no_token) as store:
        save(store, thread("a"))
        with pytest.raises(RuntimeError):
            store.consolidation.claim(worker_id="w", stage=TWO)
        assert store.consolidation.job() is None
        save(store, thread("b"))
        assert len(store.threads.newest()) == 2
