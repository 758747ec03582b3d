from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from golden import DATA, LIMIT, describe, placeless, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.sessions.agents import otel as reader
from stillroom.sessions.discovery import Found, Unchanged
from stillroom.sessions.events import Said, read_events

SAMPLE = DATA / "otel-genai" / "pydantic-ai-v5"
Span = dict[str, object]


def span(
    number: int,
    *,
    of: str = "c",
    under: int | None = None,
    operation: str = "chat",
    events: object = (),
    **told: object,
) -> Span:
    """As the SDK's `to_json` has it; `gen_ai_x` stands for `gen_ai.x`."""
    attributes = {name.replace("__", "."): value for name, value in told.items()}
    return {
        "name": operation,
        "context": {"trace_id": "0xaa", "span_id": f"0x{number}"},
        "parent_id": f"0x{under}" if under else None,
        "start_time": f"2026-11-29T12:32:{number:02}.000000Z",
        "end_time": f"2026-11-29T12:32:{number:02}.500000Z",
        "attributes": {"gen_ai.operation.name": operation, "gen_ai.conversation.id": of, **attributes},
        "events": events,
    }


def talk(*texts: str) -> str:
    """The user and the assistant in turns."""
    roles = ("user", "assistant")
    return json.dumps(
        [{"role": roles[at % 2], "parts": [{"type": "text", "content": text}]} for at, text in enumerate(texts)]
    )


def chat(number: int, *texts: str, **fields: object) -> Span:
    messages = {"gen_ai__input__messages": talk(*texts[:-1])}
    messages["gen_ai__output__messages"] = json.dumps(json.loads(talk("x", texts[-1]))[1:])
    return span(number, **{**messages, **fields})  # type: ignore[arg-type]


def put(folder: Path, *lines: object, name: str = "spans.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def one(path: Path, name: str = "c") -> Path:
    return path.with_name(f"{path.name}#{name}")


def look(root: Path) -> dict[str, Found]:
    found = [each for each in reader.discover(root, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    return {each.thread.rollout_path.rpartition("#")[2]: each for each in found}


def otlp(*spans: Span) -> dict[str, object]:
    """The same spans in the other envelope."""

    def value(told: object) -> dict[str, object]:
        if isinstance(told, list):
            return {"arrayValue": {"values": [value(each) for each in told]}}
        if isinstance(told, dict):
            return {"kvlistValue": {"values": pairs(told)}}
        return {"intValue": str(told)} if isinstance(told, int) else {"stringValue": told}

    def pairs(told: dict[str, object]) -> list[dict[str, object]]:
        return [{"key": key, "value": value(each)} for key, each in told.items()]

    rows = [
        {
            "traceId": "aa",
            "spanId": each["context"]["span_id"],  # type: ignore[index]
            "parentSpanId": each["parent_id"] or "",
            "startTimeUnixNano": "1795955574000000000",
            "endTimeUnixNano": "1795955575000000000",
            "attributes": pairs(each["attributes"]),  # type: ignore[arg-type]
            "events": [{"name": e["name"], "attributes": pairs(e["attributes"])} for e in each["events"]],  # type: ignore[attr-defined]
        }
        for each in spans
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": rows}]}]}


def test_a_conversation_is_read_as_expected_and_is_not_new_the_second_time():
    """Real spans; after a change on purpose write `describe` anew and read the difference."""
    assert placeless(describe(reader, SAMPLE)) == (SAMPLE / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLE) == {Unchanged}


def test_of_each_conversation_the_span_with_the_longest_input_is_read(tmp_path: Path):
    lines = [
        chat(1, "A.", "One."),
        chat(2, "B.", "Two.", of="d"),
        {"name": "GET /", "attributes": {"http.method": "GET"}},
        chat(3, "A.", "One.", "And?", "Three."),
        chat(4, "Sum it up.", "Short.", of="c"),
    ]
    path = put(tmp_path, *lines)
    assert {name: each.thread.preview for name, each in look(tmp_path).items()} == {"c": "A.", "d": "B."}
    assert [text for _, text in read(reader, one(path))[0]] == ["A.", "One.", "And?", "Three."]
    assert [text for _, text in read(reader, one(path, "d"))[0]] == ["B.", "Two."]
    assert look(path)["c"].thread.updated_at_ms - look(path)["c"].thread.created_at_ms == 3500
    put(tmp_path, *lines, chat(5, "A.", "One.", "And?", "Three.", "More?", "Four."))
    assert [text for _, text in read(reader, one(path))[0]][-1] == "Four."


def test_both_envelopes_and_documents_of_them_say_the_same(tmp_path: Path):
    spans = [chat(1, "A.", "One."), chat(2, "B.", "Two.", of="d"), chat(3, "A.", "One.", "And?", "Three.")]
    lines = put(tmp_path, otlp(*spans[:2]), otlp(spans[2]), name="lines.jsonl")
    document = tmp_path / "document.json"
    document.write_text(json.dumps(otlp(*spans), indent=2), encoding="utf-8")
    plain = tmp_path / "list.json"
    plain.write_text(json.dumps(spans, indent=1), encoding="utf-8")
    for path in (lines, document, plain):
        assert [text for _, text in read(reader, one(path))[0]] == ["A.", "One.", "And?", "Three."]
        assert [text for _, text in read(reader, one(path, "d"))[0]] == ["B.", "Two."]


def test_an_agent_that_a_tool_called_is_a_sub_agent(tmp_path: Path):
    path = put(
        tmp_path,
        chat(4, "Look for it.", "Found.", of="inner", under=3),
        span(3, of="inner", under=2, operation="invoke_agent", gen_ai__agent__name="finder"),
        span(2, operation="execute_tool", under=1),
        chat(5, "Fix it.", "Fixed.", under=1),
        span(1, operation="invoke_agent", gen_ai__agent__name="coder"),
    )
    found = look(path)
    inner, outer = found["inner"].thread, found["c"].thread
    assert (inner.parent_thread_id, inner.source, inner.preview) == (outer.thread_id, '{"subagent":"finder"}', "")
    assert (outer.parent_thread_id, outer.source, outer.title) == (None, "cli", "coder")
    assert read(reader, one(path, "inner"))[0] == [("agent", "Look for it."), ("assistant", "Found.")]


def _event(name: str, **told: object) -> dict[str, object]:
    return {"name": name, "attributes": told}


CALLS = [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"x"}'}}]
OLD_STYLES: dict[str, dict[str, object]] = {
    "openllmetry": {
        "gen_ai__prompt__0__role": "system",
        "gen_ai__prompt__0__content": "Be brief.",
        "gen_ai__prompt__1__role": "user",
        "gen_ai__prompt__1__content": "Run it.",
        "gen_ai__prompt__2__role": "assistant",
        "gen_ai__prompt__2__tool_calls__0__id": "c1",
        "gen_ai__prompt__2__tool_calls__0__name": "bash",
        "gen_ai__prompt__2__tool_calls__0__arguments": '{"command":"x"}',
        "gen_ai__prompt__10__role": "tool",
        "gen_ai__prompt__10__tool_call_id": "c1",
        "gen_ai__prompt__10__content": "out",
        "gen_ai__completion__0__role": "assistant",
        "gen_ai__completion__0__content": "Done.",
    },
    "openinference": {
        "llm__input_messages__0__message__role": "user",
        "llm__input_messages__0__message__contents__0__message_content__type": "text",
        "llm__input_messages__0__message__contents__0__message_content__text": "Run it.",
        "llm__input_messages__1__message__role": "assistant",
        "llm__input_messages__1__message__tool_calls__0__tool_call__id": "c1",
        "llm__input_messages__1__message__tool_calls__0__tool_call__function__name": "bash",
        "llm__input_messages__1__message__tool_calls__0__tool_call__function__arguments": '{"command":"x"}',
        "llm__input_messages__2__message__role": "tool",
        "llm__input_messages__2__message__tool_call_id": "c1",
        "llm__input_messages__2__message__content": "out",
        "llm__output_messages__0__message__role": "assistant",
        "llm__output_messages__0__message__content": "Done.",
    },
    "events": {
        "events": [
            _event("gen_ai.system.message", content="Be brief."),
            _event("gen_ai.user.message", content="Run it."),
            _event("gen_ai.assistant.message", tool_calls=json.dumps(CALLS)),
            _event("gen_ai.tool.message", id="c1", content="out"),
            _event("gen_ai.choice", message=json.dumps({"role": "assistant", "content": "Done."})),
        ]
    },
    "event of the details": {
        "events": [
            _event(
                "gen_ai.client.inference.operation.details",
                **{
                    "gen_ai.input.messages": [
                        {"role": "user", "parts": [{"type": "text", "content": "Run it."}]},
                        {
                            "role": "assistant",
                            "parts": [{"type": "tool_call", "id": "c1", "name": "bash", "arguments": {"command": "x"}}],
                        },
                        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "out"}]},
                    ],
                    "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}],
                },
            )
        ]
    },
}


@pytest.mark.parametrize("style", OLD_STYLES)
@pytest.mark.parametrize("envelope", [lambda each: each, otlp])
def test_older_styles_say_the_same(tmp_path: Path, style: str, envelope):
    path = put(tmp_path, envelope(span(1, **OLD_STYLES[style])))  # type: ignore[arg-type]
    said, ran, stats = read(reader, one(path))
    assert said == [("user", "Run it."), ("assistant", "Done.")]
    assert [(run.tool, run.command, run.output) for run in ran] == [("bash", "x", "out")]
    assert stats.unknown == {}
    assert look(path)["c"].thread.preview == "Run it."


def test_what_no_person_said_is_no_users_word(tmp_path: Path):
    parts = [
        {"type": "text", "content": "<system-reminder>\nx\n</system-reminder>What?"},
        {"type": "blob", "modality": "image", "content": "AAAA"},
        {"type": "odd"},
        {"type": "tool_call_response", "id": "c1", "result": {"returncode": 3}},
    ]
    messages = [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": parts},
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "A cat."}]},
        {"role": "narrator", "parts": []},
    ]
    said, ran, stats = read(reader, one(put(tmp_path, span(1, gen_ai__input__messages=json.dumps(messages)))))
    assert said == [("user", "What?"), ("assistant", "A cat.")]
    assert [run.exit_code for run in ran] == [3]
    assert (stats.images, stats.dropped) == (1, {"instructions": 1})
    assert stats.unknown == {"part/odd": 1, "message/narrator": 1}


@pytest.mark.parametrize("envelope", [lambda each: each, otlp])
def test_a_span_of_any_length_is_read_at_constant_memory(tmp_path: Path, envelope):
    texts = ['Fix é\n"it" \\ 😀.', "x" * 300_000, "And 😀?" * 1000, "Done."]
    path = put(tmp_path, envelope(chat(1, "Fix", "…")), envelope(chat(2, *texts)), envelope(chat(3, "A.", "B.")))
    for reading in (Reading(), Reading(chunk_bytes=700, batch_bytes=4096)):
        with reader.open_items(one(path), max_line_bytes=64 * 1024, reading=reading) as items:
            said = [event for event in read_events(items, max_output_chars=10_000) if isinstance(event, Said)]
        assert [event.text for event in said if event.who == "user"] == [texts[0], texts[2]]
        assert [event.who for event in said] == ["user", "assistant", "user", "assistant"]
        assert items.stats.long_lines == 1
    (found,) = reader.discover(put(tmp_path, chat(2, *texts)), {}, max_line_bytes=64 * 1024)
    assert isinstance(found, Found)
    assert found.thread.preview.startswith("Fix é")


def test_a_file_without_messages_is_told(tmp_path: Path):
    for name, text in {"a.json": "{}", "b.json": "[]", "c.jsonl": '{"name": "x"}\n', "d.jsonl": "no\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for file in tmp_path.iterdir():
        assert [type(each).__name__ for each in reader.discover(file, {}, max_line_bytes=LIMIT)] == ["Broken"]
    # Among others in a folder it is another program's file.
    assert list(reader.discover(tmp_path, {}, max_line_bytes=LIMIT)) == []
    with pytest.raises(RolloutError):
        read(reader, one(tmp_path / "a.json"))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 70) | st.just("9" * 5000) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["key", "value", "stringValue", "parts", "role", "content"]), inner)
    ),
    max_leaves=8,
)
_NAMES = (
    "gen_ai.input.messages",
    "gen_ai.conversation.id",
    "gen_ai.prompt.0.role",
    "gen_ai.prompt.0.role.x",
    "events",
    f"llm.input_messages.{'0' * 5000}.x",
)
_LINES = st.fixed_dictionaries(
    {"attributes": st.dictionaries(st.sampled_from(_NAMES), _JSON) | _JSON},
    optional=dict.fromkeys(("context", "events", "resourceSpans", "startTimeUnixNano", "parent_id", "traceId"), _JSON),
)


_DEEP = b'\n{"attributes":{"gen_ai.input.messages":' + b"[" * 400 + b'"x"' + b"]" * 400 + b',"session.id":"deep"}}\n'


@pytest.mark.slow
@given(lines=st.lists(_LINES | _JSON, max_size=5), cut=st.integers(0, 300))
def test_nothing_in_a_file_raises_or_costs_another_line(tmp_path_factory, lines: list[object], cut: int):
    path = put(
        tmp_path_factory.mktemp("any"), chat(1, "A.", "One.", of="kept"), *lines, chat(2, "B.", "Two.", of="cut")
    )
    path.write_bytes(path.read_bytes()[: -cut or None] + _DEEP)
    found = look(path)
    assert read(reader, one(path, "kept"))[0] == [("user", "A."), ("assistant", "One.")]
    for each in found.values():
        with suppress(EmptyRollout):  # what should be messages is something else
            read(reader, Path(each.thread.rollout_path))
