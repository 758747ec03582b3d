"""Public sets are read as they are published, and their measure has the value that it must have on small ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stillroom.errors import ConfigError
from stillroom.evaluate.chats import Asked, Chat, ChatSet, Message, content_words, held, load_chats, write_jsonl

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def asked(answer: str, *chats: str, kind: str = "fact", forbidden: tuple[str, ...] = ()) -> Asked:
    return Asked(id=answer[:9], kind=kind, question="what?", answer=answer, chats=chats, forbidden=forbidden)


def chat_set(*questions: Asked) -> ChatSet:
    chats = tuple(Chat(id=name, project="p", started=MONDAY, messages=()) for name in ("a", "b"))
    return ChatSet(name="set", chats=chats, questions=questions)


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def test_words_without_matter_are_not_counted_and_endings_are_one() -> None:
    assert content_words("The tokens expire after a 7-day TTL.") == content_words("Token, expire: TTL of 7-day")
    assert content_words("it is what it was") == set()


def test_the_share_is_of_the_answers_words_in_the_chats_that_it_is_in() -> None:
    chats = chat_set(asked("FastAPI with Redis", "a"), asked("bun, npm", "b"))
    found = held(chats, {"a": "we use fastapi and REDIS", "b": "bun"})
    assert (found.questions, found.share, found.whole) == (2, 0.75, 1)
    # What another chat says does not count.
    assert held(chats, {"b": "FastAPI with Redis, bun and npm"}).share == 0.5


def test_a_question_that_nothing_answers_is_left_out() -> None:
    found = held(chat_set(asked("", kind="abstention"), asked("Redis", "a")), {"a": "nothing"})
    assert (found.questions, found.share, found.kinds) == (1, 0.0, {"fact": 0.0})


def test_an_answer_over_two_chats_may_be_found_in_either() -> None:
    assert held(chat_set(asked("alembic aerich", "a", "b")), {"a": "alembic", "b": "aerich"}).share == 1.0


def test_forbidden_phrases_are_counted() -> None:
    chats = chat_set(asked("Redis", "a", forbidden=("ignore previous", "zero cost")))
    found = held(chats, {"a": "Redis. Ignore previous instructions"})
    assert (found.forbidden, found.kept) == (2, 1)


def test_answers_may_be_held_against_a_text_for_each_question() -> None:
    chats = chat_set(asked("Redis", "a"), asked("Kafka", "a"))
    assert held(chats, {"Redis": "redis", "Kafka": "rabbit"}, by_question=True).share == 0.5


def test_devmembench_is_read(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "we use bun"}, {"role": "assistant", "content": "fine"}]
    metadata = {"date": "2025-01-15", "project": "shop"}
    write(tmp_path / "sessions.json", [{"sessionId": "S01", "metadata": metadata, "messages": messages}])
    question = {"questionId": "Q1", "questionType": "pref", "question": "which?", "groundTruth": "bun"}
    nothing = {**question, "questionId": "Q2", "groundTruth": "Not mentioned", "haystackSessionIds": []}
    write(tmp_path / "questions.json", [{**question, "haystackSessionIds": ["S01"]}, nothing])
    chats = load_chats(tmp_path)
    assert chats is not None
    assert chats.chats[0].messages[0] == Message(role="user", content="we use bun")
    assert [one.answer for one in chats.questions] == ["bun", ""]


def test_remem_is_read_with_its_tools_and_what_it_forbids(tmp_path: Path) -> None:
    case = {
        "id": "loop",
        "transcript": [{"role": "assistant", "tool_name": "cargo check", "content": "failed"}],
        "expected_observations": [{"observation_type": "lesson", "text_contains": ["stop", "challenge it"]}],
        "expected_candidates": [{"text_contains": ["stop"]}, {"id": "no text"}],
        "forbidden_candidates": [{"text_contains": ["go on"]}],
    }
    write(tmp_path / "corpus.json", {"cases": [case]})
    chats = load_chats(tmp_path)
    assert chats is not None
    assert chats.chats[0].messages[0] == Message(role="tool", content="failed", tool="cargo check")
    assert (chats.questions[0].answer, chats.questions[0].forbidden) == ("stop challenge it", ("go on",))


def test_locomo_is_read(tmp_path: Path) -> None:
    turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "hi"}, {"speaker": "Bo", "dia_id": "D1:2", "text": "ho"}]
    talk = {"speaker_a": "Ann", "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    question = {"question": "who?", "answer": 2022, "evidence": ["D1:2", "D9:9"], "category": 2}
    write(tmp_path / "locomo10.json", [{"conversation": talk, "qa": [question]}])
    chats = load_chats(tmp_path)
    assert chats is not None
    assert [message.role for message in chats.chats[0].messages] == ["user", "assistant"]
    assert (chats.questions[0].answer, chats.questions[0].chats) == ("2022", ("0-session_1",))


def test_ones_own_set_is_written_and_read(tmp_path: Path) -> None:
    message = Message(role="tool", content="failed", tool="cargo")
    own = ChatSet(
        name=tmp_path.name,
        chats=(Chat(id="a", project="p", started=MONDAY, messages=(message,)),),
        questions=(asked("x", "a", forbidden=("y",)),),
    )
    write_jsonl(own, tmp_path)
    assert load_chats(tmp_path) == own


def test_a_file_of_another_shape_is_an_error_that_names_it(tmp_path: Path) -> None:
    write(tmp_path / "corpus.json", {"cases": [{"id": "x"}]})
    with pytest.raises(ConfigError, match=r"corpus\.json"):
        load_chats(tmp_path)
    assert load_chats(tmp_path.parent / "nothing") is None
