"""Which folders are one project, and which are not: on real repositories."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_repositories import git, repository

from stillroom.recall.injection.folders import ask_first_commit
from stillroom.recall.projects.objects import holds_commit
from stillroom.recall.projects.remotes import normalise_remote, remote_urls
from stillroom.recall.projects.repository import Repository, find_same, identify, same_project

URL = "https://example.com/ada/shop.git"


def known(folder: Path) -> Repository:
    """What a pass knows of a folder."""
    found = identify(folder)
    commit = ask_first_commit(found.place, timeout_seconds=20)
    return Repository(
        place=found.place, folder=found.folder, is_git=found.is_git, remote=found.remote, first_commit=commit
    )


def test_a_work_tree_with_its_sub_folders_and_worktrees_is_one_project(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", remote=URL)
    (shop / "a" / "b").mkdir(parents=True)
    git(shop, "worktree", "add", "-q", str(tmp_path / "wt"))
    (tmp_path / "link").symlink_to(shop / "a")
    places = {identify(f).place for f in (shop, shop / "a/b", tmp_path / "wt", tmp_path / "link", shop / "gone/b")}
    assert places == {str(shop / ".git")}
    assert identify(tmp_path / "wt").folder == str(tmp_path / "wt")
    assert identify(tmp_path / "wt").remote == "example.com/ada/shop"


def test_git_directories_elsewhere_and_bare_ones_are_found(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    git(away, "init", "-q", "--separate-git-dir", str(tmp_path / "store"))
    assert identify(away).place == str(tmp_path / "store")
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(repository(tmp_path / "shop")), str(bare))
    git(bare, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert identify(bare).place == identify(tmp_path / "tree").place == str(bare)


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    library, shop = repository(tmp_path / "library", first="library"), repository(tmp_path / "shop")
    git(shop, "submodule", "--quiet", "add", str(library), "vendor/library")
    inside = identify(shop / "vendor" / "library")
    assert inside.place == str(shop / ".git" / "modules" / "vendor" / "library")
    assert same_project(inside, identify(library))  # a clone of it
    assert not same_project(inside, identify(shop))


@pytest.mark.parametrize("packed", [False, True])
def test_a_renamed_folder_is_known_by_its_first_commit_before_any_pass(tmp_path: Path, packed: bool) -> None:
    shop, other = repository(tmp_path / "shop"), repository(tmp_path / "other", first="other")
    if packed:
        git(shop, "gc", "-q")
    before = [known(other), known(shop)]
    shop.rename(tmp_path / "store")
    assert find_same(identify(tmp_path / "store"), before) == {1}


def test_clones_are_one_project_by_remote_or_by_first_commit(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", remote=URL)
    git(tmp_path, "clone", "-q", str(shop), str(tmp_path / "clone"))
    assert same_project(identify(tmp_path / "clone"), identify(shop))  # its remote is that folder
    git(tmp_path / "clone", "remote", "set-url", "origin", "git@example.com:ada/shop.git")
    assert same_project(identify(tmp_path / "clone"), identify(shop))
    git(tmp_path / "clone", "remote", "set-url", "origin", "git@mirror.example:m/shop")
    assert not same_project(identify(tmp_path / "clone"), identify(shop))
    assert find_same(identify(tmp_path / "clone"), [known(shop)]) == {0}
    assert same_project(known(tmp_path / "clone"), known(shop))


def test_a_fork_keeps_its_name_and_is_the_project_a_product_of_a_template_does_not(tmp_path: Path) -> None:
    origin = repository(tmp_path / "a", remote="https://example.com/team/starter")
    for name, url in (("b", "git@example.com:ada/starter.git"), ("c", "git@example.com:team/webshop.git")):
        git(tmp_path, "clone", "-q", str(origin), name)
        git(tmp_path / name, "remote", "set-url", "origin", url)
    assert find_same(identify(tmp_path / "b"), [known(origin)]) == {0}
    assert find_same(identify(tmp_path / "c"), [known(origin)]) == set()
    assert not same_project(known(tmp_path / "c"), known(origin))


def test_without_git_a_folder_is_its_real_path_and_nothing_below_it(tmp_path: Path) -> None:
    (tmp_path / "plain" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    plain = identify(tmp_path / "plain")
    assert plain == Repository(place=str(tmp_path / "plain"), folder=str(tmp_path / "plain"), is_git=False)
    assert same_project(identify(tmp_path / "link"), plain)
    assert not same_project(identify(tmp_path / "plain" / "below"), plain)


def test_a_folder_stays_the_project_when_git_comes_to_it(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    before = identify(tmp_path / "shop")
    git(tmp_path / "shop", "init", "-q")
    assert same_project(identify(tmp_path / "shop"), before)


def test_a_repository_in_the_home_directory_does_not_claim_what_is_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    repository(tmp_path / "ada")
    (tmp_path / "ada" / "notes").mkdir()
    assert identify(tmp_path / "ada").is_git
    assert not identify(tmp_path / "ada" / "notes").is_git


@pytest.mark.parametrize("content", ["", "gitdir:", "gitdir: /not/there", "\0\xff" * 5000, "gitdir: .git", "worktree"])
def test_a_broken_git_file_makes_a_plain_folder(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content, encoding="latin-1")
    assert not identify(tmp_path).is_git


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    (shop / ".git" / "config").unlink()
    os.mkfifo(shop / ".git" / "config")
    assert identify(shop).remote is None
    shutil.rmtree(shop / ".git")
    os.mkfifo(shop / ".git")
    assert not identify(shop).is_git


def test_a_path_that_is_none_is_no_repository(tmp_path: Path) -> None:
    assert not identify("/x\0y").is_git
    shop = repository(tmp_path / "shop")
    (shop / ".git" / "commondir").write_text("\0", encoding="ascii")
    (shop / ".git" / "config").write_text('[remote "origin"]\nurl = /x\0y\n', encoding="ascii")
    assert identify(shop).remote is None
    assert not identify("/" + "long" * 5000).is_git


def test_of_several_roots_the_oldest_is_the_first_commit_and_a_shallow_clone_has_none(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", at=1_700_000_500)
    git(shop, "checkout", "-q", "--orphan", "pages")
    git(shop, "commit", "-q", "--allow-empty", "-m", "older", at=1_600_000_000)
    oldest = git(shop, "rev-parse", "HEAD")
    git(shop, "checkout", "-q", "main")
    git(shop, "commit", "-q", "--allow-empty", "-m", "second")
    assert ask_first_commit(str(shop / ".git"), timeout_seconds=20) == oldest
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{shop}", "shallow")
    assert ask_first_commit(str(tmp_path / "shallow" / ".git"), timeout_seconds=20) is None
    assert ask_first_commit(str(tmp_path / "none"), timeout_seconds=20) is None
    assert ask_first_commit(str(shop / ".git"), timeout_seconds=0) is None


def test_objects_are_found_in_packs_as_git_finds_them(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    for number in range(6):
        (shop / "file").write_text(str(number), encoding="utf-8")
        git(shop, "add", "file")
        git(shop, "commit", "-q", "-m", "next")
    git(shop, "gc", "-q")
    everything = git(shop, "rev-list", "--objects", "--all", "--no-object-names").split()
    assert all(holds_commit(str(shop / ".git"), name) for name in everything)
    absent = [f"{int(name, 16) ^ 1:040x}" for name in everything] + ["0" * 40, "f" * 40, "no hex", ""]
    assert not any(holds_commit(str(shop / ".git"), name) for name in absent)
    index = next((shop / ".git" / "objects" / "pack").glob("*.idx"))
    index.chmod(0o600)
    index.write_bytes(index.read_bytes()[:1100])
    assert not holds_commit(str(shop / ".git"), "f" * 40)


SAME = [
    "https://example.com/ada/shop",
    "https://example.com:443/ada/shop.git/",
    "https://user:secret@Example.COM/ada/shop.git",
    "http://example.com:80//ada/shop",
    "ssh://git@example.com/ada/shop.git",
    "ssh://git@example.com:22/ada/shop",
    "git+ssh://git@example.com/ada/shop",
    "git://example.com:9418/ada/shop?x=1#y",
    "git@example.com:ada/shop.git",
    "example.com:/ada/shop",
    "  git@example.com:ada/shop.git\n",
]


@pytest.mark.parametrize("url", SAME)
def test_every_spelling_of_a_remote_is_the_same(url: str) -> None:
    assert normalise_remote(url) == "example.com/ada/shop"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ssh://git@example.com:2222/ada/shop", "example.com:2222/ada/shop"),
        ("ssh://git@ssh.github.com:443/Ada/Shop.git", "github.com/ada/shop"),
        ("https://example.com/Ada/Shop", "example.com/Ada/Shop"),
        ("/srv/git/shop.git", "file:/srv/git/shop"),
        ("file:///srv/git/shop/.git", "file:/srv/git/shop"),
        ("../shop.git", "file:/shop"),
        ("C:\\work\\shop", "file:/home/ada/C:\\work\\shop"),
        ("https://example.com", None),
        ("https://example.com/", None),
        ("", None),
        ("https:///x", None),
    ],
)
def test_other_remotes(url: str, expected: str | None) -> None:
    assert normalise_remote(url, relative_to="/home/ada") == expected if "../" not in url else True
    if "../" in url:
        assert normalise_remote(url, relative_to="/home") == expected


@given(st.text())
def test_any_text_is_a_remote_or_none_and_says_no_credentials(text: str) -> None:
    normalise_remote(text)
    assert "secret" not in (normalise_remote(f"https://u:secret@h/{text}") or "").split("/")[0]


def test_the_configuration_is_read_as_git_reads_it(tmp_path: Path) -> None:
    text = (
        '[core]\n\turl = no\n[remote "up"]\n\tfetch = x\n\tURL = "https://h/a#b" ; comment\n'
        '[remote "origin"] url = git@h:a/b\n[branch "x"]\n url = no\n[Remote "two"]\nurl=one\nurl=two\n'
    )
    assert remote_urls(text) == {"up": "https://h/a#b", "origin": "git@h:a/b", "two": "one"}
    shop = repository(tmp_path / "shop")
    git(shop, "remote", "add", "upstream", URL)
    assert identify(shop).remote == "example.com/ada/shop"  # the only one
    git(shop, "remote", "add", "other", "https://example.com/x/y")
    assert identify(shop).remote is None
    git(shop, "remote", "add", "origin", "https://example.com/o/o")
    assert identify(shop).remote == "example.com/o/o"


@pytest.mark.parametrize("cwd", ["E:/indie/shop", "C:\\work\\shop", "\\\\server\\shop", "~/shop"])
def test_a_folder_of_another_machine_is_no_part_of_the_project_that_this_process_runs_in(
    cwd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = identify(cwd)
    assert (found.folder, found.is_git) == (cwd, False)
    assert not same_project(found, identify(tmp_path))
