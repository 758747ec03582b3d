"""Choices that the assistant lays out and the user's answers to them; values that are given, and given anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.offline.session import hearing, options
from stillroom.offline.session.turns import turns_of
from stillroom.rollouts.events import Edit, Ran, Said

EN = ("en",)


def edited(before: str, after: str) -> Ran:
    diff = "".join(f"{sign}{line}\n" for sign, line in (("-", before), ("+", after)) if line)
    return Ran(tool="apply_patch", ok=True, edits=(Edit(path="cfg.py", action="update", diff=diff),))


def said(*texts: str) -> list[Said | Ran]:
    """User and assistant in turns; an edit follows each message of the user but the first."""
    events: list[Said | Ran] = []
    for number, text in enumerate(texts):
        events.append(Said(who="assistant" if number % 2 else "user", text=text, final=True))
        if number and number % 2 == 0:
            events.append(edited("", f"step = {number}"))
    return events


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ("B", "Redis streams"),
        ("do 1", ""),
        ("the first one, redis is not backed up", "Postgres with SKIP LOCKED"),
        ("the latter", "Redis streams"),
        ("postgres. one less thing to run", "Postgres with SKIP LOCKED"),
        ("looks cute, redis... but postgres", "Postgres with SKIP LOCKED"),
        ("neither", ""),
    ],
)
def test_an_answer_takes_a_choice_by_label_place_or_name(answer: str, taken: str) -> None:
    choices = [("A", "Postgres with SKIP LOCKED"), ("B", "Redis streams")]
    assert options.picked(choices, answer, EN) == taken


@pytest.mark.parametrize(
    ("language", "sentence", "sides"),
    [
        ("en", "Two ways: keep it in Postgres, or move it to Redis.", ["keep it in Postgres", "move it to Redis"]),
        ("en", "TOML via serde, KDL via kdl, or RON?", ["TOML via serde", "KDL via kdl", "RON"]),
        (
            "de",
            "Entweder 19200 Baud einstellen oder bei 25 Hz bleiben.",
            ["19200 Baud einstellen", "bei 25 Hz bleiben"],
        ),
        ("zh", "要么记最近两个码，要么把宽限期缩到 5 秒。", ["记最近两个码", "把宽限期缩到 5 秒"]),
        ("ja", "Postgresに残すか、Redisに移すか。", ["Postgresに残す", "Redisに移すか"]),
        ("en", "It is done.", []),
    ],
)
def test_an_or_parts_a_sentence_into_choices(language: str, sentence: str, sides: list[str]) -> None:
    assert [text for _, text in options.sides(sentence, (language,))] == sides


@pytest.mark.parametrize(
    ("proposal", "answer", "held"),
    [
        ("Plan: jobs stay in Postgres, workers claim them with SKIP LOCKED. OK?", "yes", "SKIP LOCKED"),
        ("Plan:\n1. Jobs stay in Postgres\n2. Claims with SKIP LOCKED\n\nShall I start?", "yes, go", "SKIP LOCKED"),
        ("I'd recommend the second: A) Postgres, B) Redis streams, since billing has it.", "agreed", "Redis streams"),
        ("It could go up to 30 if it looks rough.", "ok leave it at 20", "20"),
    ],
)
def test_a_yes_takes_what_was_put_forward(proposal: str, answer: str, held: str) -> None:
    wishes = hearing.listen(turns_of(said("20 updates a second, isn't that much?", proposal, answer, "Done."))).wishes
    assert any(held in wish.about + wish.quote for wish in wishes)
    assert not any("30" in wish.about for wish in wishes)


@given(st.lists(st.integers(2, 9_999), min_size=1, max_size=6, unique=True))
def test_of_several_values_for_one_setting_only_the_last_is_held(values: list[int]) -> None:
    events: list[Said | Ran] = [Said(who="user", text="polling is slow"), edited("", "import time")]
    old = "POLL_SECONDS = 1"
    for value in values:
        new = f"POLL_SECONDS = {value}"
        events += [Said(who="user", text=f"poll every {value} seconds"), edited(old, new)]
        old = new
    wishes = hearing.listen(turns_of(events)).wishes
    assert [wish.quote for wish in wishes] == [f"poll every {values[-1]} seconds"]


def test_a_value_that_other_words_replace_is_dropped_and_the_new_one_says_so() -> None:
    events = [
        Said(who="user", text="set up caching"),
        edited("", "import cache"),
        Said(who="user", text="use memcached for it"),
        edited("", "cache = 'memcached'"),
        Said(who="user", text="no wait, ops only runs redis. redis it is"),
        edited("cache = 'memcached'", "cache = 'redis'"),
    ]
    wishes = hearing.listen(turns_of(events)).wishes
    assert not any("memcached" in wish.quote for wish in wishes)
    assert any("redis" in wish.quote for wish in wishes)


def test_what_a_turn_put_in_and_the_next_took_out_is_undone_by_it() -> None:
    events = [
        Said(who="user", text="cache the lookups in redis"),
        edited("", "cache = 'redis'"),
        Said(who="user", text="not worth it, out with it"),
        edited("cache = 'redis'", ""),
    ]
    assert hearing.listen(turns_of(events)).undone == {0: 1}
