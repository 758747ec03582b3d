"""The same talk in several files, of formats whose files name no session: it is distilled once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from extract_home import NOW_MS, Home

from stillroom.cli.rulings import why
from stillroom.config import Source
from stillroom.extract.outcome import Skipped, WithOutput
from stillroom.extract.reading import count_thread
from stillroom.sessions.dedup import chain_of
from stillroom.sessions.readers import open_thread
from stillroom.store import Question
from stillroom.thread import Rest

TALK = [
    ("user", "Always run the tests with `make check`, never with plain pytest."),
    ("assistant", "I will."),
]
MORE = [("user", "Always write the changelog in English, never in German."), ("assistant", "Noted.")]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path, model="offline")
    yield made
    made.store.close()


def put(home: Home, name: str, value: Any, *, hours_ago: int, format: str = "chat-messages") -> str:
    """A file of its own under the sources; returns its path, which is the thread's."""
    path = home.settings.home.parent / "talks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    at = NOW_MS / 1000 - hours_ago * 3600
    os.utime(path, (at, at))
    sources = (*home.settings.sources, Source(format=format, root=str(path)))
    home.settings = type(home.settings)(
        home=home.settings.home, memories=home.settings.memories, stage_one=home.settings.stage_one, sources=sources
    )
    return str(path)


def chat(said: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in said]


def langchain(said: list[tuple[str, str]]) -> list[dict[str, Any]]:
    kinds = {"user": "human", "assistant": "ai"}
    return [{"type": kinds[role], "data": {"type": kinds[role], "content": text}} for role, text in said]


def pydantic_ai(said: list[tuple[str, str]]) -> list[dict[str, Any]]:
    kinds = {"user": ("request", "user-prompt"), "assistant": ("response", "text")}
    return [{"kind": kinds[role][0], "parts": [{"part_kind": kinds[role][1], "content": text}]} for role, text in said]


def ends(home: Home) -> dict[str, object]:
    """How each file's thread ended in a pass, and the one that it left its words to."""
    report = home.run()
    threads = {each.thread_id: each for each in home.store.threads.newest(limit=99)}
    return {Path(threads[each.thread_id].rollout_path).name: each for each in report.outcomes}


def told(home: Home, name: str) -> str:
    question = Question(memories=home.settings.memories, stage=home.settings.stage_one, now_ms=NOW_MS)
    (found,) = [each for each in home.store.standings.of_all(question) if each.thread.rollout_path.endswith(name)]
    assert found.decided is not None
    return f"{found.state}: {why(found.decided)}"


def memories(home: Home) -> str:
    return "\n".join(each.raw_memory for each in home.store.outputs.latest())


def test_one_talk_in_three_formats_is_distilled_once_and_the_others_say_where(home: Home) -> None:
    put(home, "a.json", chat(TALK), hours_ago=3)
    put(home, "b.json", langchain(TALK), hours_ago=4, format="langchain")
    put(home, "c.json", pydantic_ai(TALK), hours_ago=5, format="pydantic-ai")
    outcomes = ends(home)
    (first,) = [each.thread_id for each in outcomes.values() if isinstance(each, WithOutput)]
    assert {each.thread_id for each in home.store.outputs.latest()} == {first}
    names = [name for name, each in outcomes.items() if isinstance(each, Skipped)]
    assert len(names) == 2
    assert {told(home, name) for name in names} == {f"no_output: word for word what `{first}` says, and left to it"}
    assert home.run().outcomes == ()


ASKED = ('the user said: "Always run', 'the user said: "Always write')


def test_a_talk_that_goes_on_in_another_file_is_distilled_for_what_is_new(home: Home) -> None:
    put(home, "short.json", chat(TALK), hours_ago=3)
    home.run()
    put(home, "long.json", chat(TALK + MORE), hours_ago=2)
    outcomes = ends(home)
    assert isinstance(outcomes["long.json"], WithOutput)
    assert outcomes["long.json"].read.messages == 2
    assert "extracted up to its last activity, from where it leaves `chat-" in told(home, "long.json")
    assert [memories(home).count(words) for words in ASKED] == [1, 1]
    assert len(home.store.outputs.latest()) == 2


def test_the_beginning_of_a_talk_that_is_known_is_not_distilled(home: Home) -> None:
    put(home, "long.json", chat(TALK + MORE), hours_ago=2)
    home.run()
    put(home, "short.json", chat(TALK), hours_ago=3)
    assert isinstance(ends(home)["short.json"], Skipped)
    assert [memories(home).count(words) for words in ASKED] == [1, 1]


def test_talks_of_one_pass_share_the_work_in_whatever_order_they_come(home: Home) -> None:
    put(home, "long.json", chat(TALK + MORE), hours_ago=3)
    put(home, "short.json", chat(TALK), hours_ago=2)
    put(home, "again.json", chat(TALK), hours_ago=4)
    home.run()
    assert [memories(home).count(words) for words in ASKED] == [1, 1]


def test_traces_of_the_turns_of_one_talk_are_distilled_for_a_turn_each(home: Home) -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    def span(number: int, said: list[tuple[str, str]]) -> dict[str, Any]:
        asked, (_, answer) = [message(*each) for each in said[:-1]], said[-1]
        return {
            "name": "chat m",
            "context": {"trace_id": f"0x{number:032x}", "span_id": f"0x{number:016x}"},
            "parent_id": None,
            "start_time": f"2026-05-01T12:0{number}:00.000000Z",
            "end_time": f"2026-05-01T12:0{number}:30.000000Z",
            "attributes": {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": json.dumps(asked),
                "gen_ai.output.messages": json.dumps([message("assistant", answer)]),
            },
        }

    put(home, "spans.json", [span(1, TALK), span(2, TALK + MORE)], hours_ago=3, format="otel-genai")
    home.settings = msgspec.structs.replace(
        home.settings, memories=msgspec.structs.replace(home.settings.memories, max_rollout_age_days=99)
    )
    assert len(home.run().outcomes) == 2
    assert [memories(home).count(words) for words in ASKED] == [1, 1]


def test_talks_that_only_begin_alike_are_distilled_both(home: Home) -> None:
    put(home, "a.json", chat(TALK + MORE), hours_ago=3)
    put(home, "b.json", chat([*TALK, ("user", "Always use tabs in makefiles.")]), hours_ago=4)
    assert {type(each) for each in ends(home).values()} == {WithOutput}
    assert "from where" not in told(home, "a.json") + told(home, "b.json")


def test_what_was_left_to_a_session_that_fails_is_extracted_after_all(home: Home) -> None:
    put(home, "a.json", chat(TALK), hours_ago=3)
    home.register()
    (claim,) = home.store.extraction.claim(
        worker_id="w",
        current_thread_id=None,
        memories=home.settings.memories,
        stage=home.settings.stage_one,
        max_claims=1,
    )
    thread = home.store.threads.get(claim.thread_id)
    assert thread is not None
    with open_thread(thread, max_line_bytes=1 << 20) as items:
        chain = chain_of(items, max_items=100)
    assert chain is not None and len(chain) == 16
    assert home.store.extraction.settle_contents(claim.thread_id, chain) is None
    put(home, "b.json", chat(TALK), hours_ago=4)
    assert isinstance(ends(home)["b.json"], Skipped)
    assert home.store.extraction.fail(claim, reason="disk on fire", retry_delay_seconds=3600)
    assert isinstance(ends(home)["b.json"], WithOutput)
    home.clock.advance(seconds=7200)
    assert isinstance(ends(home)["a.json"], Skipped), "its turn comes, and the other has told all"
    assert memories(home).count("make check") > 0


def test_two_sessions_never_leave_their_words_to_each_other(home: Home) -> None:
    """A short one was told first, the long one rests on it; then the short one grows into the long one."""
    short = put(home, "short.json", chat(TALK), hours_ago=5)
    home.run()
    put(home, "long.json", chat(TALK + MORE), hours_ago=4)
    home.run()
    Path(short).write_text(json.dumps(chat(TALK + MORE)), encoding="utf-8")
    os.utime(short, (NOW_MS / 1000 - 7200, NOW_MS / 1000 - 7200))
    outcomes = ends(home)
    assert isinstance(outcomes["short.json"], WithOutput)
    assert "make check" in memories(home)


def test_what_was_left_to_a_file_that_holds_another_talk_now_is_extracted_after_all(home: Home) -> None:
    last = put(home, "last.json", chat(TALK), hours_ago=5)
    home.run()
    put(home, "saved.json", chat(TALK), hours_ago=4)
    assert isinstance(ends(home)["saved.json"], Skipped)
    Path(last).write_text(json.dumps(chat(MORE)), encoding="utf-8")
    os.utime(last, (NOW_MS / 1000 - 7200, NOW_MS / 1000 - 7200))
    outcomes = ends(home) | ends(home)
    assert {name: type(each) for name, each in outcomes.items()} == {"last.json": WithOutput, "saved.json": WithOutput}
    assert [memories(home).count(words) for words in ASKED] == [1, 1]


def test_the_rest_of_a_session_is_the_same_in_either_way_of_reading(home: Home) -> None:
    put(home, "a.json", chat(TALK + MORE), hours_ago=3)
    home.register()
    (thread,) = home.store.threads.newest(limit=9)
    for passed in range(6):
        rest = Rest(**{name: getattr(thread, name) for name in thread.__struct_fields__}, told_items=passed)
        with open_thread(rest, max_line_bytes=1 << 20) as items:
            raw = [item.raw for item in items]
        with open_thread(rest, max_line_bytes=1 << 20) as texts:
            assert b",".join(texts.texts()) == b",".join(raw)
        assert len(raw) == items.stats.kept == items.stats.messages == texts.stats.kept == max(4 - passed, 0)
        assert count_thread(rest, stage=home.settings.stage_one).messages == len(raw)


def test_a_forgotten_session_leaves_no_name_behind(home: Home) -> None:
    put(home, "a.json", chat(TALK), hours_ago=3)
    put(home, "b.json", chat(TALK), hours_ago=4)
    home.run()
    (output,) = home.store.outputs.latest()
    extracted = home.store.threads.get(output.thread_id)
    assert extracted is not None
    home.store.forgetting.forget([extracted], str, may_change=lambda text: False)
    (left,) = home.store.threads.newest(limit=9)
    name = Path(left.rollout_path).name
    assert told(home, name) == "no_output: extracted up to its last activity"
