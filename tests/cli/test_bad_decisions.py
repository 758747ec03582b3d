"""`redact` and `review` where there is something to take out and to decide: killed between any two changes, on a full
disk, locked out, or two at once, nothing is torn or lost, and saying it again works."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from bad_house import (
    NOT_ALMIGHTY,
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

#: Of all steps of a command, so many are tried, spread evenly; `STEPS=1000` tries each.
STEPS = int(os.environ.get("STEPS", "6"))
TOKEN = "ghp_27D8f53A383d7a23F8821d949458Bf289C5b"
MINE = f"- token {TOKEN}".encode()


@pytest.fixture(scope="session")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A secret in a person's lines, in every version since, in the database, a log and a note."""
    house = build(tmp_path_factory.mktemp("leaking") / "house")
    handbook = house.root / "MEMORY.md"
    assert house.run("note").code == 0
    for _ in range(2):  # the pass takes it out of the folder, but not of the history
        text = handbook.read_text(encoding="utf-8")
        handbook.write_text(f"{text}\n# Mine\n\n- token {TOKEN}\n", encoding="utf-8")
        assert house.run("run").code == 0
    text = handbook.read_text(encoding="utf-8")
    handbook.write_text(f"{text}\n# Mine\n\n- token {TOKEN}\n", encoding="utf-8")
    (note,) = (house.root / "extensions/ad_hoc/notes").iterdir()
    note.write_text(f"The token is {TOKEN}.\n", encoding="utf-8")
    (house.home / "hook.log").write_text(f"failed with {TOKEN}\n", encoding="utf-8")
    with closing(sqlite3.connect(house.database)) as db:
        db.execute("UPDATE stage1_outputs SET raw_memory = raw_memory || ?", (f"\n- token {TOKEN}\n",))
        db.commit()
    return house


@pytest.fixture(scope="session")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A result waits for a person, who edited the folder meanwhile."""
    house = build(tmp_path_factory.mktemp("waiting") / "house")
    (house.home / "config.toml").write_text('[memories]\nreview = "always"\n', encoding="utf-8")
    assert house.run("note").code == 0
    assert house.run("run").code == 0
    assert (house.home / "review/held/held.json").is_file()
    handbook = house.root / "MEMORY.md"
    handbook.write_text(handbook.read_text(encoding="utf-8") + "\n# Mine\n\n- ship on Tuesdays\n", encoding="utf-8")
    return house


@pytest.mark.timeout(60 * STEPS)
def test_redact_killed_anywhere_leaves_nothing_torn_and_no_secret_in_the_end(leaking: House, tmp_path: Path) -> None:
    before = leaking.folder()
    for number, house in killed(leaking, tmp_path, "redact", "--yes"):
        for path, content in house.folder().items():
            clean = before[path].replace(TOKEN.encode(), b"")
            assert content == before[path] or TOKEN.encode() not in content, (number, path)
            assert len(content) >= len(clean) - 200, (number, path)
        again = check(house.run("redact", "--yes"), number)
        assert again.code == 0, (number, again.told)
        assert TOKEN not in every_byte(house.home), number
        assert "- token" in (house.root / "MEMORY.md").read_text(encoding="utf-8")
        check_sound(house, number)


@pytest.mark.timeout(60 * STEPS)
@pytest.mark.parametrize("decision", ["--accept", "--reject", "--edit"])
def test_a_decision_killed_anywhere_is_made_or_is_not(waiting: House, tmp_path: Path, decision: str) -> None:
    mine = b"- ship on Tuesdays"
    for number, house in killed(waiting, tmp_path, "review", decision):
        check_sound(house, number)
        assert mine in (house.root / "MEMORY.md").read_bytes(), number
        fixed = check(house.run("doctor", "--fix"), number)
        assert "could not be fixed" not in fixed.err, fixed.err
        again = check(house.run("review", decision), number)
        assert again.code == 0 or "nothing waits for you" in again.err, (number, again.told)
        assert mine in (house.root / "MEMORY.md").read_bytes(), number
        if decision == "--edit":
            assert "held     since" in check(house.run("review"), number).told
            assert check(house.run("review", "--accept"), number).code == 0
        else:
            assert "no result waits" in check(house.run("review"), number).told
        assert check(house.run("run"), number).code == 0
        check_sound(house, number)


WORDS = (("redact", "--yes"), ("review", "--accept"), ("review", "--reject"), ("review", "--edit"))


@pytest.fixture
def house_of(leaking: House, waiting: House) -> Callable[[str], House]:
    return lambda command: leaking if command == "redact" else waiting


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as path:
        yield path


@pytest.mark.parametrize("free_bytes", [0, 60_000, 300_000])
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_on_a_full_disk(house_of: Callable[[str], House], disk: Path, words: tuple[str, ...], free_bytes: int) -> None:
    house = house_of(words[0]).copy(disk / "house")
    before = house.folder()
    filling = fill(disk, but_for_bytes=free_bytes)
    done = house.run(*words)
    if done.code:
        check_refused(done, names="space")
    filling.unlink()
    check_kept_by_hand(house, before)
    check_made(house, words)


@pytest.mark.parametrize("place", ["home", "root"])
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_where_nothing_can_be_written(
    house_of: Callable[[str], House], tmp_path: Path, words: tuple[str, ...], place: str
) -> None:
    house = house_of(words[0]).copy(tmp_path / "house")
    before = house.folder()
    closed = house.home if place == "home" else house.root
    chmod(closed, folders=0o500, files=0o400)
    try:
        done = house.run(*words, prefix=NOT_ALMIGHTY if os.geteuid() == 0 else ())
    finally:
        chmod(closed, folders=0o700, files=0o600)
    if done.code:
        check_refused(done, names=house.home)
        assert house.folder() == before
    check_made(house, words)


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_on_a_locked_database(house_of: Callable[[str], House], tmp_path: Path, words: tuple[str, ...]) -> None:
    house = house_of(words[0]).copy(tmp_path / "house")
    before = house.folder()
    with locked(house.database, altogether=False):
        done = house.run(*words)
    if done.code:
        check_refused(done, names=house.database)
        assert house.folder() == before
    check_made(house, words)


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_two_at_once(house_of: Callable[[str], House], tmp_path: Path, words: tuple[str, ...]) -> None:
    house = house_of(words[0]).copy(tmp_path / "house")
    before = house.folder()
    command, *more = words
    started = [house.start(command, *more), house.start(command, *more), house.start("run")]
    for process in started:
        check_told(process.ended())
    check_kept_by_hand(house, before)
    check_made(house, words)


def check_kept_by_hand(house: House, before: dict[str, bytes]) -> None:
    """What a person wrote is there, but for a secret in it."""
    mine = next(line for line in before["MEMORY.md"].splitlines() if line in (b"- ship on Tuesdays", MINE))
    assert (b"- token" if mine == MINE else mine) in (house.root / "MEMORY.md").read_bytes()


def check_made(house: House, words: tuple[str, ...]) -> None:
    """Now it works, if it did not."""
    again = house.run(*words)
    check_told(again)
    assert again.code == 0 or "nothing waits for you" in again.err, again.told
    if words[0] == "redact":
        assert TOKEN not in every_byte(house.home)
    check_sound(house, 0)
    assert check(house.run("run"), 0).code == 0


def killed(built: House, tmp_path: Path, command: str, *words: str) -> Iterator[tuple[int, House]]:
    """Copies of the house in which the command died, each ahead of another of its changes."""
    house = built.copy(tmp_path / "house")  # always there: the memory names paths
    whole = house.run(command, *words, dying_at=0)
    assert whole.code == 0, whole.told
    steps = int(whole.err.split()[-2])
    assert steps > 1
    tried = min(STEPS, steps)
    for number in sorted({1 + (steps - 1) * part // max(tried - 1, 1) for part in range(tried)}):
        shutil.rmtree(house.base)
        house = built.copy(tmp_path / "house")
        # It may take a step less than it did then.
        assert house.run(command, *words, dying_at=number).code == -9 or number == steps, f"{number} of {steps}"
        yield number, house


def check(done: Done, number: int) -> Done:
    assert done.code in {0, 1, 2} and "Traceback" not in done.err, (number, done.err)
    return done


def check_sound(house: House, number: int) -> None:
    assert house.is_whole(), number
    assert check(house.run("status"), number).code == 0


def every_byte(home: Path) -> str:
    """All that is under a home, with git's objects in clear."""
    texts = [path.read_bytes().decode("utf-8", "replace") for path in home.rglob("*") if path.is_file()]
    words = ["git", f"--git-dir={home / 'history.git'}", "cat-file", "--batch", "--batch-all-objects"]
    objects = subprocess.run(words, capture_output=True, timeout=30, check=True).stdout
    return "\n".join([*texts, objects.decode("utf-8", "replace")])
