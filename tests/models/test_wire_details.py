from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from stillroom.config import Settings, StageOne
from stillroom.errors import ModelRefused, ModelUnavailable
from stillroom.models import StructuredRequest, open_structured
from stillroom.models.attempts import Answered, Failed
from stillroom.models.protocols import read_reply
from stillroom.stopping import Stop
from stillroom.testing import (
    SAMPLE_MEMORY,
    FixedClock,
    ListLedger,
    LoopbackModel,
    RecordedRequest,
    Reply,
    Say,
    Status,
)
from stillroom.testing.script import Hang

REQUEST = StructuredRequest(
    system="s",
    user="u",
    schema={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    schema_name="empty",
    effort="low",
    max_output_tokens=10,
    thread_id=None,
)


def ask(server: LoopbackModel, *, kind: str = "openai-responses", times: int = 1, key: str | None = None) -> ListLedger:
    ledger = ListLedger()
    provider = server.provider(kind)
    environ = {"OPENAI_BASE_URL": server.base_url} | ({"OPENAI_API_KEY": key} if key else {})
    settings = Settings(home=Path("/"), providers={"l": provider}, stage_one=StageOne(retry_pause_seconds=0.001))

    name = "openai-responses:m" if key else "l:m"
    model = open_structured(name, settings, ledger=ledger, clock=FixedClock(0), redact=str, environ=environ)
    try:
        for _ in range(times):
            model.complete(REQUEST, stop=Stop())
    finally:
        model.close()
    return ledger


def test_a_model_that_cannot_be_told_how_hard_to_think_is_asked_without_and_stays_so():
    complaint = Status(status=400, message="Unsupported parameter", param="reasoning.effort")
    with LoopbackModel([complaint, Say(SAMPLE_MEMORY)]) as server:
        ledger = ask(server, times=2)
    assert ["reasoning" in request.json for request in server.requests] == [True, False, False]
    assert [call.outcome for call in ledger.calls] == ["ok", "ok"]


def asked_form(request: RecordedRequest) -> str:
    body = request.json
    form = (body.get("text") or {}).get("format") or body.get("response_format") or {"type": "plain"}
    return form["type"]


def refusing(*forms: str) -> Callable[[RecordedRequest], Reply]:
    def respond(request: RecordedRequest) -> Reply:
        if (form := asked_form(request)) in forms:
            return Status(status=400, message=f"This response_format type is unavailable now: {form}")
        return Say(SAMPLE_MEMORY)

    return respond


@pytest.mark.parametrize("kind", ["openai-responses", "openai-chat"])
@pytest.mark.parametrize(
    ("refused", "asked"),
    [
        (("json_schema",), ["json_schema", "json_object", "json_object"]),
        (("json_schema", "json_object"), ["json_schema", "json_object", "plain", "plain"]),
    ],
)
def test_a_server_without_schemas_is_asked_for_less_and_stays_so(kind: str, refused: tuple[str, ...], asked: list[str]):
    with LoopbackModel(refusing(*refused)) as server:
        ledger = ask(server, kind=kind, times=2)
    assert [asked_form(request) for request in server.requests] == asked
    assert [call.outcome for call in ledger.calls] == ["ok", "ok"]
    told = [b"Answer with one JSON object of this schema" in request.body for request in server.requests]
    assert told == [form != "json_schema" for form in asked]


def test_a_server_that_takes_no_form_is_said_to_and_is_asked_strictly_the_next_time():
    with LoopbackModel(refusing("json_schema", "json_object", "plain")) as server:
        for _ in range(2):
            with pytest.raises(ModelRefused, match=r"tried: json_schema, json_object, plain"):
                ask(server)
    assert [asked_form(request) for request in server.requests] == ["json_schema", "json_object", "plain"] * 2


def test_what_is_said_on_the_way_to_an_answer_is_none_of_it():
    def message(phase: str, text: str) -> dict[str, object]:
        part = {"type": "output_text", "text": text, "annotations": []}
        return {"type": "message", "id": "m", "status": "completed", "phase": phase, "content": [part]}

    output = [message("commentary", "I will now write it."), message("final_answer", "{}")]
    read = read_reply(msgspec.json.encode({"status": "completed", "output": output}), kind="openai-responses")
    assert isinstance(read, Answered) and read.text == "{}"
    read = read_reply(msgspec.json.encode({"status": "completed", "output": output[:1]}), kind="openai-responses")
    assert isinstance(read, Answered) and read.text == "I will now write it."


def test_an_answer_in_parts_is_joined():
    parts = [{"type": "text", "text": "{"}, {"type": "text", "text": "}"}]
    read = read_reply(msgspec.json.encode({"choices": [{"message": {"content": parts}}]}), kind="openai-chat")
    assert isinstance(read, Answered) and read.text == "{}"


def test_the_key_goes_into_the_header_and_nowhere_else():
    with LoopbackModel() as server:
        ask(server, key="sk-test")
    request = server.requests[0]
    assert request.headers["authorization"] == "Bearer sk-test"
    assert b"sk-test" not in request.body


def test_without_a_key_no_authorization_is_sent():
    with LoopbackModel() as server:
        ask(server)
    assert "authorization" not in server.requests[0].headers


def test_the_schema_that_a_strict_api_refuses_is_refused_by_the_loopback_too():
    from stillroom.testing.strict import schema_fault

    assert schema_fault(REQUEST.schema) is None
    assert schema_fault({"type": "object", "properties": {"a": {"type": "string"}}, "required": []}) is not None
    assert schema_fault({"type": "object", "properties": {}, "additionalProperties": False}) is None
    open_child = {"type": "object", "properties": {"b": {}}, "required": ["b"], "additionalProperties": False}
    assert schema_fault(open_child) == "schema.b has no type"


def test_a_reply_that_is_none_is_shown_by_how_it_begins():
    page = b"<!doctype html>\n<title>Sign in</title>\xff" + b"x" * 10_000
    failed = read_reply(page, kind="openai-chat")
    assert isinstance(failed, Failed)
    assert "it begins `<!doctype html> <title>Sign in</title>" in str(failed.error)
    assert len(str(failed.error)) < 300


@pytest.mark.parametrize("told", [False, True])
def test_a_slow_server_on_this_machine_has_a_time_of_its_own_and_is_not_asked_again(told: bool):
    seconds = 0.02
    stage = StageOne(request_timeout_seconds=60, local_timeout_seconds=60 if told else seconds)
    with LoopbackModel(Hang()) as server:
        provider = msgspec.structs.replace(server.provider(), timeout_seconds=seconds if told else None)
        settings, ledger = Settings(home=Path("/"), providers={"l": provider}, stage_one=stage), ListLedger()
        model = open_structured("l:m", settings, ledger=ledger, clock=FixedClock(0), redact=str)
        with pytest.raises(ModelUnavailable, match=r"no complete reply within 0\.02 s"):
            model.complete(REQUEST, stop=Stop())
        model.close()
    assert [call.outcome for call in ledger.calls] == ["unavailable"]
