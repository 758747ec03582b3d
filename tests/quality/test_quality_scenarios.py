"""The labelled sessions are sound: they build, their labels rest on the transcript, and the judge is strict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.quality.build import load, rollout_lines, write_rollout
from tests.quality.labels import counted_bullets, judge, labels_of
from tests.quality.score import SPLITS, as_json, by_lot, scenario_paths, score

from stillroom.store.records import Stage1Draft

SESSIONS = [path for split in SPLITS for path in scenario_paths(split)]

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


FAILURE = {"facts": [{"kind": "failure", "all": ["ECONNREFUSED", "redis"]}]}


def failure(line: str) -> Stage1Draft:
    return draft("Failures and how to do differently:", f"- {line}")


def told_and_found(one: Stage1Draft) -> tuple[int, int]:
    verdict = judge(labels_of(TABLE), one)
    return len(verdict.told), len(verdict.found)


def test_evidence_is_kept_and_not_told() -> None:
    evidence = Stage1Draft(raw_memory="# Task", rollout_summary="Preference signals:\n- Biome, not ESLint")
    assert told_and_found(evidence) == (0, 1)
    assert told_and_found(draft("Preference signals:", "- Biome, not ESLint")) == (1, 1)


def test_a_trap_is_counted_in_the_tier_that_holds_it() -> None:
    text = "Reusable knowledge:\n- starvation is the cause"
    told = judge(labels_of(TABLE), Stage1Draft(raw_memory=text, rollout_summary="# Nothing"))
    evidence = judge(labels_of(TABLE), Stage1Draft(raw_memory="# Task", rollout_summary=text))
    assert (len(told.kept_told), len(told.kept_evidence), len(told.kept)) == (1, 0, 1)
    assert (len(evidence.kept_told), len(evidence.kept_evidence), len(evidence.kept)) == (0, 1, 1)


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("`make test` failed: ECONNREFUSED | cause: redis was not running | then passed", 1),
        ('Start it if `make test` fails with "ECONNREFUSED" (cause, said by the assistant: "redis is down"; …)', 1),
        ("`make test` fails with ECONNREFUSED because redis is down", 1),
        # The fact's words are all there, and the cause is another one's.
        ("`make test` failed: ECONNREFUSED at redis:6379 | cause: the linter is too old | then passed", 0),
        # A cause without its error.
        ("`npm ci` failed: EPERM | cause: redis was not running, hence ECONNREFUSED | then passed", 0),
    ],
)  # fmt: skip
def test_a_cause_is_right_beside_its_error_only(line: str, right: int) -> None:
    verdict = judge(labels_of(FAILURE), failure(line))
    assert (len(verdict.causes), len(verdict.causes) - len(verdict.wrong_causes)) == (1, right)


def test_a_word_of_cause_inside_a_quotation_is_no_cause() -> None:
    verdict = judge(
        labels_of(FAILURE), failure('`make test` failed: "refused because of a cause: redis" | then passed')
    )
    assert verdict.causes == ()


def test_a_label_may_name_the_cause_or_say_that_none_is_known() -> None:
    line = "`make test` failed: ECONNREFUSED | cause: redis was not running"
    named = {"facts": [{**FAILURE["facts"][0], "cause": ["not running"]}]}
    other = {"facts": [{**FAILURE["facts"][0], "cause": ["full disk"]}]}
    none = {"facts": [{**FAILURE["facts"][0], "cause": []}]}
    wrong = [len(judge(labels_of(table), failure(line)).wrong_causes) for table in (named, other, none)]
    assert wrong == [0, 1, 1]


def test_figures_are_summed_by_lot(tmp_path: Path) -> None:
    head = 'started = 2026-11-24T08:00:00Z\ncwd = "/home/a/shop"\nempty = true\nscript = "@u hi"\n'
    for name in ("9a1_x", "9a2_y", "9a3_z", "x86_boot", "plain"):
        (tmp_path / f"{name}.toml").write_text(head, encoding="utf-8")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "other.toml").write_text(head, encoding="utf-8")
    paths = scenario_paths("dev", tmp_path)
    made = Stage1Draft(raw_memory="Reusable knowledge:\n- it is", rollout_summary="# S")
    scored = score(paths, engine=lambda scenario, path: made if scenario.name == "9a2_y" else None)
    assert {lot: (f.sessions, f.empty_right) for lot, f in by_lot(scored).items()} == {
        f"{tmp_path.name}": (2, 2),
        f"{tmp_path.name}/9a": (3, 2),
        "more": (1, 1),
    }
    assert json.loads(as_json(scored))["lots"][f"{tmp_path.name}/9a"]["lines"] == 1
