"""A history that is written anew without something, and a folder that is changed under a person's hands."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.config import StageTwo
from stillroom.errors import HistoryError
from stillroom.workspace.history import History
from stillroom.workspace.mending import mend
from stillroom.workspace.rewriting import rewrite
from stillroom.workspace.tree import TEMPORARY_PREFIX

ODD = 'x ü \\ " \n.md'


def nothing(_: str) -> None:
    pass


def without_secret(data: bytes) -> bytes | None:
    return None if data == b"secret" else data.replace(b"secret\n", b"")


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Four versions: of a secret line, of a file that is all secret and comes and goes, of neither."""
    folder, history = tmp_path / "folder", History(tmp_path / "history.git")
    folder.mkdir()
    (folder / "MEMORY.md").write_text("a\n", encoding="utf-8")
    history.ensure(folder, now=1)
    (folder / "MEMORY.md").write_text("a\nsecret\n", encoding="utf-8")
    (folder / ODD).write_text("secret", encoding="utf-8")
    history.commit(folder, "two\n\nStillroom-Run: 2\n", now=2)
    (folder / ODD).unlink()
    history.commit(folder, "three", now=3)
    (folder / "s").mkdir()
    (folder / "s" / ODD).write_text("fine", encoding="utf-8")
    (folder / "s" / ODD).chmod(0o700)
    history.commit(folder, "four", now=4)
    return history


def log(history: History) -> list[str]:
    return history.repository.run("log", "--format=%s|%ct|%ae").decode().splitlines()


def objects(history: History) -> bytes:
    found: list[bytes] = []
    history.repository.visit(lambda name, kind, data: found.append(data))
    return b"\n".join(found)


@pytest.mark.parametrize("packed", [0, 5, 99])
def test_no_object_holds_it_any_more_and_the_rest_is_as_it_was(history: History, packed: int) -> None:
    first = history.repository.run("rev-list", "--max-parents=0", "HEAD").decode().strip()
    before = {
        commit: history.repository.message(commit)
        for commit in history.repository.run("rev-list", "HEAD").decode().split()
    }
    history.repository.run("hash-object", "-w", "--stdin", stdin=b"secret\nthat nothing leads to")
    if packed:
        assert history.repository.pack_loose(at_least=1, at_most=packed) > 4
    assert b"secret" in objects(history)
    done = rewrite(
        history.repository, without_secret, is_gone=lambda path: False, message="gone", now=9, checkpoint=nothing
    )
    assert b"secret" not in objects(history)
    assert history.repository.is_whole()
    # The version that only took the secret file out is a change no more.
    assert [line.partition("|")[0] for line in log(history)] == ["gone", "four", "Take the folder as it is"]
    assert done.commits.keys() == before.keys() and done.commits[first] == first
    assert {path: entry.executable for path, entry in history.baseline().items()} == {
        "MEMORY.md": False,
        f"s/{ODD}": True,
    }
    again = rewrite(
        history.repository, without_secret, is_gone=lambda path: False, message="gone", now=9, checkpoint=nothing
    )
    assert (again.contents, again.commits) == (0, {})


def test_a_path_that_is_gone_is_in_no_version(history: History) -> None:
    rewrite(
        history.repository,
        lambda data: data,
        is_gone=lambda path: path.startswith("s/"),
        message="m",
        now=9,
        checkpoint=nothing,
    )
    assert list(history.baseline()) == ["MEMORY.md"]
    assert b"fine" not in objects(history)


def test_a_damaged_object_is_an_error_and_not_an_end(history: History) -> None:
    for path in (history.git_dir / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"broken")
    with pytest.raises(HistoryError):
        objects(history)


def test_files_are_changed_deleted_or_left_with_their_permissions(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ODD).write_text("secret\nkept\n", encoding="utf-8")
    (tmp_path / "a" / ODD).chmod(0o640)
    (tmp_path / "gone").write_text("secret", encoding="utf-8")
    (tmp_path / "other").write_text("other", encoding="utf-8")
    (tmp_path / "link").symlink_to("other")
    (tmp_path / f"{TEMPORARY_PREFIX}old").write_text("secret", encoding="utf-8")
    before = (tmp_path / "other").stat()
    done = mend(tmp_path, lambda path, data: without_secret(data), limits=StageTwo(), checkpoint=nothing)
    assert (len(done.written), done.deleted, done.restless) == (1, ("gone",), ())
    assert (tmp_path / "a" / ODD).read_text(encoding="utf-8") == "kept\n"
    assert (tmp_path / "a" / ODD).stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "other").stat() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "link", "other"]


def test_what_an_editor_saves_meanwhile_is_looked_at_again(tmp_path: Path) -> None:
    file = tmp_path / "MEMORY.md"
    file.write_text("secret\n", encoding="utf-8")
    saves = iter(["secret\nmine\n"])

    def change(path: str, data: bytes) -> bytes | None:
        if text := next(saves, None):
            file.write_text(text, encoding="utf-8")
        return without_secret(data)

    assert mend(tmp_path, change, limits=StageTwo(), checkpoint=nothing).written == ("MEMORY.md",)
    assert file.read_text(encoding="utf-8") == "mine\n"


def test_a_file_that_never_rests_is_told(tmp_path: Path) -> None:
    file = tmp_path / "MEMORY.md"
    file.write_text("secret\n", encoding="utf-8")
    saves = iter(range(100))

    def change(path: str, data: bytes) -> bytes | None:
        file.write_text(f"secret\n{next(saves)}\n", encoding="utf-8")
        return without_secret(data)

    assert mend(tmp_path, change, limits=StageTwo(), checkpoint=nothing).restless == ("MEMORY.md",)
    assert file.read_text(encoding="utf-8").startswith("secret\n")
