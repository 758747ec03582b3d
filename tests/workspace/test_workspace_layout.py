from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from stillroom.config import StageTwo
from stillroom.errors import FolderRefused
from stillroom.workspace.layout import LayoutReport, RemovedLink, prepare_folder
from stillroom.workspace.scanning import scan
from stillroom.workspace.tree import remove_tree


def test_a_fresh_folder_is_private(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "memories"
    assert prepare_folder(root) == LayoutReport(created=True)
    assert root.stat().st_mode & 0o777 == 0o700
    assert (root / "rollout_summaries").is_dir()
    assert prepare_folder(root) == LayoutReport()


def test_permissions_of_an_existing_folder_stay(tmp_path: Path) -> None:
    root = tmp_path / "memories"
    root.mkdir(mode=0o755)
    prepare_folder(root)
    assert root.stat().st_mode & 0o777 == 0o755


def test_a_root_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "memories").symlink_to(tmp_path / "real")
    with pytest.raises(FolderRefused, match="is a link to"):
        prepare_folder(tmp_path / "memories")
    assert not list((tmp_path / "real").iterdir())


def test_a_dangling_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memories").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FolderRefused):
        prepare_folder(tmp_path / "memories")
    assert not (tmp_path / "nowhere").exists()


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memories").write_text("mine", encoding="utf-8")
    with pytest.raises(FolderRefused, match="not a folder"):
        prepare_folder(tmp_path / "memories")


def test_links_inside_go_and_their_targets_stay(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine", encoding="utf-8")
    root = tmp_path / "memories"
    (root / "skills" / "deploy").mkdir(parents=True)
    (root / "extensions").symlink_to(outside)
    (root / "skills/deploy/SKILL.md").symlink_to(outside / "file")
    (root / "dangling").symlink_to("nowhere")
    report = prepare_folder(root)
    assert report.removed_links == (
        RemovedLink("dangling", "nowhere"),
        RemovedLink("extensions", str(outside)),
        RemovedLink("skills/deploy/SKILL.md", str(outside / "file")),
    )
    assert (outside / "file").read_text(encoding="utf-8") == "mine"
    assert [path.name for path in root.rglob("*") if path.is_symlink()] == []


def test_a_source_repository_is_refused_and_keeps_its_links(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "MEMORY.md").write_text("notes", encoding="utf-8")
    (root / "current").symlink_to("MEMORY.md")
    with pytest.raises(FolderRefused, match="git repository"):
        prepare_folder(root)
    assert (root / "current").is_symlink() and not (root / "rollout_summaries").exists()


def test_codex_s_own_folder_is_accepted_with_its_git(tmp_path: Path) -> None:
    root = tmp_path / "memories"
    (root / ".git").mkdir(parents=True)
    (root / "rollout_summaries").mkdir()
    assert prepare_folder(root) == LayoutReport()
    assert (root / ".git").is_dir()


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / "stuff" / name).mkdir(parents=True)
    with pytest.raises(FolderRefused, match="4 entries and no memories") as refused:
        prepare_folder(tmp_path / "stuff")
    assert refused.value.hint


def test_a_few_notes_of_a_person_are_no_reason_to_refuse(tmp_path: Path) -> None:
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories/notes.md").write_text("mine", encoding="utf-8")
    prepare_folder(tmp_path / "memories")


def test_the_home_directory_and_stillroom_s_own_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    with pytest.raises(FolderRefused, match="home directory"):
        prepare_folder(tmp_path / "home")
    (tmp_path / "still").mkdir()
    (tmp_path / "still/state.sqlite3").touch()
    with pytest.raises(FolderRefused, match="Stillroom's home"):
        prepare_folder(tmp_path / "still")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "memories"
    root.mkdir(mode=0o500)
    with pytest.raises(FolderRefused, match="can't be written"):
        prepare_folder(root)


def test_a_scan_neither_follows_nor_waits(tmp_path: Path) -> None:
    (tmp_path / "file.md").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").touch()
    (tmp_path / "phase2_workspace_diff.md").touch()
    (tmp_path / "large").write_bytes(b"x" * 100)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
        found = scan(tmp_path, limits=StageTwo(max_file_bytes=50))
    assert (list(found.files), found.links, found.odd, found.too_large) == (
        ["file.md"],
        ["link"],
        ["pipe", "socket"],
        ["large"],
    )


@pytest.mark.slow
def test_any_tree_can_be_removed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    here = os.open(victim, os.O_RDONLY)
    for _ in range(1500):  # deeper than the stack, the descriptors and PATH_MAX allow
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.symlink(outside, "link", dir_fd=here)
    os.close(here)
    (victim / "locked").mkdir(mode=0o000)
    remove_tree(victim)
    assert not victim.exists() and (outside / "file").exists()


def test_a_removal_that_was_killed_in_the_middle_is_finished(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (victim / ".stillroom-tmp-0" / "left").mkdir(parents=True)  # moved up, and not emptied
    (victim / "tree" / "below" / "deeper").mkdir(parents=True)
    (victim / "tree" / "other").mkdir()
    remove_tree(victim)
    assert not victim.exists()
