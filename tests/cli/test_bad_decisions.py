"""`redact` and `review`, killed between any two changes to disk: nothing is torn, and saying it again works."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from bad_house import Done, House, build

#: Of all steps of a command, so many are tried, spread evenly; `STEPS=1000` tries each.
STEPS = int(os.environ.get("STEPS", "6"))
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.fixture(scope="session")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A secret in a person's lines, in every version since, in the database, a log and a note."""
    house = build(tmp_path_factory.mktemp("leaking") / "house")
    handbook = house.root / "MEMORY.md"
    handbook.write_text(handbook.read_text(encoding="utf-8") + f"\n# Mine\n\n- token {TOKEN}\n", encoding="utf-8")
    assert house.run("note").code == 0
    assert house.run("run").code == 0
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
        assert house.run(command, *words, dying_at=number).code == -9, f"{number} of {steps}"
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
