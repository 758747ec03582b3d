"""Files of the live folder, put in their places only where nobody else was since they were looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.workspace.placing import create, remove, replace

NAME, NEW = "MEMORY.md", ".stillroom-new"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    (tmp_path / NAME).write_text("old", encoding="utf-8")
    (tmp_path / NEW).write_text("new", encoding="utf-8")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def seen(tmp_path: Path) -> os.stat_result:
    return (tmp_path / NAME).stat(follow_symlinks=False)


def of_another(status: os.stat_result, field: str) -> os.stat_result:
    """The same, but for one field: what a look at another file would have shown."""
    _, (values, more) = status.__reduce__()  # type: ignore[misc]  # a tuple and the rest
    changed = list(values)
    places = {"st_mode": 0, "st_ino": 1, "st_size": 6}
    if field in places:
        changed[places[field]] ^= 1
    return os.stat_result(changed, {**more, **({} if field in places else {field: more[field] - 1})})


@pytest.mark.parametrize("field", ["st_ino", "st_size", "st_mtime_ns", "st_ctime_ns", "st_mode"])
def test_a_file_that_differs_in_anything_since_it_was_seen_stays(tmp_path: Path, folder: int, field: str) -> None:
    status = of_another(seen(tmp_path), field)
    assert getattr(status, field) != getattr(seen(tmp_path), field)
    assert not replace(folder, NEW, folder, NAME, status, executable=False)
    assert not remove(folder, NAME, status)
    assert (tmp_path / NAME).read_text(encoding="utf-8") == "old"


def test_a_file_that_was_overwritten_at_the_same_size_stays(tmp_path: Path, folder: int) -> None:
    status = seen(tmp_path)
    with (tmp_path / NAME).open("r+", encoding="utf-8") as file:
        file.write("mad")
    os.utime(tmp_path / NAME, ns=(0, status.st_mtime_ns + 1))
    assert not replace(folder, NEW, folder, NAME, status, executable=False)
    assert (tmp_path / NAME).read_text(encoding="utf-8") == "mad"


def test_what_is_as_it_was_seen_is_replaced_or_removed(tmp_path: Path, folder: int) -> None:
    assert replace(folder, NEW, folder, NAME, seen(tmp_path), executable=True)
    assert (tmp_path / NAME).read_text(encoding="utf-8") == "new"
    assert os.access(tmp_path / NAME, os.X_OK)
    assert remove(folder, NAME, seen(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_takes_no_place_that_is_taken(tmp_path: Path, folder: int) -> None:
    assert not create(folder, NEW, folder, NAME)
    assert (tmp_path / NAME).read_text(encoding="utf-8") == "old"
    assert create(folder, NEW, folder, "other")
    assert {path.name for path in tmp_path.iterdir()} == {NAME, "other"}


def test_what_the_system_makes_no_second_name_for_is_moved(tmp_path: Path, folder: int) -> None:
    """A folder has one name on every file system, as a file has on some: the system says the same of both."""
    (tmp_path / "sub").mkdir()
    assert create(folder, "sub", folder, "moved")
    assert (tmp_path / "moved").is_dir() and not (tmp_path / "sub").exists()
    with pytest.raises(FileNotFoundError):
        create(folder, "nowhere", folder, "else")
