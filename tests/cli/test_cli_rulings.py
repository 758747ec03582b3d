"""What each rule says of a thread, in words."""

from __future__ import annotations

from typing import Any

import pytest

from stillroom.cli.rulings import remedy, why
from stillroom.store.rules import EXTRACTION, RuleName, Ruling


def ruling(rule: RuleName, verdict: Any, values: dict[str, Any], **ways: Any) -> Ruling:
    return Ruling(rule=rule, verdict=verdict, values=values, **ways)


NOT_TOLD = {"told_whole": False, "told_in": None, "expired_at": None}
REFUSED: list[tuple[RuleName, dict[str, Any], str]] = [
    ("enabled", {}, "memories are switched off"),
    ("mode", {"chosen": None, "recorded": "disabled"}, "disabled: it may not be remembered, as its agent recorded"),
    ("mode", {"chosen": "disabled", "recorded": "enabled"}, "disabled: it may not be remembered, set here"),
    (
        "mode",
        {"chosen": None, "recorded": "polluted"},
        "it took in words of the web or of an MCP server, so it may not be remembered",
    ),
    ("project", {}, "the memory of its project is switched off"),
    ("watermark", NOT_TOLD, "extracted up to its last activity"),
    ("watermark", {"told_whole": True, "told_in": "a"}, "word for word what `a` says, and left to it"),
    (
        "watermark",
        {"told_whole": False, "told_in": "a"},
        "extracted up to its last activity, from where it leaves `a`",
    ),
    ("missing", {}, "its file is gone"),
    ("archived", {}, "archived"),
    ("preview", {}, "no person said a word in it"),
    ("memory_worker", {}, "it is a session of the memory itself"),
    ("source", {"source": "exec"}, "no person was at the other end (`exec`)"),
    ("current", {}, "the pass is started from it"),
    ("cwd", {"asked": "/shop"}, "it did not run in `/shop` or below"),
    ("session", {"asked": True}, "it is none of the sessions that were asked for"),
    ("idle", {"idle_seconds": 6 * 3600}, "active less than 6 h ago"),
    ("age", {"max_rollout_age_days": 10}, "not active for more than 10 days"),
    ("scan_limit", {"thread_scan_limit": 5000}, "a pass looks at the newest 5,000 threads only"),
    ("lease", {}, "another process extracts it, or was killed while it did"),
    ("retries", {"last_error": "no"}, "it failed too often: no"),
    ("retries", {"last_error": None}, "it failed too often: the reason is not known"),
    ("backoff", {"last_error": "no"}, "no; the next try waits"),
    ("backoff", {"last_error": None}, "it failed, and the reason is not known; the next try waits"),
    ("paused", {"paused_since": "noon"}, "passes are paused since noon"),
    ("cap", {"max_rollouts_per_startup": 2, "newer_threads": 3}, "a pass takes 2, 3 newer ones come first"),
    ("output", {"extracted": False}, "nothing was extracted of it"),
    ("output", {"extracted": True, "reason": None}, "nothing durable was found in it"),
    ("output", {"extracted": True, "reason": "too long"}, "not looked into: too long"),
    ("remembered", {}, "it may not be remembered any more"),
    ("words", {}, "what was extracted is blank"),
    ("undone", {}, "an undo took it out of the memory"),
    ("rank", {"max_raw_memories_for_consolidation": 256, "rank": 300}, "256 others rank before it; it is number 300"),
    (
        "kept",
        {"max_unused_days": 30, "in_folder": True},
        "removed by the next pass: not used for more than 30 days; it stays as long as the memory rests on it",
    ),
]


@pytest.mark.parametrize(("rule", "values", "sentence"), REFUSED)
def test_each_rule_that_refuses_says_so(rule: RuleName, values: dict[str, Any], sentence: str) -> None:
    assert why(ruling(rule, "refuses", values)) == sentence


PASSED: list[tuple[RuleName, dict[str, Any], str]] = [
    ("enabled", {}, "memories are switched on"),
    ("mode", {}, "it may be remembered"),
    ("project", {}, "the memory of its project is on"),
    ("watermark", {"reopened": True, "extracted_up_to": 1}, "to be extracted again"),
    ("watermark", {"reopened": False, "extracted_up_to": 1}, "active since it was extracted"),
    ("watermark", {"reopened": False, "extracted_up_to": None}, "not extracted yet"),
    ("missing", {}, "its file is there"),
    ("archived", {}, "not archived"),
    ("preview", {}, "a person spoke in it"),
    ("memory_worker", {}, "it is no session of the memory itself"),
    ("source", {"source": "cli"}, "a person was at the other end (`cli`)"),
    ("current", {}, "the pass is not started from it"),
    ("cwd", {"cwd": "/shop"}, "it ran in `/shop`"),
    ("cwd", {"cwd": ""}, "it does not say in which folder it ran"),
    ("session", {"asked": True}, "it was asked for"),
    ("session", {"asked": False}, "no other session was asked for"),
    ("idle", {"updated_at": 0, "ended": False}, "quiet since "),
    ("idle", {"updated_at": 0, "ended": True}, "its client said that it is over"),
    ("age", {"max_rollout_age_days": 1}, "active in the last 1 day, or a backfill"),
    ("scan_limit", {"newer_threads": 4000}, "newer ones that a pass looks at: 4,000"),
    ("lease", {}, "nobody else extracts it"),
    ("retries", {"retries_left": 3}, "it may be tried 3 times"),
    ("backoff", {}, "no failure is too recent"),
    ("paused", {}, "passes are not paused"),
    ("cap", {}, "the next pass takes it"),
    ("words", {}, "it says something"),
    ("undone", {"held": True}, "an undo brought it back"),
    ("undone", {"held": False}, "no undo took it out"),
    ("used", {"holds_preferences": True}, "it holds preferences, which don't expire"),
    ("used", {"holds_preferences": False, "usage_count": 2, "alive_at": 0}, "cited 2 times; its age counts from "),
    ("kept", {}, "it stays in the database"),
]


@pytest.mark.parametrize(("rule", "values", "sentence"), PASSED)
def test_each_rule_that_lets_pass_says_so(rule: RuleName, values: dict[str, Any], sentence: str) -> None:
    assert why(ruling(rule, "passes", values)).startswith(sentence)


def test_every_rule_on_extraction_has_words_of_its_own() -> None:
    for told in (REFUSED, PASSED):
        assert {rule.name for rule in EXTRACTION} <= {name for name, _, _ in told}


def test_what_waits_says_until_when_and_what_would_change_it_is_listed() -> None:
    waits = ruling("lease", "waits", {}, until=0, command="stillroom doctor --fix")
    assert why(waits).startswith("another process extracts it, or was killed while it did, until 19")
    assert remedy(waits) == "`stillroom doctor --fix`"
    both = ruling("age", "refuses", {}, setting="memories.max_rollout_age_days", command="stillroom run --backfill")
    assert remedy(both) == "`memories.max_rollout_age_days` or `stillroom run --backfill`"
    assert remedy(ruling("archived", "refuses", {}, otherwise="its agent")) == "its agent"
    assert remedy(ruling("archived", "passes", {}, otherwise="its agent")) is None
    assert remedy(ruling("watermark", "done", {"told_whole": True}, command="stillroom run")) is None
