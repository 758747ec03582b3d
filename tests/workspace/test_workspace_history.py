from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.config import StageTwo
from stillroom.errors import HistoryError
from stillroom.recall.projects.questions import ask_git
from stillroom.workspace import texts
from stillroom.workspace.diff import workspace_diff_text, write_workspace_diff
from stillroom.workspace.git import Content, Repository
from stillroom.workspace.history import Change, History
from stillroom.workspace.patch import added, bounded, deleted, modified
from stillroom.workspace.program import call
from stillroom.workspace.scanning import unseen
from stillroom.workspace.texts import Pair, hunks
from stillroom.workspace.tree import Entry, blob_id

NOW = 1_790_000_000
BIG = 4 * 1024 * 1024
SOME_TEXTS = st.lists(
    st.sampled_from([b"\n", b"a", b"\r", b"\xff", b"--- a/x", b"@@ -1 +1 @@ x", b"\x00", b"diff --git old/0 new/0"])
).map(b"".join)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "memories").mkdir()
    return tmp_path / "memories"


@pytest.fixture
def history(tmp_path: Path, root: Path) -> History:
    history = History(tmp_path / "history.git")
    history.ensure(root, now=NOW)
    return history


def objects(history: History) -> set[str]:
    return {str(path) for path in (history.git_dir / "objects").rglob("*") if path.is_file()}


def test_a_fresh_history_of_an_empty_folder(tmp_path: Path, root: Path) -> None:
    history = History(tmp_path / "history.git")
    assert history.ensure(root, now=NOW) is None
    assert history.head() is not None and history.changes(root) == []
    assert history.ensure(root, now=NOW) is None


def test_what_is_there_first_becomes_the_baseline(tmp_path: Path, root: Path) -> None:
    (root / "MEMORY.md").write_text("old\n", encoding="utf-8")
    history = History(tmp_path / "history.git")
    assert history.ensure(root, now=NOW) is None
    assert history.changes(root) == []


def test_many_loose_objects_become_a_pack_oldest_first_and_no_version_changes(root: Path, history: History) -> None:
    repository = history.repository
    for number in range(4):
        (root / "MEMORY.md").write_text("".join(f"{line}\n" for line in range(500 + number)), encoding="utf-8")
        history.commit(root, f"version {number}", now=NOW + number)
    versions = repository.run("log", "--format=%H").decode().split()
    before = [repository.entries(commit) for commit in versions]
    loose = len(objects(history))
    assert repository.pack_loose(at_least=loose + 1, at_most=99) == 0
    assert repository.pack_loose(at_least=loose, at_most=loose - 3) == loose - 3
    assert len([path for path in objects(history) if "/pack/" not in path]) == 3
    assert repository.pack_loose(at_least=1, at_most=99) == 3
    assert not [path for path in objects(history) if "/pack/" not in path]
    assert repository.pack_loose(at_least=1, at_most=99) == 0
    assert repository.is_whole() and [repository.entries(commit) for commit in versions] == before


@pytest.mark.parametrize("broken", ["file", "empty", "unborn", "head", "objects"])
def test_an_unusable_history_is_moved_aside_and_rebuilt(tmp_path: Path, root: Path, broken: str) -> None:
    git_dir = tmp_path / "history.git"
    (root / "MEMORY.md").write_text("old\n", encoding="utf-8")
    if broken == "file":
        git_dir.write_text("not a repository", encoding="utf-8")
    elif broken == "empty":
        git_dir.mkdir()
    elif broken == "unborn":
        subprocess.run(["git", "init", "-q", "--bare", str(git_dir)], check=True, timeout=60)
    else:
        History(git_dir).ensure(root, now=NOW)
        if broken == "head":
            (git_dir / "refs/heads/main").write_text("0" * 40, encoding="utf-8")
        else:
            for path in sorted((git_dir / "objects").rglob("*"), reverse=True):
                path.unlink() if path.is_file() else path.rmdir()
    report = History(git_dir).ensure(root, now=NOW)
    assert report == tmp_path / f"history.git.broken-{NOW}"
    assert (tmp_path / f"history.git.broken-{NOW}").exists()
    assert History(git_dir).changes(root) == []


def test_added_modified_deleted_in_path_order(root: Path, history: History) -> None:
    for name in ("b", "c", "run.sh"):
        (root / name).write_text("1\n", encoding="utf-8")
    history.commit(root, "one", now=NOW)
    (root / "a").write_text("1\n", encoding="utf-8")
    (root / "b").write_text("2\n", encoding="utf-8")
    (root / "c").unlink()
    (root / "run.sh").chmod(0o755)
    (root / "empty").mkdir()
    assert history.changes(root) == [
        Change("M", "b") if path == "b" else Change(status, path)  # type: ignore[arg-type]
        for status, path in (("A", "a"), ("M", "b"), ("D", "c"), ("M", "run.sh"))
    ]
    assert history.diff(root, max_bytes=BIG) == (
        "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+1\n"
        "diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-1\n+2\n"
        "diff --git a/c b/c\ndeleted file mode 100644\n--- a/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
        "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    )


def test_looking_writes_no_object(root: Path, history: History) -> None:
    (root / "MEMORY.md").write_text("new\n", encoding="utf-8")
    before = objects(history)
    history.changes(root)
    history.diff(root, max_bytes=BIG)
    assert objects(history) == before


def test_commits_keep_what_came_before(root: Path, history: History) -> None:
    (root / "MEMORY.md").write_text("one\n", encoding="utf-8")
    first = history.commit(root, "one", now=NOW)
    (root / "MEMORY.md").write_text("two\n", encoding="utf-8")
    history.commit(root, "two", now=NOW + 5)
    assert history.commit(root, "nothing new", now=NOW + 6) is None
    assert first is not None
    assert history.repository.run("show", f"{first}:MEMORY.md") == b"one\n"
    log = history.repository.run("log", "--format=%an <%ae> %at %s").decode()
    assert log == (
        f"Stillroom <noreply@stillroom.invalid> {NOW + 5} two\n"
        f"Stillroom <noreply@stillroom.invalid> {NOW} one\n"
        f"Stillroom <noreply@stillroom.invalid> {NOW} Take the folder as it is\n"
    )
    history.repository.run("fsck", "--strict")


def test_git_files_in_the_folder_mean_nothing(tmp_path: Path, root: Path, history: History) -> None:
    """Attributes, ignore rules, nested repositories, and a repository with code in its configuration."""
    marker = tmp_path / "ran"
    (root / ".gitattributes").write_text("* text eol=crlf ident filter=evil diff=evil -diff\n", encoding="utf-8")
    (root / ".gitignore").write_text("*\n", encoding="utf-8")
    (root / ".git/hooks").mkdir(parents=True)
    (root / ".git/config").write_text(
        f'[core]\n\tfsmonitor = "touch {marker}"\n[filter "evil"]\n\tclean = "touch {marker}"\n', encoding="utf-8"
    )
    nested = root / "skills/x"
    nested.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(nested)], check=True, timeout=60)
    (nested / "SKILL.md").write_bytes(b"$Id$\r\nline\r\n")
    paths = [".gitattributes", ".gitignore", "skills/x/SKILL.md"]
    assert history.changes(root) == [Change("A", path) for path in paths]
    assert "+$Id$\r\n+line\r\n" in history.diff(root, max_bytes=BIG)
    commit = history.commit(root, "all", now=NOW)
    assert commit is not None
    assert history.repository.run("show", f"{commit}:skills/x/SKILL.md") == b"$Id$\r\nline\r\n"
    (nested / "SKILL.md").write_bytes(b"$Id$\r\nother\r\n")
    assert "-line\r\n+other\r\n" in history.diff(root, max_bytes=BIG)
    assert not marker.exists()


def test_no_hook_of_the_history_runs(tmp_path: Path, root: Path, history: History) -> None:
    marker = tmp_path / "ran"
    (history.git_dir / "hooks").mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-update", "pre-commit", "post-index-change"):
        hook = history.git_dir / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {marker}\n", encoding="utf-8")
        hook.chmod(0o755)
    (root / "MEMORY.md").write_text("new\n", encoding="utf-8")
    assert history.commit(root, "all", now=NOW) is not None
    assert history.changes(root) == []
    assert not marker.exists()


def test_the_user_s_git_configuration_means_nothing(
    tmp_path: Path, root: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Somebody\n[diff]\n\tnoprefix = true\n\texternal = /bin/false\n[commit]\n\tgpgSign = true\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    (root / "a").write_text("1\n", encoding="utf-8")
    assert history.diff(root, max_bytes=BIG).startswith("diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n")
    history.commit(root, "one", now=NOW)
    assert history.repository.run("log", "-1", "--format=%an%cn") == b"StillroomStillroom\n"


def test_a_wrapper_of_git_that_brings_the_user_s_home_back_changes_nothing(
    tmp_path: Path, root: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, programs = tmp_path / "home", tmp_path / "bin"
    for folder in (home, programs):
        folder.mkdir()
    (home / ".gitconfig").write_text("[this is no configuration\n", encoding="utf-8")
    wrapper = programs / "git"
    wrapper.write_text(f"#!/bin/sh\nHOME='{home}' exec {shutil.which('git')} \"$@\"\n", encoding="utf-8")
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    (root / "a").write_text("1\n", encoding="utf-8")
    assert history.commit(root, "one", now=NOW) is not None


def test_git_is_told_to_run_nothing_that_a_repository_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command of ours runs some of these today. None will tomorrow, whatever git does then."""
    program = tmp_path / "git"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    ours = call("status", git_dir=tmp_path).stdout.decode().split()
    theirs = (ask_git(str(tmp_path), "status", timeout_seconds=10) or b"").decode().split()
    for words in (ours, theirs):
        assert {"core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never"} <= set(words)
    assert {"core.autocrlf=false", "core.attributesFile=/dev/null", "gc.auto=0", "maintenance.auto=false"} <= set(ours)
    assert "log.showSignature=false" in theirs


def test_odd_names_and_contents_survive(root: Path, history: History) -> None:
    names = [b"b\xffad", b"new\nline", b'quo"te', b"back\\slash", b"tab\there", "ü mlaut.md".encode(), b" lead", b"-x"]
    for name in names:
        with open(os.fsencode(root) + b"/" + name, "wb") as file:
            file.write(b"\x00\xff\xfe binary\n")
    changes = history.changes(root)
    assert sorted(os.fsencode(change.path) for change in changes) == sorted(names)
    text = workspace_diff_text(changes, history.diff(root, max_bytes=BIG))
    assert "- A new\\nline\n" in text and "- A ü mlaut.md\n" in text and "- A b\ufffdad\n" in text
    assert "+++ b/ü mlaut.md\n" in text
    history.commit(root, "odd", now=NOW)
    assert history.changes(root) == []


def test_a_file_may_become_a_folder_and_back(root: Path, history: History) -> None:
    (root / "a").write_text("file\n", encoding="utf-8")
    history.commit(root, "file", now=NOW)
    (root / "a").unlink()
    (root / "a").mkdir()
    (root / "a/b").write_text("inside\n", encoding="utf-8")
    assert history.changes(root) == [Change("D", "a"), Change("A", "a/b")]
    history.commit(root, "folder", now=NOW)
    assert history.changes(root) == []
    (root / "a/b").unlink()
    (root / "a").rmdir()
    (root / "a").write_text("file\n", encoding="utf-8")
    history.commit(root, "file", now=NOW)
    assert history.changes(root) == []


def test_content_that_looks_like_a_header_is_left_alone() -> None:
    old = b"def f():\n" + b"\n" * 9 + b"-- a/0\t\ndiff --git old/1 new/1\n@@ -1 +1 @@ title\n"
    new = old.replace(b"-- a/0", b"++ b/0").replace(b"diff", b"@@ -1 +1 @@ diff")
    plain, executable = Entry("", False), Entry("", True)
    same, changed = hunks([Pair(old, old), Pair(old, new)])
    assert same == b""
    assert modified("x y", changed, plain, plain) == (
        b"diff --git a/x y b/x y\n--- a/x y\n+++ b/x y\n@@ -8,6 +8,6 @@\n \n \n \n"
        b"--- a/0\t\n-diff --git old/1 new/1\n+++ b/0\t\n+@@ -1 +1 @@ diff --git old/1 new/1\n @@ -1 +1 @@ title\n"
    )
    assert modified("x", same, plain, executable) == b"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"


@pytest.mark.parametrize("end", [b"", b"\n", b"\nthe same again" * 20_000])
def test_a_small_change_in_a_large_text_is_shown_where_it_is(end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b"line %d of many" % number for number in range(20_000)]
    changed = [*lines[:9_999], b"another", *lines[10_000:], b"more"]
    pair = Pair(b"\n".join(lines) + end, b"\n".join(changed) + end)
    found = hunks([pair])
    assert found[0].startswith(b"@@ -9997,7 +9997,7 @@") and b"\n-line 9999 of many\n+another\n" in found[0]
    monkeypatch.setattr(texts, "_MARGIN_BYTES", len(pair.new))
    assert found == hunks([pair])


def test_a_cut_diff_ends_at_a_character_and_says_so() -> None:
    """Spec §10.2 item 18: `aé` cut at 2 is `a`."""
    assert bounded(iter([b"a", "é".encode()]), max_bytes=2) == "a\n\n[workspace diff truncated at 2 bytes]"
    assert bounded(iter([b"a", "é".encode()]), max_bytes=3) == "aé"
    assert bounded(iter([b"\xff\xff"]), max_bytes=3) == "\ufffd\n\n[workspace diff truncated at 3 bytes]"


def test_an_oversized_diff_keeps_its_status_and_closes_its_fence(root: Path, history: History) -> None:
    for number in range(50):
        (root / f"file{number:02}").write_text("line\n" * 100, encoding="utf-8")
    changes = history.changes(root)
    text = write_workspace_diff(root, changes, history.diff(root, max_bytes=1000)).read_text(encoding="utf-8")
    head, _, rest = text.partition("## Diff\n\n```diff\n")
    assert head == (
        "# Memory Workspace Diff\n\n"
        "Generated by Stillroom before Phase 2 memory consolidation. Read this file first and do not edit it.\n\n"
        "## Status\n" + "".join(f"- A file{number:02}\n" for number in range(50)) + "\n"
    )
    assert rest.endswith("\n\n[workspace diff truncated at 1000 bytes]\n```\n")
    assert len(rest) == 1000 + len("\n\n[workspace diff truncated at 1000 bytes]\n```\n")


def test_a_clean_diff_file_says_none_and_is_no_change_itself(root: Path, history: History) -> None:
    path = write_workspace_diff(root, [], "")
    assert path.name == "phase2_workspace_diff.md"
    assert path.read_text(encoding="utf-8").endswith("\n\n## Status\n- none\n")
    assert history.changes(root) == []
    assert history.commit(root, "nothing", now=NOW) is None


def test_a_link_in_place_of_the_diff_file_is_replaced_not_followed(
    tmp_path: Path, root: Path, history: History
) -> None:
    target = tmp_path / "precious"
    target.write_text("mine", encoding="utf-8")
    (root / "phase2_workspace_diff.md").symlink_to(target)
    write_workspace_diff(root, [], "")
    assert target.read_text(encoding="utf-8") == "mine"


def test_lines_are_found_as_they_stand_in_each_version_and_in_that_file_only(root: Path, history: History) -> None:
    (root / "a*.md").write_bytes(b"one\r\ntwo: \xffone\n-e none\n")
    (root / "ab.md").write_text("one\n", encoding="utf-8")
    first = history.commit(root, "first", now=NOW) or ""
    (root / "a*.md").write_bytes(b"")
    second = history.commit(root, "second", now=NOW) or ""
    found = list(history.repository.lines_with(["one", "-e n"], [second, first], "a*.md"))
    assert found == [(first, "one\r"), (first, "two: \udcffone"), (first, "-e none")]
    assert list(history.repository.lines_with(["three"], [first], "a*.md")) == []


def test_without_git_the_error_says_so(root: Path, history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(HistoryError, match="not on the PATH"):
        history.repository.run("version")
    with pytest.raises(HistoryError, match="is not on the PATH"):
        history.repository.visit(lambda name, kind, data: None)


def test_a_large_file_is_left_out_of_history(tmp_path: Path, root: Path) -> None:
    history = History(tmp_path / "history.git", limits=StageTwo(max_file_bytes=10))
    (root / "large").write_bytes(b"x" * 11)
    assert history.ensure(root, now=NOW) is None
    assert history.changes(root) == []


def test_the_history_is_private(history: History) -> None:
    assert stat.S_IMODE(history.git_dir.stat().st_mode) == 0o700


def test_a_missing_git_is_no_reason_to_move_the_history_aside(
    root: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(HistoryError):
        history.ensure(root, now=NOW)
    assert history.git_dir.is_dir()


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.binary(min_size=1, max_size=12).filter(lambda name: not set(name) & {0, 47} and name not in (b".", b"..")),
    st.lists(SOME_TEXTS, min_size=2, max_size=2),
    st.booleans(),
)
def test_files_are_shown_as_git_shows_them(name: bytes, some: list[bytes], executable: bool) -> None:
    path, (data, other) = os.fsdecode(name), some
    entry, later = Entry(blob_id(data), executable), Entry(blob_id(other), False)
    if unseen(path):
        return
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder) / "git")
        repository.create()

        def by_git(old: str, new: str) -> bytes:
            said = repository.run("diff-tree", "-p", "--text", "--no-renames", "--no-commit-id", old, new)
            said = re.sub(rb"^index .*\n", b"", said, count=1, flags=re.MULTILINE)
            head, *rest = re.split(rb"^(?=@@)", said, maxsplit=1, flags=re.MULTILINE)
            head = re.sub(rb"\t$", b"", head, flags=re.MULTILINE)
            return head + re.sub(rb"^(@@ [^@]* @@)[^\n]*$", rb"\1", b"".join(rest), flags=re.MULTILINE)

        empty = repository.commit({}, parent=None, message="", now=0)
        full = repository.commit({path: Content(data, executable)}, parent=empty, message="", now=0)
        last = repository.commit({path: Content(other, False)}, parent=full, message="", now=0)
        assert added(path, data, entry) == by_git(empty, full)
        assert deleted(path, data, entry) == by_git(full, empty)
        if entry != later:
            assert modified(path, hunks([Pair(data, other)])[0], entry, later) == by_git(full, last)
