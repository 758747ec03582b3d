"""A consolidation that is undone: the folder is what it was, edits stay, and no pass does it again."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from undoing_house import HOUR_MS, NOW_MS, House, run_and_die

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, StageOne
from stillroom.consolidate.outcome import Consolidated, NoChanges, Skipped
from stillroom.errors import HistoryError, InvalidRequest, WorkspaceError
from stillroom.store.records import Stage1Draft
from stillroom.undoing import unfinished
from stillroom.undoing.choosing import Choice
from stillroom.undoing.editing import text_of
from stillroom.undoing.undo import Undone, plan_undo, undo
from stillroom.undoing.versions import change_of, change_since, open_history, versions
from stillroom.workspace.git import Repository

NOTE = "- Mine: releases are cut on Tuesdays.\n"


def files(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text(encoding="utf-8") for p in sorted(root.rglob("*")) if p.is_file()}


def undone(house: House, revision: str | None = None, *, discard_edits: bool = False) -> Undone:
    history = open_history(house.settings)
    plan = plan_undo(house.settings, history, revision, now=house.clock.now(), discard_edits=discard_edits)
    with house.store() as store:
        return undo(house.settings, store, plan)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after two consolidations: of three sessions with one memory, and of all of them."""
    base = tmp_path_factory.mktemp("prepared")
    house = House(base)
    house.run(max_threads=3)
    shutil.copytree(house.root, base / "first")
    house.run(hours=8)
    return base


@pytest.fixture
def house(prepared: Path, tmp_path: Path) -> House:
    shutil.copytree(prepared / "home", tmp_path / "home")
    house = House(tmp_path)
    house.settings = Settings(home=tmp_path / "home", sources=House(prepared).settings.sources)
    house.clock = FixedClock(NOW_MS + 9 * HOUR_MS)
    return house


def test_the_folder_is_what_it_was_and_no_later_pass_does_it_again(house: House, prepared: Path) -> None:
    before, after = files(prepared / "first"), files(house.root)
    assert before != after
    done = undone(house)
    assert done.held_out == 2 and "MEMORY.md" in done.written and len(done.deleted) == 2
    assert files(house.root) == before
    for hours in (8, 8, 24 * 40):
        report = house.run(hours=hours)
        assert isinstance(report.consolidate, NoChanges)
        assert files(house.root) == before


def test_the_record_of_generated_lines_goes_back_too_and_is_shown_nowhere(house: House, prepared: Path) -> None:
    record = house.root / ".stillroom-lines"
    first = (prepared / "first" / ".stillroom-lines").read_text(encoding="utf-8")
    assert record.read_text(encoding="utf-8") != first
    history = open_history(house.settings)
    plan = plan_undo(house.settings, history, None, now=house.clock.now())
    done = undone(house)
    assert record.read_text(encoding="utf-8") == first
    told = [*plan.preview.changes, *done.written, *(line for each in versions(history) for line in each.changed)]
    assert "M MEMORY.md" in told and not [line for line in told if "stillroom-lines" in line]
    newest, *_ = versions(history)
    assert "stillroom-lines" not in change_of(history, newest.commit, everything=True).diff
    record.unlink()
    assert change_since(history, newest.commit, house.root, everything=True).diff == ""
    with pytest.raises(InvalidRequest):
        text_of(house.settings, ".stillroom-lines")


def test_redo_brings_back_what_was_undone(house: House) -> None:
    after = files(house.root)
    undone(house)
    with house.store() as store:
        assert store.consolidation.redo() == 3
        assert store.consolidation.redo() == 0
    house.run(hours=8)
    assert files(house.root) == after


def test_undoing_again_undoes_the_one_before_until_nothing_is_left(house: House) -> None:
    undone(house)
    undone(house)
    assert not (house.root / "MEMORY.md").exists()
    assert not list((house.root / "rollout_summaries").iterdir())
    subjects = [version.subject for version in versions(open_history(house.settings))]
    assert subjects[:2] == ["Undo “Consolidate 1 thread”", "Undo “Consolidate 3 threads”"]
    with pytest.raises(HistoryError, match="no consolidation to undo"):
        undone(house)
    report = house.run(hours=8)
    assert isinstance(report.consolidate, Skipped | NoChanges | Consolidated)
    assert "biome" not in str(files(house.root))


def test_a_named_version_goes_with_all_that_came_after_it(house: House) -> None:
    first = next(v for v in reversed(versions(open_history(house.settings))) if v.is_consolidation)
    undone(house, first.commit[:8])
    assert not (house.root / "MEMORY.md").exists()
    with pytest.raises(HistoryError, match="undone already"):
        undone(house, first.commit)
    with pytest.raises(HistoryError, match="is no consolidation"):
        undone(house, "HEAD")


def test_what_a_person_wrote_before_between_and_after_stays(house: House, prepared: Path) -> None:
    handbook = house.root / "MEMORY.md"
    handbook.write_text(handbook.read_text(encoding="utf-8").replace("# Task", f"{NOTE}\n# Task", 1), encoding="utf-8")
    (house.root / "skills" / "mine").mkdir(parents=True)
    (house.root / "skills" / "mine" / "SKILL.md").write_text("# Mine\n", encoding="utf-8")
    mine = house.root / "extensions" / "ad_hoc" / "notes" / "2026-11-30T18-00-00-mine.md"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("a note\n", encoding="utf-8")
    undone(house)
    assert NOTE in handbook.read_text(encoding="utf-8")
    assert handbook.read_text(encoding="utf-8").replace(f"{NOTE}\n", "") == (
        prepared / "first" / "MEMORY.md"
    ).read_text(encoding="utf-8")
    assert (house.root / "skills" / "mine" / "SKILL.md").exists() and mine.exists()
    edits = Repository(house.settings.history).run("log", "--format=%s").decode().splitlines()
    assert edits[1] == "Edits since the last consolidation"


def test_an_edit_that_touches_what_goes_is_told_and_nothing_is_done(house: House, prepared: Path) -> None:
    summary = house.root / "memory_summary.md"
    text = summary.read_text(encoding="utf-8")
    [edited] = [line for line in text.splitlines() if line in _gone(text, prepared)][:1]
    summary.write_text(text.replace(edited, f"{edited}, as I know"), encoding="utf-8")
    before = files(house.root)
    with pytest.raises(WorkspaceError, match=r"your edits of `memory_summary.md` touch"):
        undone(house)
    assert files(house.root) == before and not (house.home / unfinished.FILE).exists()
    undone(house, discard_edits=True)
    assert summary.read_text(encoding="utf-8") == (prepared / "first" / "memory_summary.md").read_text(encoding="utf-8")
    kept = Repository(house.settings.history).run("show", "HEAD~1:memory_summary.md").decode()
    assert ", as I know" in kept


def _gone(text: str, prepared: Path) -> list[str]:
    """The bullets that the undone consolidation wrote."""
    first = (prepared / "first" / "memory_summary.md").read_text(encoding="utf-8").splitlines()
    return [line for line in text.splitlines() if line.startswith("- ") and line not in first]


def test_a_session_that_goes_on_comes_back_by_itself(house: House) -> None:
    with house.store() as store:
        before = {output.thread_id for output in store.consolidation.select(limit=9, max_unused_days=99).selected}
    undone(house)
    with house.store() as store:
        after = {output.thread_id for output in store.consolidation.select(limit=9, max_unused_days=99).selected}
        held = min(before - after)
        thread = store.threads.get(held)
        assert thread is not None
        stamp = store.threads.file_stamps("codex")[thread.rollout_path]
        later = msgspec.structs.replace(thread, updated_at_ms=house.clock.now_ms() - 7 * HOUR_MS)
        store.threads.save([(later, stamp)])
        (claim,) = store.extraction.claim(
            worker_id="w", current_thread_id=None, memories=Memories(), stage=StageOne(), max_claims=8
        )
        draft = Stage1Draft(raw_memory="more", rollout_summary="went on")
        assert claim.thread_id == held and store.extraction.finish(claim, draft, engine="offline")
        selected = {output.thread_id for output in store.consolidation.select(limit=9, max_unused_days=99).selected}
        assert selected == after | {held}


def test_an_undo_does_not_bring_back_what_was_forgotten(house: House) -> None:
    with house.store() as store:
        victim = next(
            o.thread_id
            for o in store.consolidation.select(limit=9, max_unused_days=99).selected
            if "biome" in o.raw_memory
        )
    house.forget(Choice(threads=(victim,)))
    house.run(hours=8)
    undone(house)
    undone(house)
    assert victim not in str(files(house.root))
    assert "biome" not in str(files(house.root))


@pytest.mark.timeout(600)
def test_killed_at_any_step_the_next_pass_finishes_it(prepared: Path, tmp_path: Path) -> None:
    words = (House(prepared).codex, NOW_MS + 9 * HOUR_MS)
    whole = tmp_path / "whole"
    shutil.copytree(prepared / "home", whole)
    undisturbed = run_and_die("undo_and_die.py", whole, *words, 0)
    *steps, status = undisturbed.stdout.splitlines()
    assert status == "undone", undisturbed.stderr
    assert len(steps) > 10
    expected = files(whole / "memories")
    assert expected == files(prepared / "first")
    for number, step in enumerate(steps, 1):
        home = tmp_path / "killed"
        shutil.copytree(prepared / "home", home)
        assert run_and_die("undo_and_die.py", home, *words, number).returncode == 9, step
        house = House(tmp_path, home="killed")
        house.settings = Settings(home=home, sources=House(prepared).settings.sources)
        house.clock = FixedClock(NOW_MS + 20 * HOUR_MS)
        report = house.run()
        assert isinstance(report.consolidate, NoChanges), (step, report.consolidate, report.detail)
        assert not (home / unfinished.FILE).exists()
        assert files(house.root) == expected, step
        assert [path.name for path in (home / "staging").iterdir() if path.name not in (".lock", "spare")] == [], step
        shutil.rmtree(home)
