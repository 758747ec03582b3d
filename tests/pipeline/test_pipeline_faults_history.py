"""A history that cannot be read, locks left behind, and a staging folder with other things in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_house import FaultyHouse, consolidated, failed, files, slow

from stillroom.consolidate.outcome import Consolidated, NoChanges

MINE = "Releases are cut on Tuesdays, by hand.\n"
#: Older than any git that we would wait for.
LONG_AGO = 1_000_000_000


@pytest.fixture
def house(tmp_path: Path) -> FaultyHouse:
    house = FaultyHouse(tmp_path)
    house.run()
    house.handbook.write_text(house.handbook.read_text(encoding="utf-8") + "\n" + MINE, encoding="utf-8")
    house.add_second()
    return house


def objects(house: FaultyHouse) -> list[Path]:
    return [path for path in (house.settings.history / "objects").rglob("*") if path.is_file()]


def cut_head(house: FaultyHouse) -> None:
    (house.settings.history / "HEAD").write_bytes(b"ref: re")


def cut_branch(house: FaultyHouse) -> None:
    (house.settings.history / "refs/heads/main").write_bytes(b"12345")


def lose_objects(house: FaultyHouse) -> None:
    for path in objects(house):
        path.unlink()


def lose_blobs(house: FaultyHouse) -> None:
    """Everything but the commits and trees, which a quick look reads."""
    for blob in contents_in_history(house):
        (house.settings.history / "objects" / blob[:2] / blob[2:]).unlink()


def tear_blobs(house: FaultyHouse) -> None:
    for blob in contents_in_history(house):
        path = house.settings.history / "objects" / blob[:2] / blob[2:]
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-20])


def contents_in_history(house: FaultyHouse) -> list[str]:
    words = ["git", "--git-dir", str(house.settings.history), "ls-tree", "-r", "HEAD"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=20).stdout
    return sorted({line.split()[2] for line in listed.splitlines()})


def be_a_file(house: FaultyHouse) -> None:
    shutil.rmtree(house.settings.history)
    house.settings.history.write_bytes(b"theirs")


def be_a_link(house: FaultyHouse) -> None:
    """To somebody's repository, in which a branch is called `main` as well."""
    house.settings.history.rename(house.base / "theirs.git")
    house.settings.history.symlink_to(house.base / "theirs.git")


def vanish(house: FaultyHouse) -> None:
    shutil.rmtree(house.settings.history)


@pytest.mark.parametrize(
    "spoil", [tear_blobs, be_a_link, *map(slow, (cut_head, cut_branch, lose_objects, lose_blobs, be_a_file, vanish))]
)
def test_a_history_that_can_not_be_read_is_put_aside_and_told(
    house: FaultyHouse, spoil: Callable[[FaultyHouse], None]
) -> None:
    spoil(house)
    theirs = files(house.base / "theirs.git") if (house.base / "theirs.git").exists() else {}
    report = house.later()
    outcome = consolidated(report)
    assert outcome.inputs == 2
    assert MINE in house.handbook.read_text(encoding="utf-8")
    if spoil is not vanish:
        assert any("history.git.broken" in warning for warning in outcome.warnings)
        assert list(house.settings.home.glob("history.git.broken-*"))
    if theirs:
        assert files(house.base / "theirs.git") == theirs
    assert isinstance(house.later().consolidate, NoChanges)


@pytest.mark.parametrize(
    "name", ["HEAD.lock", "index.lock", "refs/heads/main.lock", "packed-refs.lock", "shallow.lock"]
)
def test_a_lock_that_a_dead_git_left_is_removed(house: FaultyHouse, name: str) -> None:
    lock = house.settings.history / name
    lock.write_bytes(b"")
    os.utime(lock, (LONG_AGO, LONG_AGO))
    assert consolidated(house.later()).inputs == 2
    assert isinstance(house.later().consolidate, NoChanges)


def test_a_lock_that_a_living_git_may_hold_is_told_and_the_next_pass_completes_the_work(house: FaultyHouse) -> None:
    lock = house.settings.history / "refs/heads/main.lock"
    lock.write_bytes(b"")
    outcome = failed(house.later())
    assert outcome.status == "failed_workspace_commit"
    assert "main.lock" in outcome.reason
    os.utime(lock, (LONG_AGO, LONG_AGO))
    report = house.later()
    assert isinstance(report.consolidate, Consolidated | NoChanges)
    assert MINE in house.handbook.read_text(encoding="utf-8")
    assert isinstance(house.later().consolidate, NoChanges)


def test_a_staging_folder_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    house = FaultyHouse(tmp_path)
    theirs = house.settings.staging / "spare"
    theirs.mkdir(parents=True)
    (theirs / "thesis.txt").write_text("theirs", encoding="utf-8")
    (house.settings.staging / "photos").mkdir()
    before = files(house.settings.staging)
    outcome = failed(house.run())
    assert "none of Stillroom's" in outcome.reason
    assert "STILLROOM_HOME" in outcome.reason
    assert files(house.settings.staging) == before
    assert (house.settings.staging / "photos").exists()


def test_a_staging_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    house = FaultyHouse(tmp_path)
    house.settings.home.mkdir()
    house.settings.staging.write_bytes(b"")
    outcome = failed(house.run())
    assert str(house.settings.staging) in outcome.reason


def test_what_somebody_puts_beside_the_copies_stays(house: FaultyHouse) -> None:
    theirs = house.settings.staging / "notes"
    theirs.mkdir()
    (theirs / "a.txt").write_text("theirs", encoding="utf-8")
    (house.settings.staging / "b.txt").write_text("theirs", encoding="utf-8")
    (house.settings.staging / "link").symlink_to(house.base)
    assert consolidated(house.later()).inputs == 2
    assert (theirs / "a.txt").read_text(encoding="utf-8") == "theirs"
    assert (house.settings.staging / "b.txt").exists()
    assert (house.settings.staging / "link").is_symlink()


@pytest.mark.parametrize("trap", ["content", *map(slow, ("link", "pipe", "extra", "file"))])
def test_a_spare_copy_that_was_tampered_with_says_nothing(house: FaultyHouse, trap: str) -> None:
    spare = house.settings.staging / "spare"
    match trap:
        case "content":
            (spare / "MEMORY.md").write_text("# Task Group: forged\n", encoding="utf-8")
            (spare / "memory_summary.md").write_text("v1\nforged\n", encoding="utf-8")
        case "link":
            (spare / "MEMORY.md").unlink()
            (spare / "MEMORY.md").symlink_to(house.base / "codex")
        case "pipe":
            os.mkfifo(spare / "skills")
        case "extra":
            (spare / "rollout_summaries/forged.md").write_text("forged", encoding="utf-8")
        case "file":
            shutil.rmtree(spare)
            spare.write_bytes(b"")
    assert consolidated(house.later()).inputs == 2
    assert b"forged" not in b"".join(files(house.root).values())
    assert MINE in house.handbook.read_text(encoding="utf-8")
    assert isinstance(house.later().consolidate, NoChanges)
