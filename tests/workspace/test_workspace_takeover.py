from __future__ import annotations

import os
from pathlib import Path

import pytest

from stillroom.errors import MemoriesFound
from stillroom.workspace.history import History
from stillroom.workspace.takeover import check_consent

NOW = 1_790_000_000
NONE_YET = "# Raw Memories\n\nNo raw memories yet.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "memories" / "rollout_summaries").mkdir(parents=True)
    return tmp_path / "memories"


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "home" / "history.git")


def put(root: Path, path: str, text: str = "theirs\n") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def asks(root: Path, history: History, *, has_succeeded: bool = False) -> bool:
    try:
        assert not check_consent(root, history, has_succeeded=has_succeeded, adopt=False)
        assert not check_consent(root, history, has_succeeded=has_succeeded, adopt=True)
    except MemoriesFound:
        assert check_consent(root, history, has_succeeded=has_succeeded, adopt=True)
        return True
    return False


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["raw_memories.md"], "`raw_memories.md`"),
        (["rollout_summaries/a.md"], "`rollout_summaries/a.md`"),
        (
            ["MEMORY.md", "raw_memories.md", "rollout_summaries/b.md", "rollout_summaries/a.md"],
            "`raw_memories.md` and 2 files in `rollout_summaries`, `a.md` one of them",
        ),
    ],
)
def test_another_program_s_memories_are_named(root: Path, history: History, files: list[str], found: str) -> None:
    for path in files:
        put(root, path)
    with pytest.raises(MemoriesFound) as refused:
        check_consent(root, history, has_succeeded=False, adopt=False)
    assert str(refused.value) == f"`{root}` holds memories that Stillroom did not write: {found}"
    assert "--adopt" in (refused.value.hint or "")
    assert check_consent(root, history, has_succeeded=False, adopt=True)
    assert not history.git_dir.exists()


def test_a_folder_without_summaries_and_raw_memories_needs_no_consent(root: Path, history: History) -> None:
    assert not asks(root / "missing", history)
    put(root, "MEMORY.md")
    put(root, "memory_summary.md")
    put(root, "skills/theirs/SKILL.md")
    put(root, "rollout_summaries/notes.txt")
    put(root, "raw_memories.md", NONE_YET)
    assert not asks(root, history)


def test_what_is_behind_a_link_is_not_in_the_folder(root: Path, history: History, tmp_path: Path) -> None:
    put(tmp_path, "outside/a.md")
    (root / "rollout_summaries").rmdir()
    (root / "rollout_summaries").symlink_to(tmp_path / "outside")
    (root / "raw_memories.md").symlink_to(tmp_path / "outside" / "a.md")
    (tmp_path / "linked").symlink_to(root)
    assert not asks(root, history)
    assert not asks(tmp_path / "linked", history)
    os.mkfifo(root / "pipe")
    assert not asks(root, history)


def test_a_folder_with_our_history_is_ours(root: Path, history: History) -> None:
    put(root, "rollout_summaries/a.md")
    assert asks(root, history)
    history.ensure(root, now=NOW)
    assert not asks(root, history)
    history.note_folder(root)
    put(root, "rollout_summaries/a.md", "other\n")
    assert not asks(root, history)


def test_a_history_that_a_person_deleted_after_a_success_needs_no_consent(root: Path, history: History) -> None:
    put(root, "rollout_summaries/a.md")
    assert not asks(root, history, has_succeeded=True)


def test_the_history_of_another_folder_does_not_make_this_one_ours(
    root: Path, history: History, tmp_path: Path
) -> None:
    put(root, "rollout_summaries/a.md")
    history.ensure(root, now=NOW)
    history.note_folder(root)
    theirs = tmp_path / "codex" / "memories"
    put(theirs, "rollout_summaries/b.md")
    assert asks(theirs, history, has_succeeded=True)
    moved = root.rename(tmp_path / "moved")
    put(moved, "rollout_summaries/c.md")
    assert not asks(moved, history, has_succeeded=True)
    (history.git_dir / "refs/heads/main").unlink()
    assert asks(moved, history, has_succeeded=True)
