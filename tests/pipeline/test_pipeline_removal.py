"""A statement that a person removed stays out, whatever runs later."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from life_house import DAY, NOW, LifeHouse, thread_id

from stillroom.cli.app import run_command
from stillroom.errors import NotFound, StillroomError
from stillroom.recall.browse.notes import add_note
from stillroom.recall.injection.instructions import Instructions, instructions
from stillroom.store.records import Stage1Draft
from stillroom.undoing.removing import Removed, Several, plan_removal, remove
from stillroom.undoing.undo import plan_undo, undo
from stillroom.undoing.versions import open_history, versions

COMMITS = "From now on never commit to main directly; open a pull request."
PNPM = "Please always use pnpm in this repository, not npm."
FRIDAYS = "From now on releases go out on Tuesdays, never on Fridays."


def take_out(house: LifeHouse, asked: str) -> Removed:
    with house.store() as store:
        return remove(house.settings, store, plan_removal(house.settings, store, asked, now=house.now))


def everywhere(house: LifeHouse) -> str:
    """Every file of the memory folder, what was extracted, and what a session is given."""
    found = [path.read_text("utf-8") for path in sorted(house.settings.root.rglob("*.md"))]
    with house.store() as store:
        found += [f"{each.raw_memory}\n{each.rollout_summary}\n{each.rollout_slug}" for each in store.outputs.latest()]
    given_text = instructions(house.settings, "/home/a/shop")
    return "\n".join([*found, given_text.text if isinstance(given_text, Instructions) else ""])


def filled(tmp_path: Path) -> LifeHouse:
    house = LifeHouse(tmp_path)
    house.said(1, COMMITS, FRIDAYS, at=house.now - 2 * DAY)
    house.said(2, PNPM)
    house.said(3, COMMITS, cwd="/home/a/blog")
    house.run()
    return house


def line_of(house: LifeHouse, words: str, name: str = "MEMORY.md") -> int:
    lines = house.text(name).splitlines()
    return next(n for n, line in enumerate(lines, 1) if words in line and line.startswith("- the user"))


def test_a_line_goes_from_every_place_and_stays_out(tmp_path: Path) -> None:
    house = filled(tmp_path)
    with house.store() as store:
        asked = f"MEMORY.md:{line_of(house, 'never commit')}"
        plan = plan_removal(house.settings, store, asked, now=house.now)
        assert {place.path.split("/")[0] for place in plan.preview.places} == {
            "MEMORY.md", "memory_summary.md", "raw_memories.md", "rollout_summaries"
        }  # fmt: skip
        assert plan.preview.sessions == (thread_id(1), thread_id(3))
        assert "commit to main" in everywhere(house)
        remove(house.settings, store, plan)
    assert "commit to main" not in everywhere(house)
    assert "pnpm" in house.summary and "Tuesdays" in house.handbook
    # No rule of any run brings it back: extracted again, by another engine, from a session that goes on.
    house.run(later=60)
    with house.store() as store:
        store.extraction.reopen_offline()
    house.said(1, COMMITS, FRIDAYS, "Is that all?", at=house.now, began=NOW - 2 * DAY)
    house.run(later=DAY, upgrade=True)
    assert "commit to main" not in everywhere(house)
    assert "Tuesdays" in house.handbook
    assert all("rollout_summaries/" not in line or _names_a_file(house, line) for line in house.handbook.splitlines())


def _names_a_file(house: LifeHouse, line: str) -> bool:
    return (house.settings.root / line.removeprefix("- ").split(" ")[0]).is_file()


def test_what_a_model_writes_of_it_stays_out_too(tmp_path: Path) -> None:
    house = filled(tmp_path)
    take_out(house, "never commit to main")
    text = f'### Task 1: git\n\nPreference signals:\n- the user said: "{COMMITS.lower()}" -> default\n- use tabs\n'
    with house.store() as store:
        store.extraction.reopen_offline()
        claim = store.extraction.try_claim(
            thread_id(1), worker_id="w", source_updated_at=house.now, stage=house.settings.stage_one, max_running=9
        )
        store.extraction.finish(claim, Stage1Draft(raw_memory=text, rollout_summary=text), engine="provider:model")  # type: ignore[arg-type]
        output = store.outputs.get(thread_id(1))
    assert output is not None and output.raw_memory == "### Task 1: git\n\nPreference signals:\n- use tabs\n"


def test_only_a_new_word_of_the_person_brings_it_back(tmp_path: Path) -> None:
    house = filled(tmp_path)
    take_out(house, "never commit to main")
    house.said(4, COMMITS, at=house.now - DAY)  # an old session that is found only now
    house.run(later=60)
    assert "commit to main" not in everywhere(house)
    house.said(5, COMMITS, at=house.now + 2 * DAY)
    house.run(later=3 * DAY)
    assert "commit to main" in house.summary and "commit to main" in house.handbook


def test_an_undo_takes_the_removal_back_and_one_of_an_older_run_does_not(tmp_path: Path) -> None:
    house = filled(tmp_path)
    house.said(6, "From now on answer in German.", at=house.now)
    house.run(later=DAY)
    take_out(house, "never commit to main")
    removal = versions(open_history(house.settings), limit=1)[0]
    assert removal.subject == "Remove a statement"
    with house.store() as store:
        history = open_history(house.settings)
        undo(house.settings, store, plan_undo(house.settings, history, None, now=house.now))
    assert "commit to main" in house.summary and "commit to main" in house.handbook
    house.run(later=60)
    assert "commit to main" in house.handbook and "German" in house.handbook
    take_out(house, "never commit to main")
    with house.store() as store:
        history = open_history(house.settings)
        consolidation = next(each for each in versions(history) if each.is_consolidation)
        undo(house.settings, store, plan_undo(house.settings, history, consolidation.commit, now=house.now))
    house.run(later=DAY)
    assert "commit to main" not in house.handbook + house.summary


def test_a_phrase_of_several_statements_lists_them_and_changes_nothing(tmp_path: Path) -> None:
    house = filled(tmp_path)
    before = everywhere(house)
    with house.store() as store:
        with pytest.raises(Several, match="2 statements have `never`"):
            plan_removal(house.settings, store, "never", now=house.now)
        with pytest.raises(NotFound):
            plan_removal(house.settings, store, "nobody said this", now=house.now)
        for line in ("MEMORY.md:1", "MEMORY.md:99999", f"MEMORY.md:{house.handbook.splitlines().index('') + 1}", " "):
            with pytest.raises(StillroomError):
                plan_removal(house.settings, store, line, now=house.now)
        summaries = next(n for n, line in enumerate(house.handbook.splitlines(), 1) if line.startswith("- rollout_"))
        with pytest.raises(StillroomError, match="is no statement"):
            plan_removal(house.settings, store, f"MEMORY.md:{summaries}", now=house.now)
    assert everywhere(house) == before


def test_a_note_goes_with_its_statement(tmp_path: Path) -> None:
    house = filled(tmp_path)
    add_note(house.settings.root, "- Ask Bob before apply.\n- Prefer tabs.", clock=house.clock)
    house.run(later=60)
    take_out(house, "ask bob")
    house.run(later=60)
    assert "Bob" not in everywhere(house) and "Prefer tabs." in house.handbook


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(["run", "again", "grow", "old", "note", "remove_other", "undo_run"]), max_size=6))
def test_no_later_run_says_it_again(steps: list[str]) -> None:
    base = Path(tempfile.mkdtemp())
    try:
        house = filled(base)
        take_out(house, "never commit to main")
        for number, step in enumerate(steps, 10):
            match step:
                case "again":
                    with house.store() as store:
                        store.extraction.reopen_offline()
                case "grow":
                    house.said(1, COMMITS, FRIDAYS, f"And use tool {number}.", at=house.now, began=NOW - 2 * DAY)
                case "old":
                    house.said(number, COMMITS, at=house.now - 40 * DAY)
                case "note":
                    add_note(house.settings.root, f"Tool {number} is slow.", clock=house.clock)
                case "remove_other":
                    with house.store() as store:
                        try:
                            plan = plan_removal(house.settings, store, "pnpm in this repository", now=house.now)
                            remove(house.settings, store, plan)
                        except StillroomError:
                            pass
                case "undo_run":
                    with house.store() as store:
                        history = open_history(house.settings)
                        newest = next((each for each in versions(history) if each.is_consolidation), None)
                        try:
                            assert newest is not None
                            plan_ = plan_undo(house.settings, history, newest.commit, now=house.now)
                            undo(house.settings, store, plan_)
                        except StillroomError:
                            pass
            house.run(later=DAY, backfill=True)
            assert "commit to main" not in house.handbook + house.summary + house.text("raw_memories.md")
    finally:
        shutil.rmtree(base)


# The commands


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LifeHouse:
    house = filled(tmp_path)
    monkeypatch.setenv("STILLROOM_HOME", str(house.settings.home))
    monkeypatch.setenv("CODEX_HOME", str(house.codex))
    return house


def test_rm_shows_what_goes_and_needs_a_yes(at_home: LifeHouse, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["rm", "never", "commit", "to", "main"]) == 2  # nobody can be asked
    assert "commit to main" in at_home.handbook
    shown = capsys.readouterr().err
    assert "remove  - the user said:" in shown and "from    MEMORY.md:" in shown
    assert "from what was extracted of 2 sessions" in shown
    assert run_command(["rm", "never commit to main", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] is None
    assert run_command(["rm", "never"]) == 1
    assert "2 statements have `never`" in capsys.readouterr().err
    assert run_command(["rm", f"MEMORY.md:{line_of(at_home, 'never commit')}", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"]["sessions"] == 2
    assert "commit to main" not in everywhere(at_home)
    assert run_command(["undo", "--yes"]) == 0
    assert "commit to main" in at_home.handbook
    assert run_command(["rm"]) == 2


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    file = tmp_path / "vi"
    file.write_text(f"#!{sys.executable}\nimport sys, pathlib\npath = pathlib.Path(sys.argv[-1])\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(file))
    monkeypatch.delenv("VISUAL", raising=False)


def test_an_edit_is_one_version_that_undo_takes_back(
    at_home: LifeHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["edit"]) == 2 if not os.environ.get("EDITOR") else True
    asked = tmp_path / "asked"
    editor(
        tmp_path,
        monkeypatch,
        f"pathlib.Path({str(asked)!r}).write_text(' '.join(sys.argv[1:-1]))\n"
        "path.write_text(path.read_text().replace('# Task Group: shop', '# Task Group: shop\\n\\nAsk Bob first.', 1))",
    )
    capsys.readouterr()
    assert run_command(["edit", "MEMORY.md:3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is True
    assert asked.read_text() == "+3" and "Ask Bob first." in at_home.handbook
    assert versions(open_history(at_home.settings), limit=1)[0].subject == "Edit MEMORY.md"
    at_home.said(9, "From now on answer in German.", at=at_home.now)
    at_home.run(later=DAY)
    assert "Ask Bob first." in at_home.handbook and "German" in at_home.handbook
    assert run_command(["edit", "raw_memories.md"]) == 1
    assert run_command(["edit", "nothing.md"]) == 1
    assert run_command(["undo", "--yes"]) == 0
    assert "Ask Bob first." in at_home.handbook
    assert run_command(["undo", "--yes"]) == 0
    assert "Ask Bob first." not in at_home.handbook


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("path.write_text(path.read_text() + 'key: sk-proj-' + 'a1B2c3D4' * 6 + '\\n')", "secret"),
        ("path.write_text('no first line')", "v1"),
    ],
)
def test_an_edit_that_breaks_the_memory_changes_nothing_and_is_kept_beside_it(
    at_home: LifeHouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    words: str,
) -> None:
    before = at_home.summary
    editor(tmp_path, monkeypatch, script)
    assert run_command(["edit", "memory_summary.md"]) == 1
    shown = capsys.readouterr().err
    assert words in shown and "what you wrote is in " in shown
    assert at_home.summary == before
    kept = Path(shown.partition("what you wrote is in ")[2].splitlines()[0])
    assert kept.read_text() != before
    shutil.rmtree(kept.parent)


def test_an_editor_that_changes_nothing_or_fails_makes_no_version(
    at_home: LifeHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = open_history(at_home.settings).head()
    editor(tmp_path, monkeypatch, "")
    assert run_command(["edit"]) == 0
    editor(tmp_path, monkeypatch, "sys.exit(3)")
    assert run_command(["edit"]) == 2
    assert open_history(at_home.settings).head() == head
