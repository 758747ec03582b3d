"""Every command on whatever may be broken: a clear message, an exit code, nothing lost, and the next command works."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from bad_house import (
    CHANGING,
    EVERY,
    Done,
    House,
    build,
    check_refused,
    check_told,
    chmod,
    fill,
    locked,
    small_disk,
)

#: They answer without the state database, or say what they could not ask it.
WITHOUT_DATABASE = frozenset(
    {
        *("--help", "init", "uninit", "recall", "list", "read", "note", "edit", "log", "diff"),
        *("pause", "resume", "memories", "mcp", "share", "why"),
    }
)
#: They read no settings.
WITHOUT_SETTINGS = frozenset({"--help"})


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> House:
    return build(tmp_path_factory.mktemp("built") / "house")


@pytest.fixture
def house(built: House, tmp_path: Path) -> House:
    return built.copy(tmp_path / "house")


@pytest.fixture(scope="session")
def usual(built: House, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], int]:
    """The exit code of a command where nothing is broken."""
    codes: dict[str, int] = {}

    def code(command: str) -> int:
        if command not in codes:
            done = built.copy(tmp_path_factory.mktemp("usual") / "house").run(command)
            check_told(done)
            codes[command] = done.code
        return codes[command]

    return code


def check_kept(house: House, before: dict[str, bytes]) -> None:
    """Every file of the memory folder is as it was."""
    after = house.folder()
    assert {path: after.get(path) for path in before} == before


def check_works_again(house: House, command: str, done: Done, usual: Callable[[str], int]) -> None:
    """Where it could not do its work, it does as soon as it can. One that could has shown it."""
    if done.code != usual(command):
        after = house.run(command)
        # What a command had begun to take back, the next one finishes: nothing is left for it then.
        finished = "a killed `" in after.err
        assert after.code == usual(command) or finished, (command, after.told)


@pytest.mark.parametrize("command", EVERY)
def test_in_an_empty_home(tmp_path: Path, built: House, command: str) -> None:
    (tmp_path / "ingested.jsonl").write_bytes((built.base / "ingested.jsonl").read_bytes())
    house = House(tmp_path)
    done = house.run(command)
    check_told(done)
    if done.code:
        assert "hint:" in done.err, done.err
    assert house.run("status").code == 0


@pytest.mark.parametrize("command", EVERY)
@pytest.mark.parametrize("broken", ["no database", "damaged page", "newer schema"])
def test_on_a_bad_database(house: House, usual: Callable[[str], int], broken: str, command: str) -> None:
    before, good = house.folder(), house.database.read_bytes()
    spoil(house.database, broken)
    bad = house.database.read_bytes()
    done = house.run(command)
    if command in WITHOUT_DATABASE:
        check_told(done)
        assert done.code in (usual(command), 1)
    else:
        check_refused(done, names=house.database)
        assert house.database.read_bytes() == bad
    check_kept(house, before)
    unspoil(house.database, good)
    check_works_again(house, command, done, usual)


def spoil(database: Path, broken: str) -> None:
    match broken:
        case "no database":
            database.write_bytes(b"this is no database, but it is long enough to be one\n" * 1000)
        case "damaged page":
            data = database.read_bytes()
            database.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))
        case "newer schema":
            with closing(sqlite3.connect(database)) as db:
                db.execute("PRAGMA journal_mode = DELETE")
                db.execute("PRAGMA user_version = 99")


def unspoil(database: Path, good: bytes) -> None:
    for name in ("-wal", "-shm"):
        Path(f"{database}{name}").unlink(missing_ok=True)
    database.write_bytes(good)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("altogether", [False, True], ids=["for writing", "altogether"])
def test_on_a_locked_database(built: House, tmp_path: Path, usual: Callable[[str], int], altogether: bool) -> None:
    """All at once: each waits for half a minute, in case it is only a slow writer."""

    def one(command: str) -> None:
        house = built.copy(tmp_path / command.strip("-"))
        before, rows = house.folder(), house.rows()
        with locked(house.database, altogether=altogether):
            done = house.run(command)
        check_told(done)
        if done.code not in (0, usual(command)):
            check_refused(done, names=house.database)
            assert "locked" in done.told, done.told
        if done.code or command not in CHANGING:
            check_kept(house, before)
            assert house.rows() == rows
        elif command not in WITHOUT_DATABASE:
            assert not altogether, f"`{command}` says that it worked"
        check_works_again(house, command, done, usual)

    with ThreadPoolExecutor(len(EVERY)) as pool:
        for done in [pool.submit(one, command) for command in EVERY]:
            done.result()


@pytest.mark.parametrize("command", EVERY)
def test_with_settings_that_can_t_be_read(house: House, usual: Callable[[str], int], command: str) -> None:
    before, rows, path = house.folder(), house.rows(), house.home / "config.toml"
    path.write_text("[memories\nenabled = maybe\n", encoding="utf-8")
    done = house.run(command)
    if command in WITHOUT_SETTINGS:
        check_told(done)
    else:
        check_refused(done, names=path)
        assert done.code == (1 if command == "doctor" else 2)
        check_kept(house, before)
        assert house.rows() == rows
    path.unlink()
    check_works_again(house, command, done, usual)


@pytest.mark.parametrize("command", EVERY)
@pytest.mark.parametrize("place", ["home", "memory"])
def test_on_a_read_only_folder(house: House, usual: Callable[[str], int], place: str, command: str) -> None:
    if os.geteuid() == 0 and subprocess.run(["which", "setpriv"], capture_output=True, timeout=20).returncode:
        pytest.skip("needs setpriv to give root's powers up")
    before, rows = house.folder(), house.rows()
    closed = house.home if place == "home" else house.root
    chmod(closed, folders=0o500, files=0o400)
    try:
        done = house.run_without_powers(command)
    finally:
        chmod(closed, folders=0o700, files=0o600)
    check_told(done)
    if done.code not in (0, usual(command)):
        check_refused(done, names=house.home)
    if done.code or command not in CHANGING:
        check_kept(house, before)
    if done.code and command != "run":  # which records what stopped it, where it can
        assert house.rows() == rows
    check_works_again(house, command, done, usual)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as path:
        yield path


@pytest.mark.parametrize("command", EVERY)
def test_on_a_full_disk(built: House, disk: Path, usual: Callable[[str], int], command: str) -> None:
    house = built.copy(disk / "house")
    before, rows = house.folder(), house.rows()
    filling = fill(disk)
    done = house.run(command)
    check_told(done)
    if done.code not in (0, usual(command)):
        check_refused(done, names=house.base)
    filling.unlink()
    if done.code or command not in CHANGING:
        check_kept(house, before)
        assert house.rows() == rows
    check_works_again(house, command, done, usual)


#: Of all steps of a command, so many are tried, spread evenly; `STEPS=1000` tries each.
STEPS = int(os.environ.get("STEPS", "5"))


@pytest.mark.timeout(80 * STEPS)
@pytest.mark.parametrize(
    "command", ["run", "note", "undo", "forget", "memories", "ingest", "init", "search", "threads"]
)
def test_killed_in_the_middle(built: House, tmp_path: Path, command: str) -> None:
    """Consolidation, undo and forgetting are killed at every one of their own steps elsewhere; here commands are, from
    outside."""
    house = built.copy(tmp_path / "house")  # always there: the memory names paths
    before = house.folder()
    whole = house.run(command, dying_at=0)
    assert whole.code == 0, whole.told
    after = house.folder()
    steps = int(whole.err.split()[-2])
    assert steps > 0
    for number in sorted({1 + (steps - 1) * part // (STEPS - 1) for part in range(STEPS)}):
        shutil.rmtree(house.base)
        house = built.copy(tmp_path / "house")
        # It may take a step less than it did then.
        assert house.run(command, dying_at=number).code == -9 or number == steps, f"{number} of {steps}"
        assert house.is_whole()
        for path, content in house.folder().items():
            known = (before.get(path), after.get(path))
            assert content in known or path not in before, f"{path} is torn at {number} of {steps}"
        fixed = house.run("doctor", "--fix")
        check_told(fixed)
        assert "could not be fixed" not in fixed.told, fixed.told
        now = house.folder()
        finished = all(now.get(path) == after.get(path) for path in before)  # nothing is left to be taken back
        check_told(again := house.run(command))
        assert again.code == 0 or finished, (number, steps, again.told)
        assert house.run("status").code == 0
        assert house.is_whole()


@pytest.mark.parametrize("command", EVERY)
def test_two_at_once(house: House, usual: Callable[[str], int], command: str) -> None:
    """The same command twice, and a pass beside them."""
    started = [house.start(command), house.start(command), house.start("run")]
    for process in started:
        check_told(process.ended())
    assert house.is_whole()
    assert house.run("run").code == 0
    check_told(after := house.run(command))
    assert after.code in (0, usual(command)) or command in CHANGING, after.told
