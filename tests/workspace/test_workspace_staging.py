from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stillroom.config import StageTwo
from stillroom.errors import InvalidArtifacts, WorkspaceError
from stillroom.workspace.artifacts import render
from stillroom.workspace.history import Change, History
from stillroom.workspace.publish import PublishReport
from stillroom.workspace.recovery import RecoveryReport, recover
from stillroom.workspace.remembered import Remembered
from stillroom.workspace.runs import forget_copies
from stillroom.workspace.scanning import Scan, scan
from stillroom.workspace.staging import Outlook, Staging, look, open_staging
from stillroom.workspace.syncing import SyncReport
from stillroom.workspace.trailers import EDITS
from stillroom.workspace.tree import DEFAULTS

NOW = 1_790_000_000
BIG = 4 * 1024 * 1024


class House:
    """A memory folder with a baseline, and where its runs work."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "memories"
        self.staging_dir = base / "home" / "staging"
        self.history = History(base / "home" / "history.git")
        (base / "home").mkdir()
        self.root.mkdir()
        self.put("MEMORY.md", "# Old\n")
        self.put("memory_summary.md", "v1\nold\n")
        self.put("raw_memories.md", "old raw\n")
        self.put("rollout_summaries/gone.md", "gone\n")
        self.put("skills/old/SKILL.md", "old skill\n")
        self.put("skills/old/run.sh", "true\n", mode=0o755)
        self.put("notes.txt", "a person's\n")
        self.history.ensure(self.root, now=NOW)

    def put(self, path: str, text: str, *, mode: int = 0o644) -> None:
        put(self.root, path, text, mode=mode)

    def open(self, run_id: str = "run", checkpoint: Callable[[str], None] = lambda name: None) -> Staging:
        return open_staging(self.root, self.staging_dir, self.history, run_id=run_id, checkpoint=checkpoint)


def put(folder: Path, path: str, text: str, *, mode: int = 0o644) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.write_text(text, encoding="utf-8")
    target.chmod(mode)


def contents(folder: Path) -> dict[str, tuple[str, bool]]:
    return {
        str(path.relative_to(folder)): (path.read_text(encoding="utf-8"), bool(path.stat().st_mode & stat.S_IXUSR))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def code_works(staging: Staging) -> None:
    put(staging.path, "raw_memories.md", "new raw\n")
    put(staging.path, "rollout_summaries/new.md", "new\n")
    (staging.path / "rollout_summaries/gone.md").unlink()


def agent_works(staging: Staging) -> None:
    put(staging.path, "MEMORY.md", "# New\n")
    put(staging.path, "memory_summary.md", "v1\nnew\n")
    put(staging.path, "skills/new/SKILL.md", "new skill\n")
    put(staging.path, "skills/new/run.sh", "new\n", mode=0o755)
    shutil.rmtree(staging.path / "skills/old")


NEW = {
    "MEMORY.md": ("# New\n", False),
    "memory_summary.md": ("v1\nnew\n", False),
    "raw_memories.md": ("new raw\n", False),
    "rollout_summaries/new.md": ("new\n", False),
    "skills/new/SKILL.md": ("new skill\n", False),
    "skills/new/run.sh": ("new\n", True),
    "notes.txt": ("a person's\n", False),
}
WRITTEN = (
    "MEMORY.md",
    "memory_summary.md",
    "raw_memories.md",
    "rollout_summaries/new.md",
    "skills/new/SKILL.md",
    "skills/new/run.sh",
)
DELETED = ("rollout_summaries/gone.md", "skills/old/SKILL.md", "skills/old/run.sh")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_result_is_published_and_becomes_the_baseline(house: House) -> None:
    with house.open() as staging:
        assert staging.path.parent.stat().st_mode & 0o777 == 0o700
        code_works(staging)
        assert staging.seal() == [
            Change("M", "raw_memories.md"),
            Change("D", "rollout_summaries/gone.md"),
            Change("A", "rollout_summaries/new.md"),
        ]
        diff = staging.write_diff(max_bytes=BIG).read_text(encoding="utf-8")
        assert "- D rollout_summaries/gone.md\n" in diff and "-old raw\n+new raw\n" in diff
        agent_works(staging)
        report = staging.publish("Consolidate", now=NOW + 1)
    assert report == PublishReport(house.history.head(), WRITTEN, DELETED)
    assert contents(house.root) == NEW
    assert not (house.root / "skills/old").exists()
    assert house.history.changes(house.root) == []
    assert house.history.repository.run("log", "-1", "--format=%B").decode() == "Consolidate\n\nStillroom-Run: run\n\n"
    assert recover(house.staging_dir, house.history) == RecoveryReport()


def test_a_discarded_run_leaves_no_trace(house: House) -> None:
    before = {path: path.lstat() for path in house.root.rglob("*")}
    head = house.history.head()
    with house.open() as staging:
        code_works(staging)
        staging.seal()
        staging.write_diff(max_bytes=BIG)
        agent_works(staging)
    after = {path: path.lstat() for path in house.root.rglob("*")}
    assert {p: (s.st_ino, s.st_mtime_ns, s.st_mode) for p, s in before.items()} == {
        p: (s.st_ino, s.st_mtime_ns, s.st_mode) for p, s in after.items()
    }
    assert house.history.head() == head
    assert sorted(path.name for path in house.staging_dir.iterdir()) == [".lock", "spare"]


def test_the_next_copy_starts_from_the_last_and_is_exact(house: House) -> None:
    with house.open("one") as staging:
        agent_works(staging)
        put(staging.path, "phase2_workspace_diff.md", "of the last run\n")
        inode = (staging.path / "notes.txt").stat().st_ino
    with house.open("two") as staging:
        assert contents(staging.path) == contents(house.root)
        assert (staging.path / "notes.txt").stat().st_ino == inode
        assert not (staging.path / "skills/new").exists()


@pytest.mark.parametrize("trap", ["link", "hard link", "git", "pipe", "locked"])
def test_an_old_copy_with_a_trap_in_it_is_not_used(house: House, trap: str) -> None:
    with house.open("one") as staging:
        target = staging.path / "trap"
        if trap == "link":
            target.symlink_to("/etc")
        elif trap == "hard link":
            os.link(staging.path / "notes.txt", staging.path / "MEMORY.md.same")
        elif trap == "git":
            put(staging.path, "skills/.git/config", "[core]\n")
        elif trap == "pipe":
            os.mkfifo(target)
        else:
            target.mkdir(mode=0o000)
    with house.open("two") as staging:
        assert contents(staging.path) == contents(house.root)
        assert sorted(p.name for p in staging.path.rglob("*") if not p.is_file()) == [
            "old",
            "rollout_summaries",
            "skills",
        ]


def test_old_copies_can_be_forgotten(house: House) -> None:
    with house.open():
        pass
    forget_copies(house.staging_dir)
    assert [path.name for path in house.staging_dir.iterdir()] == [".lock"]


def test_what_a_person_changed_meanwhile_stays_and_shows_in_the_next_diff(house: House) -> None:
    with house.open() as staging:
        code_works(staging)
        staging.seal()
        agent_works(staging)
        house.put("MEMORY.md", "# Mine\n")
        house.put("notes.txt", "a person's, edited\n")
        house.put("skills/old/SKILL.md", "edited skill\n")
        house.put("skills/new/SKILL.md", "my skill of the same name\n")
        house.put("added.md", "added\n")
        (house.root / "memory_summary.md").unlink()
        report = staging.publish("Consolidate", now=NOW + 1)
    assert report.kept_for_user == ("skills/old/SKILL.md", "MEMORY.md", "memory_summary.md", "skills/new/SKILL.md")
    assert contents(house.root) == {
        "MEMORY.md": ("# Mine\n", False),
        "raw_memories.md": ("new raw\n", False),
        "rollout_summaries/new.md": ("new\n", False),
        "skills/old/SKILL.md": ("edited skill\n", False),
        "skills/new/SKILL.md": ("my skill of the same name\n", False),
        "skills/new/run.sh": ("new\n", True),
        "notes.txt": ("a person's, edited\n", False),
        "added.md": ("added\n", False),
    }
    assert house.history.changes(house.root) == [
        Change("M", "MEMORY.md"),
        Change("A", "added.md"),
        Change("D", "memory_summary.md"),
        Change("M", "notes.txt"),
        Change("A", "skills/new/SKILL.md"),
        Change("M", "skills/old/SKILL.md"),
    ]
    assert "-# Old\n+# Mine\n" in house.history.diff(house.root, max_bytes=BIG)


@pytest.mark.parametrize("edited", [None, "MEMORY.md", "memory_summary.md"])
def test_a_record_of_lines_comes_with_the_files_that_it_speaks_of(house: House, edited: str | None) -> None:
    house.put(".stillroom-lines", "old\n")
    house.history.commit(house.root, "Consolidate 1 thread", now=NOW)
    with house.open() as staging:
        assert staging.seal() == []
        agent_works(staging)
        put(staging.path, ".stillroom-lines", "new\n")
        if edited:
            house.put(edited, "v1\nmine\n")
        report = staging.publish("Consolidate", now=NOW + 1)
    assert ".stillroom-lines" not in (*report.written, *report.kept_for_user)
    record = "old\n" if edited else "new\n"
    assert contents(house.root)[".stillroom-lines"] == (record, False)
    assert house.history.repository.run("show", "HEAD:.stillroom-lines").decode() == record


def test_a_saved_edit_between_the_look_and_the_replacement_is_kept(house: House) -> None:
    def save(name: str) -> None:
        if name == "compared MEMORY.md":
            house.put("MEMORY.md", "# Mine\n")
        if name == "compared skills/new/SKILL.md":
            house.put("skills/new/SKILL.md", "mine\n")

    with house.open(checkpoint=save) as staging:
        agent_works(staging)
        report = staging.publish("Consolidate", now=NOW + 1)
    assert report.kept_for_user == ("MEMORY.md", "skills/new/SKILL.md")
    assert contents(house.root)["MEMORY.md"] == ("# Mine\n", False)
    assert contents(house.root)["skills/new/SKILL.md"] == ("mine\n", False)


def test_a_file_that_a_person_deletes_at_the_last_moment_stays_away(house: House) -> None:
    def delete(name: str) -> None:
        if name in ("compared MEMORY.md", "compared rollout_summaries/gone.md"):
            (house.root / name.removeprefix("compared ")).unlink()

    with house.open(checkpoint=delete) as staging:
        code_works(staging)
        staging.seal()
        agent_works(staging)
        report = staging.publish("Consolidate", now=NOW + 1)
    assert report.kept_for_user == ("MEMORY.md",)
    assert "rollout_summaries/gone.md" in report.deleted
    assert "MEMORY.md" not in contents(house.root)


def test_a_link_that_a_person_makes_meanwhile_is_kept(house: House) -> None:
    link = house.root / "skills" / "new" / "SKILL.md"
    with house.open() as staging:
        agent_works(staging)
        link.parent.mkdir(parents=True)
        link.symlink_to(house.root / "notes.txt")
        report = staging.publish("Consolidate", now=NOW + 1)
    assert "skills/new/SKILL.md" in report.kept_for_user
    assert link.is_symlink()


def test_a_link_in_the_place_of_a_file_that_is_to_go_is_kept(house: House) -> None:
    link = house.root / "rollout_summaries" / "gone.md"
    with house.open() as staging:
        code_works(staging)
        staging.seal()
        link.unlink()
        link.symlink_to(house.root / "notes.txt")
        report = staging.publish("Consolidate", now=NOW + 1)
    assert report.kept_for_user == ("rollout_summaries/gone.md",)
    assert report.deleted == ()
    assert link.is_symlink()


def test_an_edit_before_the_run_is_seen_and_built_upon(house: House) -> None:
    house.put("MEMORY.md", "# Old, edited\n")
    with house.open() as staging:
        assert staging.seal() == [Change("M", "MEMORY.md")]
        assert "+# Old, edited\n" in staging.diff(max_bytes=BIG)
        agent_works(staging)
        assert staging.publish("Consolidate", now=NOW + 1).kept_for_user == ()
    assert contents(house.root)["MEMORY.md"] == ("# New\n", False)


def commits(house: House) -> list[tuple[str, list[str]]]:
    """Subjects and changed paths, newest first."""
    log = house.history.repository.run("log", "--format=%x00%s", "--name-status", "--no-renames").decode()
    entries = (entry.split("\n") for entry in log.split("\0")[1:])
    return [(subject, [line.replace("\t", " ") for line in lines if line]) for subject, *lines in entries]


def at(house: House, commit: str, path: str) -> str:
    return house.history.repository.run("show", f"{commit}:{path}").decode()


def person_works(house: House) -> None:
    house.put("MEMORY.md", "# Old, edited\n")
    house.put("notes.txt", "a person's, edited\n")
    house.put("skills/mine/SKILL.md", "mine\n")
    (house.root / "skills/old/run.sh").unlink()
    house.put("raw_memories.md", "code writes this\n")
    house.put("rollout_summaries/stray.md", "and decides on this\n")


PERSON_S = ["M MEMORY.md", "M notes.txt", "A skills/mine/SKILL.md", "D skills/old/run.sh"]


def test_an_edit_that_the_agent_rewrites_is_in_the_history_as_the_agent_saw_it(house: House) -> None:
    person_works(house)
    with house.open() as staging:
        code_works(staging)
        (staging.path / "rollout_summaries/stray.md").unlink()
        staging.seal()
        agent_works(staging)
        shutil.rmtree(staging.path / "skills/mine")
        report = staging.publish("Consolidate", now=NOW + 1)
    (last, changed), (edits, by_person), _ = commits(house)
    assert (last, edits) == ("Consolidate", EDITS) and report.commit == house.history.head()
    assert by_person == PERSON_S
    assert {"M MEMORY.md", "D skills/mine/SKILL.md", "M raw_memories.md", "D rollout_summaries/gone.md"} <= set(changed)
    assert at(house, "HEAD~1", "MEMORY.md") == "# Old, edited\n" and at(house, "HEAD", "MEMORY.md") == "# New\n"
    assert at(house, "HEAD~1", "skills/mine/SKILL.md") == "mine\n"
    assert at(house, "HEAD~1", "raw_memories.md") == "old raw\n"
    assert house.history.changes(house.root) == []


def test_edits_that_the_agent_leaves_as_they_are_make_one_commit(house: House) -> None:
    house.put("MEMORY.md", "# Old, edited\n")
    with house.open() as staging:
        report = staging.publish("Consolidate", now=NOW + 1)
    assert report == PublishReport(house.history.head())
    assert [subject for subject, _ in commits(house)] == [EDITS, "Take the folder as it is"]
    assert house.history.changes(house.root) == []


def test_edits_before_and_during_a_run_are_both_kept(house: House) -> None:
    house.put("MEMORY.md", "# Old, edited\n")
    with house.open() as staging:
        staging.seal()
        agent_works(staging)
        house.put("MEMORY.md", "# Old, edited again\n")
        assert staging.publish("Consolidate", now=NOW + 1).kept_for_user == ("MEMORY.md",)
    assert [subject for subject, _ in commits(house)] == ["Consolidate", EDITS, "Take the folder as it is"]
    assert at(house, "HEAD", "MEMORY.md") == at(house, "HEAD~1", "MEMORY.md") == "# Old, edited\n"
    assert contents(house.root)["MEMORY.md"] == ("# Old, edited again\n", False)
    assert house.history.changes(house.root) == [Change("M", "MEMORY.md")]


def test_an_edit_of_what_code_wrote_shows_against_what_the_agent_saw(house: House) -> None:
    with house.open() as staging:
        code_works(staging)
        staging.seal()
        agent_works(staging)
        house.put("raw_memories.md", "mine\n")
        assert staging.publish("Consolidate", now=NOW + 1).kept_for_user == ("raw_memories.md",)
    assert at(house, "HEAD", "raw_memories.md") == "new raw\n"
    assert house.history.changes(house.root) == [Change("M", "raw_memories.md")]


def test_what_code_prunes_is_no_edit(house: House) -> None:
    house.put("extensions/x/resources/old.md", "old\n")
    house.history.commit(house.root, "with a resource", now=NOW)
    with house.open() as staging:
        (staging.path / "extensions/x/resources/old.md").unlink()
        staging.seal()
        staging.publish("Consolidate", now=NOW + 1)
    assert commits(house)[0] == ("Consolidate", ["D extensions/x/resources/old.md"])


def test_what_is_not_the_agent_s_to_change_is_ignored_and_said(house: House) -> None:
    with house.open() as staging:
        code_works(staging)
        staging.seal()
        agent_works(staging)
        put(staging.path, "raw_memories.md", "forged\n")
        put(staging.path, "extra.md", "extra\n")
        put(staging.path, "rollout_summaries/forged.md", "forged\n")
        (staging.path / "rollout_summaries/new.md").unlink()
        (staging.path / "notes.txt").unlink()
        report = staging.publish("Consolidate", now=NOW + 1)
    assert report.ignored == (
        "extra.md",
        "notes.txt",
        "raw_memories.md",
        "rollout_summaries/forged.md",
        "rollout_summaries/new.md",
    )
    assert contents(house.root) == NEW
    assert house.history.changes(house.root) == []


def test_links_pipes_and_giants_are_never_copied(house: House, tmp_path: Path) -> None:
    (house.root / "link").symlink_to(tmp_path)
    os.mkfifo(house.root / "pipe")
    (house.root / "giant").write_bytes(b"x" * 2000)
    limits = StageTwo(max_file_bytes=1000)
    with open_staging(house.root, house.staging_dir, house.history, run_id="run", limits=limits) as staging:
        assert not {"link", "pipe", "giant"} & {path.name for path in staging.path.iterdir()}
        staging.publish("Consolidate", now=NOW + 1)
    assert (house.root / "giant").stat().st_size == 2000
    assert (house.root / "link").is_symlink()


@pytest.mark.parametrize("trap", ["link", "pipe", "giant"])
def test_a_result_with_something_else_than_files_is_refused(house: House, trap: str) -> None:
    before = contents(house.root)
    limits = StageTwo(max_file_bytes=1000)
    with (
        pytest.raises(InvalidArtifacts),
        open_staging(house.root, house.staging_dir, house.history, run_id="run", limits=limits) as staging,
    ):
        agent_works(staging)
        target = staging.path / "skills/trap"
        if trap == "link":
            target.symlink_to("/etc/passwd")
        elif trap == "pipe":
            os.mkfifo(target)
        else:
            target.write_bytes(b"x" * 2000)
        staging.publish("Consolidate", now=NOW + 1)
    assert contents(house.root) == before


def test_a_folder_swapped_for_a_link_is_not_written_through(house: House, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with house.open() as staging:
        agent_works(staging)
        shutil.rmtree(house.root / "skills")
        (house.root / "skills").symlink_to(outside)
        report = staging.publish("Consolidate", now=NOW + 1)
    assert list(outside.iterdir()) == []
    assert set(report.kept_for_user) >= {"skills/new/SKILL.md", "skills/new/run.sh"}


def test_a_file_and_a_folder_change_places(house: House) -> None:
    house.put("skills/file", "file\n")
    house.put("skills/folder/inside", "inside\n")
    with house.open() as staging:
        (staging.path / "skills/file").unlink()
        shutil.rmtree(staging.path / "skills/folder")
        staging.seal()
        put(staging.path, "skills/file/inside", "new\n")
        put(staging.path, "skills/folder", "new\n")
        assert staging.publish("Consolidate", now=NOW + 1).kept_for_user == ()
    assert contents(house.root)["skills/file/inside"] == ("new\n", False)
    assert contents(house.root)["skills/folder"] == ("new\n", False)
    assert house.history.changes(house.root) == []


def test_permissions_of_a_replaced_file_stay(house: House) -> None:
    (house.root / "MEMORY.md").chmod(0o640)
    with house.open() as staging:
        agent_works(staging)
        (staging.path / "memory_summary.md").chmod(0o755)
        staging.publish("Consolidate", now=NOW + 1)
    assert stat.S_IMODE((house.root / "MEMORY.md").stat().st_mode) == 0o640
    assert stat.S_IMODE((house.root / "memory_summary.md").stat().st_mode) == 0o755


def test_names_that_are_not_utf8_are_published(house: House) -> None:
    name = os.fsencode(house.root) + b"/odd\xff.txt"
    with open(name, "wb") as file:
        file.write(b"\xff\x00")
    with house.open() as staging:
        agent_works(staging)
        put(staging.path, "skills/" + os.fsdecode(b"new\xfe\n.md"), "text\n")
        report = staging.publish("Consolidate", now=NOW + 1)
    assert "skills/new\ufffd\\n.md" in report.written
    assert house.history.changes(house.root) == []


def test_a_run_that_was_overtaken_does_not_publish(house: House) -> None:
    with house.open("slow") as slow:
        slow.seal()
        agent_works(slow)
        with house.open("quick") as quick:
            put(quick.path, "MEMORY.md", "# Quick\n")
            quick.publish("Consolidate", now=NOW + 1)
        with pytest.raises(WorkspaceError, match="went on"):
            slow.publish("Consolidate", now=NOW + 2)
    assert contents(house.root)["MEMORY.md"] == ("# Quick\n", False)


def test_a_run_at_work_is_not_cleared_away(house: House) -> None:
    with house.open() as staging:
        assert recover(house.staging_dir, house.history) == RecoveryReport(in_use=("run",))
        assert staging.path.is_dir()


def test_a_look_tells_without_a_copy_whether_there_is_anything_to_do(house: House) -> None:
    put(house.root, "raw_memories.md", "# Raw Memories\n\nNo raw memories yet.\n")
    (house.root / "rollout_summaries/gone.md").unlink()
    assert not look(house.root, house.history, render([])).clean
    house.history.commit(house.root, "as it is", now=NOW)
    assert look(house.root, house.history, render([])).clean
    house.put("MEMORY.md", "# Mine\n")
    assert look(house.root, house.history, render([])) == Outlook(SyncReport(unchanged=1), [Change("M", "MEMORY.md")])
    assert not house.staging_dir.exists()


def test_a_look_remembers_and_still_sees_every_change(house: House) -> None:
    """A change that keeps size and time shows by its `ctime`; one that is too fresh was never remembered."""
    memory = house.history.git_dir / "looks"
    seen = look(house.root, house.history, render([]))
    assert not memory.exists() and not memory.with_name("looks.new").exists()  # everything was written just now
    path = house.root / "notes.txt"

    def scanned(began_ns: int) -> Scan:
        remembered = Remembered.load(memory)
        remembered._began_ns = began_ns
        found = scan(house.root, limits=DEFAULTS, memory=remembered)
        remembered.save()
        return found

    first = scanned(path.stat().st_ctime_ns + 10**10)
    assert memory.exists() and first == scan(house.root, limits=DEFAULTS) == scanned(0)
    status = path.stat()
    path.write_text("A PERSON'S\n", encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert scanned(0) == scan(house.root, limits=DEFAULTS) != first
    path.chmod(0o755)
    assert scanned(0).files["notes.txt"].executable
    memory.write_bytes(b"damaged")
    assert Change("M", "notes.txt") in look(house.root, house.history, render([])).changes
    assert Change("M", "notes.txt") not in seen.changes


@pytest.mark.parametrize("where", ["the folder", "the old copy"])
def test_a_copy_that_remembers_both_sides_still_sees_every_change(house: House, where: str) -> None:
    with house.open("one"):
        pass
    spare = house.staging_dir / "spare"
    for folder, looks in ((house.root, house.history.looks), (spare, house.history.copied_looks)):
        remembered = Remembered.load(looks)
        remembered._began_ns = (folder / "notes.txt").stat().st_ctime_ns + 10**10
        scan(folder, limits=DEFAULTS, memory=remembered)
        remembered.save()
    path = (house.root if where == "the folder" else spare) / "notes.txt"
    status = path.stat()
    path.write_text("A PERSON'S\n", encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.link(spare / "MEMORY.md", spare / "same.md")
    with house.open("two") as staging:
        assert contents(staging.path) == contents(house.root)
        assert staging.copied == staging.seen == scan(house.root, limits=DEFAULTS).files
        assert staging.changes == ([Change("M", "notes.txt")] if where == "the folder" else [])
        assert (staging.path / "MEMORY.md").stat().st_nlink == 1


def test_nothing_to_publish_makes_no_commit(house: House) -> None:
    head = house.history.head()
    with house.open() as staging:
        assert staging.publish("Consolidate", now=NOW + 1) == PublishReport()
    assert house.history.head() == head


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", ".lock", "spare", "ü"])
def test_only_plain_names_name_a_run(house: House, run_id: str) -> None:
    with pytest.raises(WorkspaceError):
        house.open(run_id)


class Crash(BaseException):
    """Raised in place of a death, where the state in memory is thrown away afterwards."""


def whole_run(house: House, checkpoint: Callable[[str], None]) -> None:
    with house.open(checkpoint=checkpoint) as staging:
        code_works(staging)
        staging.seal()
        staging.write_diff(max_bytes=BIG)
        agent_works(staging)
        staging.publish("Consolidate", now=NOW + 1)


def steps(base: Path) -> list[str]:
    base.mkdir()
    names: list[str] = []
    whole_run(House(base), names.append)
    return names


def killed_at(house: House, number: int) -> None:
    """Run in a child process that dies at the given step, as if by the power switch."""
    child = os.fork()
    if child == 0:
        counter = iter(range(1000))

        def die(name: str) -> None:
            if next(counter) == number:
                os._exit(99)

        try:
            whole_run(house, die)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 99


@pytest.mark.slow
def test_killed_at_every_step_recovery_leaves_the_old_folder_or_the_new(tmp_path: Path) -> None:
    names = steps(tmp_path / "steps")
    assert len(names) == 7 + 2 * (len(WRITTEN) + len(DELETED)) + 3, names
    outcomes: list[str] = []
    for number, name in enumerate(names):
        (tmp_path / str(number)).mkdir()
        house = House(tmp_path / str(number))
        old, head = contents(house.root), house.history.head()
        killed_at(house, number)
        found = recover(house.staging_dir, house.history)
        assert not found.blocked and not found.in_use
        if house.history.head() == head:
            assert contents(house.root) == old, name
            outcomes.append("old")
        else:
            assert contents(house.root) == NEW, name
            assert house.history.changes(house.root) == []
            outcomes.append("new")
        assert recover(house.staging_dir, house.history) == RecoveryReport()
        assert [p.name for p in house.root.iterdir() if p.name.startswith(".stillroom")] == []
        log = house.history.repository.run("log", "--format=%s").decode().split("\n")
        assert log.count("Consolidate") == (outcomes[-1] == "new")
        with house.open("next") as staging:
            assert staging.seal() == []
    turn = outcomes.index("new")
    assert names[turn] == "journal kept" and set(outcomes[turn:]) == {"new"}


@pytest.mark.slow
def test_killed_at_every_step_the_history_has_the_edits_and_the_result_or_neither(tmp_path: Path) -> None:
    names = steps(tmp_path / "steps")
    outcomes: set[tuple[str, ...]] = set()
    for number, name in enumerate(names):
        (tmp_path / str(number)).mkdir()
        house = House(tmp_path / str(number))
        house.put("MEMORY.md", "# Old, edited\n")
        killed_at(house, number)
        for _ in range(2):
            recover(house.staging_dir, house.history)
            subjects = [subject for subject, _ in commits(house)]
            assert subjects in (["Take the folder as it is"], ["Consolidate", EDITS, "Take the folder as it is"]), name
            handbook = contents(house.root)["MEMORY.md"][0]
            assert handbook == ("# New\n" if len(subjects) == 3 else "# Old, edited\n"), name
        if len(subjects) == 3:
            assert at(house, "HEAD~1", "MEMORY.md") == "# Old, edited\n"
        outcomes.add(tuple(subjects))
    assert len(outcomes) == 2


@pytest.mark.slow
def test_an_edit_between_a_crash_and_its_recovery_is_kept(tmp_path: Path) -> None:
    names = steps(tmp_path / "steps")
    for number, name in enumerate(names):
        (tmp_path / str(number)).mkdir()
        house = House(tmp_path / str(number))
        killed_at(house, number)
        house.put("MEMORY.md", "# Mine\n")
        house.put("notes.txt", "mine\n")
        recover(house.staging_dir, house.history)
        assert contents(house.root)["MEMORY.md"] == ("# Mine\n", False), name
        assert contents(house.root)["notes.txt"] == ("mine\n", False), name
        assert {Change("M", "MEMORY.md"), Change("M", "notes.txt")} <= set(house.history.changes(house.root)), name


def test_a_crash_during_recovery_is_recovered_from(house: House, tmp_path: Path) -> None:
    names = steps(tmp_path / "steps")
    killed_at(house, names.index("journal kept"))
    house.root.rename(tmp_path / "away")
    report = recover(house.staging_dir, house.history)
    assert list(report.blocked) == ["run"]
    (tmp_path / "away").rename(house.root)
    assert list(recover(house.staging_dir, house.history).completed) == ["run"]
    assert contents(house.root) == NEW


@pytest.mark.slow
@pytest.mark.parametrize("step", ["committed", "folder written"])
def test_recovery_takes_no_other_commit_for_its_own(house: House, tmp_path: Path, step: str) -> None:
    killed_at(house, steps(tmp_path / "steps").index(step))
    ours = house.history.head() if step == "committed" else None
    if ours is None:
        house.history.commit(house.root, "Somebody else's", now=NOW + 2)
    found = recover(house.staging_dir, house.history)
    assert found.completed["run"].commit == ours
    assert contents(house.root) == NEW


def test_a_lock_that_a_killed_git_left_does_not_block_recovery(house: House, tmp_path: Path) -> None:
    names = steps(tmp_path / "steps")
    killed_at(house, names.index("folder written"))
    (house.history.git_dir / "refs/heads/main.lock").touch()
    assert list(recover(house.staging_dir, house.history).completed) == ["run"]
    assert house.history.changes(house.root) == []


def test_an_error_during_publishing_is_completed_by_the_next_recovery(house: House) -> None:
    def fail(name: str) -> None:
        if name == "done memory_summary.md":
            raise OSError(28, "No space left on device")

    with pytest.raises(WorkspaceError, match="No space left"):
        whole_run(house, fail)
    assert list(recover(house.staging_dir, house.history).completed) == ["run"]
    assert contents(house.root) == NEW


@pytest.mark.parametrize("lacking", ["files", "bytes"])
def test_a_disk_without_room_leaves_the_folder_as_it_was_and_the_work_is_not_lost(tmp_path: Path, lacking: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    size = "nr_inodes=400" if lacking == "files" else "size=1m"
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)], timeout=20).returncode
    ):
        pytest.skip("only root mounts a small file system")
    try:
        house = House(disk)

        def fill(name: str) -> None:
            if name != "journal kept":
                return
            (disk / "filling").mkdir()
            with pytest.raises(OSError, match="No space left"):
                for number in range(1000):
                    (disk / "filling" / str(number)).write_bytes(b"" if lacking == "files" else b"x" * 50_000)

        old = contents(house.root)
        with pytest.raises(WorkspaceError, match="No space left") as caught:
            whole_run(house, fill)
        assert caught.value.hint is not None and "df -i" in caught.value.hint
        assert contents(house.root) == old
        shutil.rmtree(disk / "filling")
        assert list(recover(house.staging_dir, house.history).completed) == ["run"]
        assert contents(house.root) == NEW
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True, timeout=20)


def test_a_damaged_journal_blocks_only_itself(house: House, tmp_path: Path) -> None:
    names = steps(tmp_path / "steps")
    old = contents(house.root)
    killed_at(house, names.index("journal kept"))
    (house.staging_dir / "run/journal.json").write_text("{", encoding="utf-8")
    assert list(recover(house.staging_dir, house.history).blocked) == ["run"]
    assert contents(house.root) == old
    with house.open("next"):
        pass
