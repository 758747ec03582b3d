"""The versions of a folder, listed and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.config import Settings
from stillroom.errors import HistoryError
from stillroom.undoing.versions import change_of, change_since, open_history, parent_of, resolve, versions
from stillroom.workspace.history import History


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home with three versions: a person's file, a consolidation, and an edit after it."""
    settings = Settings(home=tmp_path / "home")
    settings.root.mkdir(parents=True)
    history = History(settings.history)
    (settings.root / "MEMORY.md").write_text("# Memory\n", encoding="utf-8")
    history.ensure(settings.root, now=1000)
    (settings.root / "MEMORY.md").write_text("# Memory\n\n- one\n", encoding="utf-8")
    (settings.root / "rollout_summaries").mkdir()
    (settings.root / "rollout_summaries" / "a.md").write_text("thread_id: a\n", encoding="utf-8")
    history.commit(settings.root, "Consolidate 1 threads\n\nStillroom-Run: 17-ab\n", now=2000)
    (settings.root / "MEMORY.md").write_text("# Memory\n\n- two\n", encoding="utf-8")
    history.commit(settings.root, "Edits", now=3000)
    return settings


def test_every_version_is_listed_with_what_it_changed(settings: Settings) -> None:
    found = versions(open_history(settings))
    assert [(v.at, v.subject, v.changed, v.run) for v in found] == [
        (3000, "Edits", ("M MEMORY.md",), None),
        (2000, "Consolidate 1 threads", ("M MEMORY.md", "A rollout_summaries/a.md"), "17-ab"),
        (1000, "Take the folder as it is", ("A MEMORY.md",), None),
    ]
    assert versions(open_history(settings), limit=1) == found[:1]
    assert versions(open_history(settings), since=found[1].commit) == found[:1]


def test_a_version_is_compared_with_the_one_before_and_copies_are_left_out(settings: Settings) -> None:
    history = open_history(settings)
    commit = resolve(history, "HEAD~1")
    found = change_of(history, commit, everything=False)
    assert (found.before, found.after) == (parent_of(history, commit), commit)
    assert "+- one" in found.diff and "thread_id" not in found.diff
    assert found.left_out == ("rollout_summaries/a.md",)
    whole = change_of(history, commit, everything=True)
    assert "+thread_id: a" in whole.diff and whole.left_out == ()
    first = change_of(history, resolve(history, "HEAD~2"), everything=False)
    assert first.before is None and "+# Memory" in first.diff


def test_a_version_is_compared_with_the_folder_and_the_history_stays_as_it_is(settings: Settings) -> None:
    history = open_history(settings)
    head = history.head()
    assert head is not None
    assert change_since(history, head, settings.root, everything=False).diff == ""
    (settings.root / "MEMORY.md").write_text("# Memory\n\n- mine\n", encoding="utf-8")
    objects = sorted(path for path in settings.history.rglob("*") if path.is_file())
    found = change_since(history, resolve(history, "HEAD~1"), settings.root, everything=False)
    assert "-- one" in found.diff and "+- mine" in found.diff
    assert sorted(path for path in settings.history.rglob("*") if path.is_file()) == objects


@pytest.mark.parametrize("name", ["", "abc", "--all", "HEAD:MEMORY.md", "main", "HEAD~99", "f" * 40, "a b", "HEAD@{1}"])
def test_what_is_no_version_is_refused_by_name(settings: Settings, name: str) -> None:
    with pytest.raises(HistoryError, match="version"):
        resolve(open_history(settings), name)


def test_a_missing_or_damaged_history_is_said(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(HistoryError, match="there is no history yet"):
        open_history(Settings(home=tmp_path / "empty"))
    (settings.history / "HEAD").write_text("nonsense", encoding="utf-8")
    with pytest.raises(HistoryError, match="can't be read"):
        open_history(settings)
