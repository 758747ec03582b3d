"""The labelled sessions are sound: they build, their labels rest on the transcript, and the judge is strict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.quality.build import load, rollout_lines, write_rollout
from tests.quality.labels import counted_bullets, judge, labels_of

from stillroom.store.records import Stage1Draft

SCENARIOS = sorted(Path(__file__).parent.glob("*/*.toml"))
SESSIONS = [path for path in SCENARIOS if path.parent.name in {"dev", "heldout", "blind"}]

TABLE = {
    "facts": [
        {"kind": "preference", "all": ["biome", "eslint"]},
        {"kind": "failure", "all": ["exit 1", "pnpm install"]},
    ],
    "not": [{"kind": "disproved", "all": ["starvation"], "unless": "wrong"}, {"kind": "secret", "all": ["hunter2"]}],
    "allowed": ["vale"],
}


@pytest.mark.slow  # two seconds for all of them
@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_builds_to_the_same_bytes(path: Path, tmp_path: Path) -> None:
    scenario = load(path)
    first = write_rollout(scenario, tmp_path / "one").read_bytes()
    assert first == write_rollout(scenario, tmp_path / "two").read_bytes()
    kinds = [json.loads(line)["type"] for line in first.splitlines()]
    assert kinds[0] == "session_meta"
    assert "response_item" in kinds


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_what_a_label_demands_is_in_the_transcript(path: Path) -> None:
    scenario = load(path)
    text = json.dumps(rollout_lines(scenario), ensure_ascii=False)
    for fact in labels_of(scenario.table).facts:
        if fact.kind != "outcome":
            assert fact.touches(scenario.script) or fact.touches(text), fact.text


def draft(*lines: str) -> Stage1Draft:
    body = "\n".join(lines)
    return Stage1Draft(raw_memory=body, rollout_summary="# Nothing of note")


def test_only_bullets_of_the_three_sections_count() -> None:
    text = "Preference signals:\n- one\n  goes on\nKey steps:\n- not this\nReusable knowledge:\n- two\n  - three\n"
    assert counted_bullets(text + "References:\n- no") == ["one goes on", "two", "three"]


def test_a_line_that_matches_nothing_is_wrong() -> None:
    verdict = judge(
        labels_of(TABLE), draft("Preference signals:", "- Biome, not ESLint", "- the sky is blue", "- vale")
    )
    assert [fact.kind for fact in verdict.found] == ["preference"]
    assert verdict.wrong == ("the sky is blue",)


def test_a_line_with_a_forbidden_thing_is_wrong_even_if_it_holds_a_fact() -> None:
    verdict = judge(labels_of(TABLE), draft("Preference signals:", "- Biome, not ESLint, and starvation is the cause"))
    assert len(verdict.wrong) == 1
    assert [never.kind for never in verdict.kept] == ["disproved"]


def test_a_remark_is_found_inside_a_quotation() -> None:
    table = {**TABLE, "not": [{"kind": "remark", "all": [r"^\W*thanks\W*$"]}]}
    verdict = judge(labels_of(table), draft("Preference signals:", '- the user said "Thanks!" -> keep going'))
    assert [never.kind for never in verdict.kept] == ["remark"]


def test_a_failure_may_be_told_in_neighbouring_lines() -> None:
    lines = ("Failures and how to do differently:", "- `npm i` ended with exit 1", "- what worked: `pnpm install`")
    verdict = judge(labels_of(TABLE), draft(*lines))
    assert [fact.kind for fact in verdict.found] == ["failure"]
    assert verdict.wrong == ()


def test_a_secret_is_found_outside_of_the_counted_sections() -> None:
    verdict = judge(labels_of(TABLE), draft("References:", "- export PASSWORD=hunter2"))
    assert [never.kind for never in verdict.kept] == ["secret"]


def test_nothing_is_the_right_answer_for_an_empty_session() -> None:
    verdict = judge(labels_of({"empty": True}), None)
    assert (verdict.missed, verdict.lines) == ((), ())


def test_a_scenario_without_facts_must_say_that_it_is_empty() -> None:
    with pytest.raises(ValueError, match="empty"):
        labels_of({})
