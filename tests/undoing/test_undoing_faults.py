"""Every command that takes back, on homes in every bad state: a clear message, the right exit code, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from undoing_house import HOUR_MS, NOW_MS, PROJECT, SHOP, House, every_byte

from stillroom.cli.app import run_command
from stillroom.clock import FixedClock
from stillroom.config import DatabaseLimits, Settings
from stillroom.consolidate.outcome import NoChanges
from stillroom.errors import StoreUnavailable
from stillroom.store import Store
from stillroom.undoing import unfinished
from stillroom.undoing.choosing import Choice
from stillroom.undoing.forgetting import forget
from stillroom.undoing.planning import plan_forgetting

COMMANDS = (
    ["forget", SHOP, "--yes"],
    ["undo", "--yes"],
    ["redo"],
    ["redact", "--retro", "--yes"],
    ["log"],
    ["diff"],
)
CHANGING = COMMANDS[:4]
NOT_ALMIGHTY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("prepared")
    House(base).run()
    return base


@pytest.fixture
def house(prepared: Path, tmp_path: Path) -> House:
    shutil.copytree(prepared / "home", tmp_path / "home")
    house = House(tmp_path)
    house.settings = Settings(home=tmp_path / "home", sources=House(prepared).settings.sources)
    house.clock = FixedClock(NOW_MS + 9 * HOUR_MS)
    return house


def call(words: list[str], home: Path, *, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(home.parent), "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}
    command = [*prefix, sys.executable, "-m", "stillroom", *words, "--home", str(home)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_on_an_empty_home_there_is_nothing_to_do_and_nothing_is_created(words: list[str], tmp_path: Path) -> None:
    home = tmp_path / "nowhere"
    assert run_command([*words, "--home", str(home)]) == 0
    assert not home.exists()


@pytest.mark.parametrize("words", [COMMANDS[0], COMMANDS[3]], ids=lambda words: words[0])
def test_a_program_is_answered_in_json_on_an_empty_home_too(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([*words, "--json", "--home", str(tmp_path / "nowhere")]) == 0
    assert json.loads(capsys.readouterr().out)["done"] is None


@pytest.mark.parametrize(
    "words", [["forget", "--match", "biome here", "--yes"], COMMANDS[3]], ids=lambda words: words[0]
)
def test_a_folder_that_outlived_its_database_is_cleaned_all_the_same(words: list[str], house: House) -> None:
    token = "ghp_27D8f53A383d7a23F8821d949458Bf289C5b"
    handbook = house.root / "MEMORY.md"
    handbook.write_text(handbook.read_text(encoding="utf-8") + f"\n# Mine\n\n- token {token}\n", encoding="utf-8")
    for path in house.home.glob("state.sqlite3*"):
        path.unlink()
    assert run_command([*words, "--home", str(house.home)]) == 0
    assert ("biome here" if words[0] == "forget" else token) not in every_byte(house.home)


@pytest.mark.parametrize("words", CHANGING, ids=lambda words: words[0])
def test_on_a_damaged_database_nothing_is_changed(
    words: list[str], house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.settings.database.write_bytes(b"this is no database" * 1000)
    for path in house.home.glob("state.sqlite3-*"):
        path.unlink()
    before = every_byte(house.root)
    assert run_command([*words, "--home", str(house.home)]) == 1
    assert "is damaged" in capsys.readouterr().err
    assert every_byte(house.root) == before


def test_a_locked_database_stops_it_and_the_next_pass_finishes_it(house: House) -> None:
    limits = DatabaseLimits(busy_timeout_ms=50)
    with Store.open(house.settings.database, clock=house.clock, limits=limits) as store:
        plan = plan_forgetting(house.settings, store, Choice(threads=(SHOP,)), now=house.clock.now())
        other = sqlite3.connect(house.settings.database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            forget(house.settings, store, plan)
        other.execute("ROLLBACK")
        other.close()
    assert (house.home / unfinished.FILE).exists()
    report = house.run(hours=8)
    assert report.finished is not None and "forgot 1 session" in report.finished
    assert SHOP not in every_byte(house.home)


@pytest.mark.parametrize("words", [CHANGING[0], CHANGING[1]], ids=lambda words: words[0])
def test_a_folder_that_cannot_be_written_is_told_and_nothing_is_changed(words: list[str], house: House) -> None:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("permissions do not bind a root")
    before = every_byte(house.home)
    house.root.chmod(0o500)
    done = call(words, house.home, prefix=NOT_ALMIGHTY if os.geteuid() == 0 else ())
    house.root.chmod(0o700)
    assert done.returncode == 1
    assert "can't be written" in done.stderr and "hint: chmod u+rwx" in done.stderr
    assert SHOP in before and SHOP in every_byte(house.home)
    assert not (house.home / unfinished.FILE).exists()
    assert call(words, house.home).returncode == 0


def test_a_damaged_history_is_told_as_left_and_the_rest_is_clean(house: House) -> None:
    for path in (house.settings.history / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"broken")
    done = call(["forget", SHOP, "--yes"], house.home)
    assert done.returncode == 1
    assert f"left: {house.settings.history} (can't be read)" in done.stderr
    assert "biome" not in str(house.said())
    assert call(["undo", "--yes"], house.home).returncode == 1
    shutil.rmtree(house.settings.history)
    assert call(["forget", "--match", "biome here", "--yes"], house.home).returncode == 0


def test_what_was_begun_and_cannot_be_read_stops_passes_until_it_is_deleted(house: House) -> None:
    (house.home / unfinished.FILE).write_text("{", encoding="utf-8")
    report = house.run()
    assert report.skipped == "taking_back" and "can't be read" in report.detail
    done = call(["forget", SHOP, "--yes"], house.home)
    assert done.returncode == 1 and "delete it" in done.stderr
    (house.home / unfinished.FILE).unlink()
    assert house.run(hours=8).skipped is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root mounts a small file system")
    path = tmp_path / "disk"
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(path)]
    if subprocess.run(words, capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("no file system can be mounted")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True, timeout=20)


@pytest.mark.parametrize("free_bytes", [0, 4096, 40_000, 150_000])
@pytest.mark.parametrize("words", [CHANGING[0], CHANGING[1]], ids=lambda words: words[0])
def test_a_full_disk_loses_nothing_and_it_is_finished_once_there_is_room(
    words: list[str], free_bytes: int, prepared: Path, small_disk: Path
) -> None:
    home = small_disk / "home"
    shutil.copytree(prepared / "home", home)
    room = os.statvfs(small_disk)
    filling = small_disk / "filling"
    filling.write_bytes(b"\0" * (room.f_bavail * room.f_frsize - free_bytes))
    done = call(words, home)
    assert done.returncode in (0, 1)
    assert done.returncode == 0 or "space" in done.stderr
    filling.unlink()
    house = House(prepared)
    house.settings = Settings(home=home, sources=house.settings.sources)
    house.clock = FixedClock(NOW_MS + 20 * HOUR_MS)
    if not (home / unfinished.FILE).exists() and done.returncode:
        assert call(words, home).returncode == 0
    report = house.run()
    assert report.skipped is None and not (home / unfinished.FILE).exists()
    if words[0] == "forget":
        assert SHOP not in every_byte(home)
    else:
        assert isinstance(report.consolidate, NoChanges) or not (home / "memories" / "MEMORY.md").exists()
