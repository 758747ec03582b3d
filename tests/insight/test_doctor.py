"""What `stillroom doctor` finds in a home, and what `--fix` makes of it."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, StageOne, StageTwo, load_settings
from stillroom.errors import WorkspaceError
from stillroom.insight.doctor.configured import check_settings, check_switches
from stillroom.insight.doctor.database import check_database
from stillroom.insight.doctor.examine import Report, examine
from stillroom.insight.doctor.finding import Found
from stillroom.insight.doctor.history import check_history
from stillroom.insight.doctor.leftovers import check_leftovers
from stillroom.insight.doctor.others import check_others
from stillroom.insight.doctor.places import check_places
from stillroom.pausing import pause
from stillroom.store import ConsolidationClaim, Store
from stillroom.thread import FileStamp, Thread
from stillroom.undoing import unfinished
from stillroom.undoing.alone import beside_others
from stillroom.workspace.history import History
from stillroom.workspace.staging import open_staging

NOW = 1_796_029_200
THREAD = "01a2273c-0036-7133-90f0-7698c74b216a"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "memories").mkdir(mode=0o700)
    return Settings(home=home)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW * 1000)


def looked_at(settings: Settings, clock: FixedClock, *, fix: bool = False, **environ: str) -> Report:
    return examine(settings.home, clock, environ=environ, further=lambda _: (), fix=fix)


def wrong(report: Report) -> dict[str, str]:
    return {each.check: each.what for each in report.findings if each.is_wrong}


def said(found: list[Found]) -> list[tuple[str, str]]:
    return [(each.finding.check, each.finding.severity) for each in found]


def with_memory(settings: Settings, clock: FixedClock) -> History:
    for name, text in (("MEMORY.md", "# Task Group: a\n"), ("memory_summary.md", "v1\n")):
        (settings.root / name).write_text(text, encoding="utf-8")
    history = History(settings.history)
    history.ensure(settings.root, now=clock.now())
    return history


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def claimed(settings: Settings, clock: FixedClock) -> None:
    """Both phases are held by a process that is gone."""
    thread = Thread(
        thread_id=THREAD,
        agent="codex",
        rollout_path="/nowhere/rollout.jsonl",
        source="cli",
        cwd="/nowhere",
        created_at_ms=0,
        updated_at_ms=(NOW - 24 * 3600) * 1000,
        preview="do it",
    )
    with Store.open(settings.database, clock=clock) as store:
        store.threads.save([(thread, FileStamp(size=1, mtime_ns=1))])
        claims = store.extraction.claim(
            worker_id="stillroom-1-dead",
            current_thread_id=None,
            memories=Memories(),
            stage=StageOne(),
            max_claims=2,
        )
        assert len(claims) == 1
        assert isinstance(store.consolidation.claim(worker_id="dead", stage=StageTwo()), ConsolidationClaim)


def test_where_there_is_nothing_yet_nothing_is_wrong_and_nothing_is_made(tmp_path: Path, clock: FixedClock) -> None:
    report = examine(tmp_path / "none", clock, environ={}, further=lambda _: (), fix=True)
    assert report.is_well
    assert list(tmp_path.iterdir()) == []


def test_a_whole_home_is_well_and_looking_changes_no_byte(settings: Settings, clock: FixedClock) -> None:
    with_memory(settings, clock)
    Store.open(settings.database, clock=clock).close()
    before = files(settings.home)
    report = looked_at(settings, clock)
    assert report.is_well, wrong(report)
    assert files(settings.home) == before
    assert {"home", "memory", "disk", "settings", "database", "history", "sandbox"} <= {
        each.check for each in report.findings
    }


def test_what_others_may_read_is_closed_to_them_but_for_the_settings(settings: Settings) -> None:
    settings.home.chmod(0o755)
    settings.root.chmod(0o750)
    for name in ("state.sqlite3", "config.toml"):
        (settings.home / name).touch()
        (settings.home / name).chmod(0o644)
    found = [each for each in check_places(settings) if each.mend]
    assert [each.finding.where for each in found] == [
        str(settings.home),
        str(settings.home / "state.sqlite3"),
        str(settings.root),
    ]
    for each in found:
        assert each.finding.severity == "warning" and "chmod" in str(each.finding.remedy)
        assert each.mend is not None
        each.mend()
    assert not any(each.mend for each in check_places(settings))
    assert stat.S_IMODE((settings.home / "config.toml").stat().st_mode) == 0o644


def test_a_folder_that_is_no_folder_a_link_or_read_only_is_said_to_be(settings: Settings, tmp_path: Path) -> None:
    settings.home.chmod(0o500)
    assert ("home", "error") in said(list(check_places(settings)))
    settings.home.chmod(0o700)
    settings.root.rmdir()
    settings.root.symlink_to(tmp_path)
    assert ("memory", "error") in said(list(check_places(settings)))
    file = tmp_path / "file"
    file.touch()
    assert said(list(check_places(Settings(home=file)))) == [("home", "error")]


def test_jobs_of_killed_processes_are_given_back_at_the_cost_of_a_retry(settings: Settings, clock: FixedClock) -> None:
    claimed(settings, clock)
    found = [each.finding for each in check_database(settings, clock) if each.mend]
    assert [each.check for each in found] == ["leases", "leases"]
    assert THREAD in found[1].what and "stillroom-1-dead" in found[1].what
    report = looked_at(settings, clock, fix=True)
    assert report.is_well, wrong(report)
    assert sum(each.fixed is not None for each in report.findings) == 2
    with Store.open(settings.database, clock=clock) as store:
        job = store.extraction.job(THREAD)
        assert job is not None and (job.status, job.retry_remaining) == ("error", StageOne().retries - 1)
        assert isinstance(store.consolidation.claim(worker_id="next", stage=StageTwo()), ConsolidationClaim)
        claims = store.extraction.claim(
            worker_id="next", current_thread_id=None, memories=Memories(), stage=StageOne(), max_claims=2
        )
        assert len(claims) == 1


def test_what_a_pass_at_work_holds_is_left_alone(settings: Settings, clock: FixedClock) -> None:
    claimed(settings, clock)
    with beside_others(settings.home):
        assert not any(each.mend for each in check_database(settings, clock))
        clock.advance(seconds=2 * 3600)
        stuck = [each for each in check_database(settings, clock) if each.mend]
        assert len(stuck) == 2  # nobody renewed them
        assert [each.not_fixed is not None for each in looked_at(settings, clock, fix=True).findings].count(True) == 2


def test_a_clock_that_was_set_back_shows(settings: Settings, clock: FixedClock) -> None:
    with Store.open(settings.database, clock=clock) as store:
        store.ledger.record_pass(NOW, b"{}")
    assert ("clock", "ok") in said(list(check_database(settings, clock)))
    clock.advance(seconds=-3600)
    assert ("clock", "warning") in said(list(check_database(settings, clock)))


def test_every_kind_of_bad_database_is_named_with_a_remedy(settings: Settings, clock: FixedClock) -> None:
    path = settings.database

    def told() -> str:
        (only,) = [each.finding for each in check_database(settings, clock)]
        assert only.severity == "error" and only.remedy
        assert only.where == str(path) or str(path) in only.what
        return only.what

    path.write_bytes(b"no database, but long enough to be one" * 100)
    assert "is damaged" in told()
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (a)")
    db.close()
    assert "another program" in told()
    path.unlink()
    Store.open(path, clock=clock).close()
    with sqlite3.connect(path) as db:
        db.execute("DROP INDEX model_calls_at")
    db.close()
    assert "lacks index model_calls_at" in told()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert "schema version 99" in told()


def test_a_damaged_page_and_a_broken_reference_are_found(settings: Settings, clock: FixedClock) -> None:
    claimed(settings, clock)
    with sqlite3.connect(settings.database) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("INSERT INTO usage_searches VALUES ('nobody', 1, 1)")
    db.close()
    assert ("database", "warning") in said(list(check_database(settings, clock)))
    data = bytearray(settings.database.read_bytes())
    page = len(data) // 4096 // 2 * 4096
    data[page : page + 8192] = b"\xa5" * 8192
    settings.database.write_bytes(data)
    (only,) = [each.finding for each in check_database(settings, clock)]
    assert only.severity == "error" and "damaged" in only.what


@pytest.mark.slow
def test_a_lost_history_begins_anew_and_a_damaged_one_is_kept_beside(settings: Settings, clock: FixedClock) -> None:
    history = with_memory(settings, clock)
    assert said(list(check_history(settings, clock))) == [("history", "ok")]
    packed = next((history.git_dir / "objects").rglob("*.pack"), None) or next(
        path for path in (history.git_dir / "objects").rglob("*") if path.is_file()
    )
    packed.chmod(0o600)
    packed.write_bytes(packed.read_bytes()[:-30] + b"\0" * 30)
    before = files(settings.root)
    report = looked_at(settings, clock, fix=True)
    assert [each.fixed is not None for each in report.findings if each.severity == "error"] == [True]
    after = looked_at(settings, clock)
    assert after.is_well, wrong(after)
    assert [each.check for each in after.findings if "unusable history was kept" in each.what] == ["history"]
    for path in sorted(settings.history.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    settings.history.rmdir()
    assert said(list(check_history(settings, clock)))[0] == ("history", "warning")
    assert looked_at(settings, clock, fix=True).is_well
    assert history.changes(settings.root) == []
    assert files(settings.root) == before


@pytest.mark.slow
def test_copies_of_killed_runs_are_cleared(settings: Settings, clock: FixedClock) -> None:
    history = with_memory(settings, clock)
    staging = open_staging(settings.root, settings.staging, history, run_id="dead")
    assert "staging" not in wrong(looked_at(settings, clock, fix=True))  # it is at work
    os.close(staging._lock)  # as a killed process does
    assert "left a copy" in wrong(looked_at(settings, clock))["staging"]
    assert (settings.staging / "dead").exists()
    assert looked_at(settings, clock, fix=True).is_well
    assert not (settings.staging / "dead").exists()


def test_a_half_made_result_is_cleared_once_no_pass_is_at_work(settings: Settings, clock: FixedClock) -> None:
    (settings.review / "held.new" / "tree").mkdir(parents=True)
    (settings.review / "held").mkdir()
    (settings.review / "held" / "held.json").write_bytes(b"not all of")
    (settings.review / "rejected").write_bytes(b"kept\n")

    def told() -> list[Found]:
        return [each for each in check_leftovers(settings, clock) if each.finding.check == "review"]

    (found,) = told()
    assert found.finding.severity == "warning" and found.mend is not None
    with beside_others(settings.home), pytest.raises(WorkspaceError):
        found.mend()
    assert found.mend() == "cleared 2"
    assert told() == []
    assert [path.name for path in settings.review.iterdir()] == ["rejected"]


def test_settings_that_can_t_be_read_are_a_finding_and_nothing_is_mended(settings: Settings, clock: FixedClock) -> None:
    (settings.home / "config.toml").write_text("memories = 3\n", encoding="utf-8")
    settings.home.chmod(0o755)
    report = looked_at(settings, clock, fix=True)
    assert set(wrong(report)) == {"settings", "home"}
    assert stat.S_IMODE(settings.home.stat().st_mode) == 0o755


def test_values_out_of_range_models_without_a_key_and_lost_sources_are_told(settings: Settings) -> None:
    text = """
[memories]
max_rollouts_per_startup = 1000
dual_write = true
extract_model = "openai-responses:gpt-6-luna"
[[sources]]
format = "codex"
root = "/nowhere/at/all"
"""
    (settings.home / "config.toml").write_text(text, encoding="utf-8")
    found = [each.finding for each in check_settings(load_settings(home=settings.home, environ={}), {})]
    told = "\n".join(each.what for each in found if each.is_wrong)
    assert "max_rollouts_per_startup = 1000` is out of range: 128 counts" in told
    assert "OPENAI_API_KEY" in told
    assert "/nowhere/at/all" in told
    notes = [each.what for each in found if each.check == "settings" and each.severity == "note"]
    assert [note.split("`")[1] for note in notes] == ["memories.dual_write"]


def other(settings: Settings, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(each.finding.severity, each.finding.what.split(" ")[0]) for each in check_others(settings, environ)]


def test_what_a_person_switched_off_is_told_and_a_list_that_can_t_be_read_is_wrong(settings: Settings) -> None:
    assert said(list(check_switches(settings))) == [("switches", "ok")]
    pause(str(settings.home), "2026-11-30T08:00:00Z")
    (paused,) = check_switches(settings)
    assert (paused.finding.severity, paused.finding.remedy) == ("note", "stillroom resume")
    (settings.home / "memories-off.json").write_text("{bad", encoding="utf-8")
    off = msgspec.structs.replace(settings, memories=Memories(enabled=False))
    assert said(list(check_switches(off))) == [("switches", "error"), ("switches", "note"), ("switches", "note")]


def test_other_memories_are_known_by_their_entries(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert other(settings, {}) == [("ok", "none")]
    claude, codex = tmp_path / ".claude", tmp_path / ".codex"
    (claude / "projects" / "-a" / "memory").mkdir(parents=True)
    (claude / "projects" / "-a" / "memory" / "MEMORY.md").touch()
    codex.mkdir()
    (claude / "settings.json").write_text(json.dumps({"enabledPlugins": {"claude-mem@thedotmack": True}}))
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"om": {"url": "http://x/openmemory/mcp"}}}))
    (codex / "config.toml").write_text(
        '[features]\nmemories = true\n[mcp_servers.basic-memory]\ncommand = "uvx"\nargs = ["basic-memory", "mcp"]\n'
        '[mcp_servers.stillroom]\ncommand = "stillroom"\nargs = ["mcp"]\n'
    )
    assert other(settings, {}) == [
        ("note", "Codex's"),
        ("note", "Basic"),
        ("warning", "claude-mem"),
        ("note", "Claude"),
        ("note", "OpenMemory"),
    ]
    shared = Settings(home=settings.home, memories=Memories(root=str(codex / "memories")))
    assert other(shared, {})[0] == ("error", "Codex's")
    for path in (claude / "settings.json", tmp_path / ".claude.json", codex / "config.toml"):
        path.write_bytes(b'{"hooks": [[[' * 1000)
    assert other(settings, {}) == [("note", "Claude")]


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (unfinished.Undoing(run="r", first="f", discard_edits=False, at=1), "an `undo`"),
        (unfinished.Redacting(at=1), "a `redact --retro`"),
    ],
)
def test_what_was_killed_before_its_end_is_told_and_can_be_finished(
    settings: Settings, clock: FixedClock, work: unfinished.Unfinished, said: str
) -> None:
    unfinished.begin(settings.home, work)
    (found,) = [each for each in check_leftovers(settings, clock) if each.finding.check == "unfinished"]
    assert found.finding.what.startswith(said) and found.mend is not None


def test_a_note_of_something_begun_that_can_t_be_read_is_told(settings: Settings, clock: FixedClock) -> None:
    (settings.home / "unfinished.json").write_text("not even json", encoding="utf-8")
    (found,) = [each for each in check_leftovers(settings, clock) if each.finding.check == "unfinished"]
    assert "can't be read" in found.finding.what and found.mend is None
