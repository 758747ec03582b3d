"""One file of ours, written whole or not at all."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from stillroom.private_file import write_private


def test_it_is_its_owners_alone_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_private(path, b"new", durable=True)
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_of_several_that_write_at_once_one_counts_whole(tmp_path: Path) -> None:
    path, gate = tmp_path / "file", threading.Barrier(4)
    wanted = [bytes([letter]) * 200_000 for letter in b"abcd"]

    def write(data: bytes) -> None:
        gate.wait()
        for _ in range(5):
            write_private(path, data)

    threads = [threading.Thread(target=write, args=(data,)) for data in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in wanted and list(tmp_path.iterdir()) == [path]


def test_what_can_not_be_put_in_its_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_private(tmp_path / "folder", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
