"""One's own sessions: what was said twice, failed again, was cited or run, each counted where it happened."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stillroom.cli.app import run_command
from stillroom.config import OFFLINE
from stillroom.evaluate.mine import Mine, measure_mine
from stillroom.evaluate.scenario import Scenario, from_table
from stillroom.evaluate.trial import Trial
from stillroom.store import Store

SHOP, MARSH = "/home/dev/shop", "/home/dev/marsh"
WISH = "@u For the future: always use uv in this repo, never pip.\n"
FAILS = "@x1 uv run pytest tests/test_import.py\nE   ModuleNotFoundError: No module named 'tidelib'\n"
CURE = "@x0 uv sync --extra marine\nInstalled 1 package\n@x0 uv run pytest tests/test_import.py\n9 passed\n"
FIRST = f"@u the import fails on the new file\n{FAILS}{CURE}{WISH}@f Done.\n"


def session(name: str, day: int, script: str, cwd: str = MARSH) -> Scenario:
    started = datetime(2026, 11, 1, 9, tzinfo=UTC) + timedelta(days=day)
    return from_table(name, {"started": started, "cwd": cwd, "script": script})


def measured(tmp_path: Path, *rounds: list[Scenario]) -> tuple[Mine, Trial]:
    """The sessions of each round, with a pass after it."""
    trial = Trial(tmp_path, engine=OFFLINE)
    for sessions in rounds:
        for each in sessions:
            trial.add(each)
        trial.run()
    with Store.open(trial.settings.database, clock=trial.clock) as store:
        return measure_mine(trial.settings, store, trial.clock, days=90), trial


def test_what_is_said_again_is_found_with_whether_memory_told_it(tmp_path: Path) -> None:
    again = session(
        "again",
        10,
        "@u add a station\n@x0 uv run pytest\n9 passed\n@u always use uv here in this repo, never pip!\n@f ok\n",
    )
    mine, _ = measured(tmp_path, [session("first", 1, FIRST)], [again])
    assert [(each.project, each.held) for each in mine.again] == [("marsh", "told")]
    assert mine.again[0].first_said == "For the future: always use uv in this repo, never pip."
    assert (mine.sessions, mine.projects, mine.with_memory) == (2, 1, 1)


def test_what_memory_could_not_know_yet_is_held_late(tmp_path: Path) -> None:
    again = session("again", 10, f"@u add a station\n@x0 uv run pytest\n9 passed\n{WISH}@f ok\n")
    mine, _ = measured(tmp_path, [session("first", 1, FIRST), again])  # one pass, after both
    assert [each.held for each in mine.again] == ["late"]
    assert mine.with_memory == 0


def test_what_memory_did_not_keep_is_told_apart(tmp_path: Path) -> None:
    errand = "@u please draw the tide stations on the northern map\n@f Drawn.\n"
    mine, _ = measured(tmp_path, [session("first", 1, errand)], [session("again", 10, errand)])
    assert [each.held for each in mine.again] == ["no"]


def test_questions_and_templates_are_nothing_that_was_said_again(tmp_path: Path) -> None:
    question = "@u what does the tide table column named offset mean?\n@f Minutes.\n"
    rules = (
        "Load the plan of the feature first.",
        "Mark every finished task in the list.",
        "Stop after three failed tries.",
    )
    template = "@u " + " ".join(rules) + "\n@f ok\n"
    first = [session("first", 1, question), session("second", 2, template)]
    mine, _ = measured(tmp_path, first, [session("third", 10, question), session("fourth", 11, template)])
    assert mine.again == ()
    one = session("fifth", 12, f"@u {rules[0]}\n@f ok\n")
    mine, _ = measured(tmp_path / "other", first, [one])
    assert [each.said for each in mine.again] == [rules[0]]


def test_another_project_another_sentence_and_the_same_session_are_not_again(tmp_path: Path) -> None:
    elsewhere = session("elsewhere", 10, f"@u add a cart\n{WISH}@f ok\n", cwd=SHOP)
    other = session("other", 11, "@u always write the changelog in Dutch here, never in French\n@f ok\n")
    twice = session(
        "twice",
        12,
        "@u name the buoys after their harbour please\n@c ok\n@u name the buoys after their harbour please\n@f ok\n",
    )
    mine, _ = measured(tmp_path, [session("first", 1, FIRST)], [elsewhere, other, twice])
    assert mine.again == ()


def test_a_failure_whose_cure_memory_told_is_counted_and_whether_it_was_used(tmp_path: Path) -> None:
    cured = session("cured", 10, f"@u run the tests\n{FAILS}{CURE}@f ok\n")
    left = session("left", 11, f"@u run the tests\n{FAILS}@f they fail\n")
    another = session("another", 12, "@u run the tests\n@x1 uv run pytest\nE   KeyError: 'station'\n@f they fail\n")
    elsewhere = session("elsewhere", 13, f"@u run the tests\n{FAILS}@f they fail\n", cwd=SHOP)
    mine, _ = measured(tmp_path, [session("first", 1, FIRST)], [cured, left, another, elsewhere])
    seen = {each.thread_id: each.cured for each in mine.failed_again}
    assert seen == {cured.thread_id: True, left.thread_id: False}


def test_a_failure_that_memory_learnt_of_afterwards_is_not_counted(tmp_path: Path) -> None:
    cured = session("cured", 10, f"@u run the tests\n{FAILS}{CURE}@f ok\n")
    mine, _ = measured(tmp_path, [session("first", 1, FIRST), cured])
    assert mine.failed_again == ()


def test_citations_and_commands_that_were_used_are_counted(tmp_path: Path) -> None:
    first = session("first", 1, FIRST)
    block = (
        "<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-2|note=[it]\n</citation_entries>\n"
        f"<rollout_ids>\n{first.thread_id}\n</rollout_ids>\n</oai-mem-citation>"
    )
    citing = session("citing", 10, f"@u sync\n@x0 uv sync --extra marine\nok\n@f Done.\n\n{block}\n")
    mine, _ = measured(tmp_path, [first], [citing])
    assert (mine.memories, mine.cited, mine.citations) == (1, 1, 1)
    assert {(each.thread_id, each.command) for each in mine.followed} == {(citing.thread_id, "uv sync --extra marine")}
    assert mine.commands >= 1


def test_the_command_prints_counts_with_examples_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = session("again", 10, f"@u add a station\n@x0 uv run pytest\n9 passed\n{WISH}@f ok\n")
    _, trial = measured(tmp_path, [session("first", 1, FIRST)], [again])
    home = str(trial.settings.home)
    before = {path: path.stat().st_mtime_ns for path in Path(home).rglob("*") if path.is_file()}
    assert run_command(["eval", "--mine", "--days", "3650", "--json", "--home", home]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["sessions"], found["again_by"]) == (2, {"told": 1})
    assert run_command(["eval", "--mine", "--days", "3650", "--home", home]) == 0
    assert "never pip" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in Path(home).rglob("*") if path.is_file()} == before


def test_without_sessions_it_says_where_to_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["eval", "--mine", "--home", str(tmp_path)]) == 0
    assert "stillroom threads" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert run_command(["eval", "--mine", "--set", "blind"]) == 2
