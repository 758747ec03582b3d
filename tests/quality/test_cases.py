"""Situations that once misled: each with what must be told, and what must not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.quality.score import score

from stillroom.offline import distil
from stillroom.sessions.agents import chat as reader
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import read_events
from stillroom.sessions.readers import open_thread

CASES = Path(__file__).parent / "cases"
LIMIT = 8 * 1024 * 1024
OPEN = pytest.mark.xfail(reason="a choice by number is evidence, and not told", strict=True)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=OPEN if path.stem == "rejected_option_as_agreed" else (), id=path.stem)
        for path in sorted(CASES.glob("*.toml"))
    ],
)
def test_what_a_session_taught_is_told_and_no_trap(path: Path) -> None:
    [scored] = score([path])
    assert scored.empty_right is not False
    assert scored.verdict.missed == ()
    assert scored.verdict.told == scored.verdict.found
    assert scored.verdict.kept_told == ()


#: What a line that is told must have, and what none may have.
CHATS = {
    "closing_summary_as_cause": ([], ["cause.*closes the tooltip"]),
    "coverage_row_as_error": (['fails with "expect'], ["clear-timer"]),
    "decision_exact_set": (["also accept 'enabled'", "'y' and '2' must not count"], []),
    "decision_order_first_always": (["fee or the tax.*Fee first, always"], []),
    "decision_rejects_proposal": (["five tries.*20 seconds"], ["pause of one minute between"]),
    "fix_confirmed": (["pool_size=40.*That fixed it"], []),
    "issue_text_as_wish": ([], ["supposed to|computes the placement"]),
    "long_rule_cut": (["integer number of seconds", "`total_seconds`.*snake_case"], ["…"]),
    "pref_always_use_not": (["always use poetry, not pip"], []),
    "pref_for_future": (["In Go projects I go with testify"], []),
    "pref_how_i_work": (["short answers", "run the linter before"], []),
    "problem_taken_for_wish": (["429 and 408 must be retried", "Nothing else below 500"], ["yesterday's rollout"]),
    "stack_choice": (["Litestar with MariaDB"], []),
    "switch_tool": (["from Flyway to Liquibase", "drop Flyway"], ["Update the README"]),
}


@pytest.mark.parametrize("name", CHATS)
def test_a_talk_leaves_what_was_settled(name: str, tmp_path: Path) -> None:
    file = shutil.copy(CASES / "chat" / f"{name}.json", tmp_path)
    [thread] = [
        each.thread for each in reader.discover(Path(file), {}, max_line_bytes=LIMIT) if isinstance(each, Found)
    ]
    with open_thread(thread, max_line_bytes=LIMIT) as items:
        draft = distil(thread, read_events(items))
    lines = [line for line in (draft.raw_memory if draft else "").splitlines() if line.startswith("- ")]
    told, never = CHATS[name]
    assert [each for each in told if not any(re.search(each, line) for line in lines)] == [], lines
    assert [line for line in lines for each in never if re.search(each, line)] == []


def test_every_talk_is_judged() -> None:
    assert {path.stem for path in (CASES / "chat").glob("*.json")} == set(CHATS)
