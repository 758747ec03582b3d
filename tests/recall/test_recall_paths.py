"""No path leads out of the memory folder, whatever it says and whatever is done to the folder meanwhile."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.errors import NotFound, PathRefused, RecallError
from stillroom.recall.browse.listing import list_memories
from stillroom.recall.browse.paths import components
from stillroom.recall.browse.reading import read_memory
from stillroom.recall.browse.searching import search_memories

SECRET = "outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(f"{SECRET}\n", encoding="utf-8")
    root = tmp_path / "memories"
    (root / "skills" / "deploy").mkdir(parents=True)
    (root / "skills" / "deploy" / "SKILL.md").write_text("# Deploy\n", encoding="utf-8")
    (root / "MEMORY.md").write_text("# Task Group: a\n", encoding="utf-8")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n", encoding="utf-8")
    (root / "link").symlink_to(outside)
    (root / "link.md").symlink_to(outside / "secret.md")
    os.mkfifo(root / "pipe.md")
    return root


@pytest.mark.parametrize(
    "path",
    ["..", "../outside/secret.md", "skills/../../outside", "/etc/passwd", "C:\\x", "c:x", "\\\\server\\x", "a\0b"],
)
def test_a_path_that_leads_out_is_refused(root: Path, path: str) -> None:
    for ask in (list_memories, read_memory):
        with pytest.raises(PathRefused):
            ask(root, path=path)
    with pytest.raises(PathRefused):
        search_memories(root, [SECRET], path=path)


@pytest.mark.parametrize("path", [".git", ".git/config", "skills/.hidden", "...", "nothing", "skills/nothing/deeper"])
def test_what_is_hidden_is_as_missing_as_what_is_missing(root: Path, path: str) -> None:
    with pytest.raises(NotFound):
        read_memory(root, path)
    with pytest.raises(NotFound):
        list_memories(root, path=path)


@pytest.mark.parametrize("path", ["link", "link/secret.md", "link.md", "pipe.md", "MEMORY.md/x"])
def test_links_special_files_and_steps_through_files_are_refused(root: Path, path: str) -> None:
    with pytest.raises(PathRefused):
        read_memory(root, path)
    with pytest.raises(PathRefused):
        search_memories(root, ["x"], path=path)


def test_a_socket_is_no_regular_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.md")
        with pytest.raises(PathRefused, match="no regular file"):
            read_memory(tmp_path, "s.md")


def test_a_folder_that_is_a_link_is_refused_with_any_path(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    for path in (None, "MEMORY.md"):
        with pytest.raises(PathRefused, match="is a link"):
            list_memories(tmp_path / "alias", path=path)


def test_a_missing_folder_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as raised:
        list_memories(tmp_path / "none")
    assert raised.value.hint == "`stillroom run` makes one"


def test_dots_and_doubled_slashes_are_no_steps(root: Path) -> None:
    assert read_memory(root, "./skills//deploy/./SKILL.md/").content == "# Deploy\n"


@given(st.text(max_size=40))
def test_any_text_is_a_path_inside_or_an_error_of_ours(text: str) -> None:
    try:
        steps = components(text)
    except RecallError:
        return
    assert not any(step in ("", ".", "..") or "/" in step or step.startswith(".") for step in steps)


@pytest.mark.parametrize(
    ("ask", "shown"),
    [
        (lambda root: [match.content for match in search_memories(root, [SECRET, "# Deploy"]).matches], ["# Deploy"]),
        (lambda root: [entry.path for entry in list_memories(root, path="skills").entries], ["skills/deploy"]),
        (lambda root: read_memory(root, "skills/deploy/SKILL.md").content, "# Deploy\n"),
        (lambda root: read_memory(root, "skills/secret.md").content, None),
    ],
)
def test_a_folder_swapped_for_a_link_between_any_two_system_calls_never_shows_what_is_outside(
    root: Path, ask: Callable[[Path], object], shown: object
) -> None:
    inside, aside = root / "skills", root / ".aside"
    (root.parent / "outside" / "deploy").mkdir()
    (root.parent / "outside" / "deploy" / "SKILL.md").write_text(f"{SECRET}\n", encoding="utf-8")
    answers, refused = [], 0
    for swap_at in range(100):
        before = 0

        def swap(frame: FrameType, event: str, called: object, swap_at: int = swap_at) -> None:
            nonlocal before
            if event == "c_call" and called in (os.open, os.scandir, os.fstat):
                if before == swap_at:
                    inside.rename(aside)
                    inside.symlink_to(root.parent / "outside")
                before += 1

        sys.setprofile(swap)
        try:
            answers.append(ask(root))
        except NotFound:
            pass
        except PathRefused:
            refused += 1
        finally:
            sys.setprofile(None)
        if not inside.is_symlink():
            break
        inside.unlink()
        aside.rename(inside)
    assert before <= swap_at, "there are calls ahead of which nothing was swapped"
    # A search passes over links.
    assert (refused == 0) == (shown == ["# Deploy"])
    assert [answer for answer in answers if answer not in (shown, [])] == []
    assert (shown in answers) == (shown is not None)
