"""`status` counts what memory names by what became of it, and asks git nothing."""

from __future__ import annotations

from pathlib import Path

from stillroom.insight.facts import Facts, Gone, read_facts
from stillroom.recall.freshness.anchors import Kind
from stillroom.recall.freshness.looks import look_of
from stillroom.recall.freshness.stored import Checked, Fact, Freshness, State, save_freshness


def fact(text: str, state: State, *, kind: Kind = "path", now: str | None = None) -> Fact:
    return Fact(kind=kind, text=text, state=state, now=now)


def checked(folder: str, at: int, *facts: Fact, left: int = 0) -> Checked:
    return Checked(folder=folder, place=f"{folder}/.git", look=[None], at=at, facts=facts, left=left)


def test_broken_facts_are_named_before_those_that_moved(tmp_path: Path) -> None:
    one = checked("/one", 50, fact("a.py", "fresh"), fact("b.py", "moved", now="c.py"))
    two = checked("/two", 40, fact("make x", "broken", kind="command"), fact("d.py", "fresh"), left=3)
    save_freshness(tmp_path, Freshness(repositories=(one, two)))
    assert (tmp_path / "freshness.json").stat().st_mode & 0o777 == 0o600
    assert read_facts(tmp_path) == Facts(
        repositories=2,
        states={"fresh": 2, "moved": 1, "broken": 1},
        left=3,
        checked_at=40,
        gone=(
            Gone(folder="/two", kind="command", text="make x", now=None),
            Gone(folder="/one", kind="path", text="b.py", now="c.py"),
        ),
    )


def test_without_a_pass_nothing_is_known(tmp_path: Path) -> None:
    assert read_facts(tmp_path) == Facts()


def test_a_repository_in_which_git_wrote_since_is_counted(tmp_path: Path) -> None:
    git_dir = tmp_path / "repo" / ".git"
    git_dir.mkdir(parents=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    folder = str(tmp_path / "repo")
    known = Checked(folder=folder, place=str(git_dir), look=look_of(folder, str(git_dir)), at=1, facts=())
    save_freshness(tmp_path, Freshness(repositories=(known,)))
    assert read_facts(tmp_path).changed_since == 0
    (git_dir / "packed-refs").write_text("x\n", encoding="utf-8")
    assert read_facts(tmp_path).changed_since == 1
