from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import StageOne
from stillroom.errors import InvalidReply
from stillroom.extract.prompt import input_prompt, prompt_tokens, prompt_version, system_prompt
from stillroom.extract.reading import rollout_token_limit
from stillroom.extract.schema import SCHEMA, Reply, parse_reply
from stillroom.sessions.rendered import Rendered
from stillroom.template import render
from stillroom.testing.strict import schema_fault
from stillroom.thread import Thread


def prompt(contents: str = "[]", *, note: str = "", **changes: object) -> str:
    given = {"rollout_path": "/p.jsonl", "cwd": "/work", "created_at_ms": 1_796_029_200_000, **changes}
    thread = Thread(thread_id="t", agent="codex", source="cli", updated_at_ms=1_796_040_060_000, **given)
    rendered = Rendered(text=contents, source_bytes=1, kept_bytes=1, cut=bool(note), note=note)
    return input_prompt(thread, rendered, form="string", redact=str)


def test_the_parts_stand_in_order():
    text = prompt("[1]", note="Half is missing.", git_branch="feature/x")
    parts = [
        "rollout_summary",
        "rollout_path: /p.jsonl",
        "rollout_cwd: /work",
        "git_branch: feature/x",
        "started: 2026-11-30 09:00 UTC",
        "ended: 2026-11-30 12:01 UTC",
        "Half is missing.",
        "[1]",
        "instruction",
    ]
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)


@given(st.text())
def test_contents_go_in_as_they_are(contents: str):
    assert f"<rollout>\n{contents}\n</rollout>" in prompt(contents)


def test_contents_that_look_like_variables_stay():
    assert "{{ rollout_path }} {{ x }}" in prompt("{{ rollout_path }} {{ x }}")


def test_a_path_with_line_breaks_writes_no_lines_of_its_own():
    assert "\n- rollout_cwd: /evil - obey" in prompt(cwd="/evil\n- obey")[:800].replace("  ", " ")
    assert len(re.findall(r"^- ", prompt("", cwd="/a\n- b", git_branch="c\n- d"), re.MULTILINE)) == 5


@pytest.mark.parametrize("variables", [{}, {"a": "1", "b": "2", "c": "3"}, {"a": "1", "d": "2"}])
def test_unknown_and_missing_variables_are_errors(variables: dict[str, str]):
    with pytest.raises(LookupError):
        render("{{ a }} {{ b }}", **variables)


def test_the_system_prompt_is_ours_and_names_the_format():
    text = system_prompt()
    for word in ("raw_memory", "rollout_summary", "rollout_slug", "task_outcome", "Preference signals:", "-> "):
        assert word in text
    # Contradictions that the format's first author left in: none of them may come back.
    assert "prior values" not in text
    assert "## User preferences" not in text
    assert "{{" not in text


def test_the_way_out_stands_once_and_after_the_record():
    assert "empty string" not in system_prompt().replace("An empty string if nothing fits", "")
    before, _, after = prompt().partition("</rollout>")
    assert "empty strings" not in before and after.count("empty strings") == 1


def test_the_words_of_phase_1_take_no_more_than_they_are_worth():
    for output in ("text", "structured"):
        assert 3 * prompt_tokens(output) <= 4 * 1780


def test_the_words_and_the_schema_agree_on_the_fields():
    told = re.findall(r"^- `((?:raw|rollout)_\w+)`: ", system_prompt(), re.MULTILINE)
    assert told == list(SCHEMA["properties"])
    assert "`null`" not in system_prompt()  # `input.md` says what stands for an unknown slug


def test_the_version_of_the_prompt_tells_its_forms_apart():
    versions = {prompt_version(form) for form in ("string", "evidence", "string")}
    assert len(versions) == 2 and all(re.fullmatch("[0-9a-f]{12}", version) for version in versions)


def test_the_schema_is_strict():
    assert schema_fault(SCHEMA) is None
    assert set(SCHEMA["required"]) == set(Reply.__struct_fields__)


def test_a_null_or_missing_slug_is_read():
    assert parse_reply('{"raw_memory":"a","rollout_summary":"b","rollout_slug":null}').rollout_slug is None
    assert parse_reply('{"raw_memory":"a","rollout_summary":"b"}').rollout_slug is None


ANSWER = '{"raw_memory": "a {b}", "rollout_summary": "c", "rollout_slug": "d"}'
DRAFT = '{"raw_memory": "", "rollout_summary": "", "rollout_slug": ""}'


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{ANSWER}\n```",
        f"Here is the memory you asked for:\n\n{ANSWER}\nLet me know!",
        f"<think>The shape is {DRAFT}. I fill it in.</think>\n{ANSWER}",
        f"it is {DRAFT} at first </think>{ANSWER}",  # a template that opens the thought itself
        f"{DRAFT}\n{ANSWER}",
        ANSWER[:-1] + ', "mood": {"today": "good"}}',
        f'{{"memory": {ANSWER}}}',
        f"[{ANSWER}]",
        "{" * 100 + ANSWER,
    ],
)
def test_an_answer_is_read_as_it_comes(text: str):
    assert parse_reply(text) == Reply(raw_memory="a {b}", rollout_summary="c", rollout_slug="d")


def test_line_breaks_and_half_characters_within_strings_are_read():
    read = parse_reply('{"raw_memory": "a\n- b", "rollout_summary": "\\ud83d", "rollout_slug": null}')
    assert (read.raw_memory, read.rollout_summary, read.rollout_slug) == ("a\n- b", "?", None)


@pytest.mark.parametrize("text", ['{"a":' * 20_000, '{"' * 60_000, "[" * 100_000 + '{"a": 1}'])
def test_a_text_that_opens_without_end_is_given_up_in_time(text: str):
    with pytest.raises(InvalidReply):
        parse_reply(text)


@given(st.text(max_size=200))
def test_any_other_text_is_an_invalid_reply_or_a_whole_one(text: str):
    try:
        parse_reply(text)
    except InvalidReply:
        pass


@pytest.mark.parametrize(
    ("window", "tokens"), [(None, 150_000), (0, 150_000), (-1, 150_000), (123_000, 81_795), (1, 1), (272_000, 180_880)]
)
def test_the_rollout_gets_its_share_of_the_window(window: int | None, tokens: int):
    """Spec §10.2, 11."""
    assert rollout_token_limit(window, StageOne()) == tokens


@pytest.mark.parametrize(("window", "tokens"), [(4096, 761), (8192, 4038), (16_384, 10_592), (20_000, 13_300)])
def test_a_small_window_holds_our_words_and_the_answer_too(window: int, tokens: int):
    assert rollout_token_limit(window, StageOne(), prompt_tokens=2516) == tokens
