"""Every `StructuredModel` keeps the same promises: over the wire, and through the real SDKs by Pydantic AI."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from stillroom.config import Settings, StageOne
from stillroom.errors import (
    AccessRefused,
    ContextTooLong,
    InvalidReply,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from stillroom.models import RateLimitSink, StructuredModel, StructuredRequest, open_structured
from stillroom.models.attempts import Recorder
from stillroom.models.names import resolve
from stillroom.stopping import Stop, Stopped
from stillroom.testing import (
    SAMPLE_MEMORY,
    CutOff,
    FixedClock,
    Hang,
    ListLedger,
    LoopbackModel,
    NeverEnd,
    RecordedRequest,
    Refuse,
    Reply,
    Say,
    SendBytes,
    Slowly,
    Status,
    StopShort,
)
from stillroom.testing.loopback import Script

SCHEMA = {
    "type": "object",
    "properties": {"raw_memory": {"type": "string"}, "slug": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "required": ["raw_memory", "slug"],
    "additionalProperties": False,
}
REQUEST = StructuredRequest(
    system="Answer in JSON.",
    user="What is worth keeping?",
    schema=SCHEMA,
    schema_name="memory",
    effort="low",
    max_output_tokens=500,
    thread_id="thread-1",
)
#: Pauses that a test can wait for.
STAGE = StageOne(retry_pause_seconds=0.001, max_retry_pause_seconds=0.01, request_timeout_seconds=20)


class Setup:
    """A server, a model that speaks to it, and what it recorded."""

    def __init__(
        self, server: LoopbackModel, model: StructuredModel, ledger: ListLedger, limits: RateLimitSink
    ) -> None:
        self.server, self.model, self.ledger, self.limits = server, model, ledger, limits

    def ask(self, *, times: int = 1, request: StructuredRequest = REQUEST) -> list[str]:
        def complete(_: int) -> str:
            return self.model.complete(request, stop=Stop()).text

        try:
            with ThreadPoolExecutor(times) as pool:
                return list(pool.map(complete, range(times)))
        finally:
            self.model.close()

    def fail(self) -> ModelError:
        with pytest.raises(ModelError) as caught:
            self.ask()
        return caught.value

    @property
    def outcomes(self) -> list[str]:
        return [call.outcome for call in self.ledger.calls]


Open = Callable[..., "Iterator[Setup]"]
WIRE = ("wire-responses", "wire-chat")
#: Importing an SDK takes seconds: `make slow` tries them.
SDK = [pytest.param(name, marks=pytest.mark.slow) for name in ("sdk-responses", "sdk-chat", "sdk-anthropic")]


@pytest.fixture(params=[*WIRE, *SDK])
def opening(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    via, _, dialect = request.param.partition("-")

    @contextmanager
    def open_setup(script: Script, *, stage: StageOne = STAGE, headers: dict[str, str] | None = None):
        with LoopbackModel(script, headers=headers) as server:
            ledger, clock, limits = ListLedger(), FixedClock(1_000_000), RateLimitSink()
            kind = "openai-chat" if dialect == "chat" else "openai-responses"
            settings = Settings(home=tmp_path, stage_one=stage, providers={"loopback": server.provider(kind)})
            name = "loopback:gpt-5.6-luna"
            if dialect == "anthropic":
                monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url.removesuffix("/v1"))
                monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
                name = "anthropic:claude-haiku-4-5"
            if via == "wire" or dialect == "anthropic":
                model = open_structured(name, settings, ledger=ledger, clock=clock, redact=_redact, rate_limits=limits)
            else:
                from stillroom.models.pydantic import PydanticModel, open_pydantic  # takes seconds

                opened = open_pydantic(resolve(name, settings, {}), settings, rate_limits=limits, clock=clock)
                recorder = Recorder(ledger=ledger, clock=clock, model=name, phase="extract", redact=_redact)
                model = PydanticModel(opened, name=name, recorder=recorder, stage=stage)
            yield Setup(server, model, ledger, limits)

    open_setup.dialect = dialect  # type: ignore[attr-defined]
    return open_setup


def _redact(text: str) -> str:
    return text.replace("sk-secret", "[REDACTED_SECRET]")


def test_the_answer_comes_back_as_text_and_its_tokens_are_recorded(opening):
    with opening(Say(SAMPLE_MEMORY)) as setup:
        assert [msgspec.json.decode(text) for text in setup.ask()] == [dict(SAMPLE_MEMORY)]
    call = setup.ledger.calls[0]
    assert (call.outcome, call.phase, call.thread_id, call.at, call.error) == ("ok", "extract", "thread-1", 1000, None)
    assert call.usage.input_tokens > 20
    assert call.usage.output_tokens > 20
    assert call.usage.cached_input_tokens == 8


def test_what_is_sent_has_the_strict_schema_the_limits_and_no_tools(opening):
    with opening(Say(SAMPLE_MEMORY)) as setup:
        setup.ask()
    body = setup.server.requests[0].json
    assert not body.get("tools")
    assert setup.server.requests[0].user_text == REQUEST.user
    match opening.dialect:
        case "responses":
            assert body["store"] is False
            assert body["reasoning"]["effort"] == "low"
            assert body["max_output_tokens"] == 500
            assert body["text"]["format"] == {
                "type": "json_schema",
                "name": "memory",
                "schema": SCHEMA,
                "strict": True,
            }
        case "chat":
            assert body["reasoning_effort"] == "low"
            assert body["response_format"]["json_schema"] == {"name": "memory", "schema": SCHEMA, "strict": True}
        case _:
            assert body["max_tokens"] == 500


def test_a_provider_that_takes_no_schema_is_asked_in_words(opening):
    def respond(request: RecordedRequest) -> Reply:
        if {"response_format", "text", "tools", "output_format", "output_config"} & request.json.keys():
            return Status(status=400, message="structured outputs and tool_choice are not supported here")
        return Say(SAMPLE_MEMORY)

    with opening(respond) as setup:
        assert [msgspec.json.decode(text) for text in setup.ask()] == [dict(SAMPLE_MEMORY)]
    assert setup.outcomes == ["ok"]
    assert b"Answer with one JSON object of this schema" in setup.server.requests[-1].body


def test_a_busy_provider_is_asked_again_and_every_attempt_is_a_row(opening):
    busy = Status(status=429, headers={"retry-after": "0"}, code="rate_limit_exceeded")
    with opening([busy, Status(status=500), Status(status=503), Say(SAMPLE_MEMORY)]) as setup:
        assert len(setup.ask()) == 1
    assert setup.outcomes == ["rate_limited", "unavailable", "unavailable", "ok"]


@pytest.mark.parametrize(
    ("status", "error", "outcome"),
    [
        (429, RateLimited, "rate_limited"),
        (500, ModelUnavailable, "unavailable"),
        (529, ModelUnavailable, "unavailable"),
    ],
)
def test_after_the_last_attempt_the_error_says_what_it_was(opening, status, error, outcome):
    with opening(Status(status=status, message="busy with sk-secret")) as setup:
        assert type(setup.fail()) is error
    assert setup.outcomes == [outcome] * STAGE.request_attempts
    assert "sk-secret" not in (setup.ledger.calls[0].error or "")
    assert "[REDACTED_SECRET]" in (setup.ledger.calls[0].error or "")


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refused_request_is_not_tried_again(opening, status):
    with opening(Status(status=status, message="no")) as setup:
        assert type(setup.fail()) is (ModelRefused if status == 400 else AccessRefused)
    assert setup.outcomes == ["refused"]


def test_a_quota_that_is_used_up_is_not_tried_again(opening):
    with opening(Status(status=429, code="insufficient_quota", type="insufficient_quota")) as setup:
        if opening.dialect == "anthropic":
            pytest.skip("Anthropic says it with another status")
        assert type(setup.fail()) is QuotaExhausted
    assert setup.outcomes == ["rate_limited"]


@pytest.mark.parametrize(
    ("trouble", "hinted"),
    [
        (Status(status=400, message="API key not valid. Please pass a valid API key."), "key"),
        (Status(status=400, message="Your credit balance is too low to access the API."), "quota"),
        (Status(status=402, message="Payment required"), "quota"),
        (Status(status=429, message="Insufficient balance", code="1113"), "quota"),
        (Status(status=400, message="The model `gpt-9` does not exist", code="model_not_found"), "extract_model"),
        (Status(status=404, message="no such route"), "base_url"),
        (Status(status=403, message="The key may not use this model."), "key"),
    ],
)
def test_a_trouble_of_the_account_names_what_to_mend(opening, trouble, hinted):
    with opening(trouble) as setup:
        error = setup.fail()
    assert isinstance(error, AccessRefused)
    assert hinted in error.hint
    assert len(setup.outcomes) == 1
    assert "status_code" not in str(error) and "body:" not in str(error)


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_beyond_ours_is_not_tried_again(opening, status):
    with opening(Status(status=status, message="slow down", headers={"retry-after": "3600"})) as setup:
        error = setup.fail()
    assert isinstance(error, AccessRefused)
    assert "3,600 s" in str(error) and error.hint
    assert len(setup.outcomes) == 1


def test_a_text_that_moderation_refuses_says_nothing_of_the_next(opening):
    with opening(Status(status=403, message="Your input was flagged by moderation")) as setup:
        assert type(setup.fail()) is ModelRefused


@pytest.mark.parametrize(
    "too_long",
    [
        Status(status=400, code="context_length_exceeded", message="Your input exceeds the context window."),
        Status(status=400, type="invalid_request_error", message="prompt is too long: 210000 tokens > 200000 maximum"),
        Status(status=400, type="exceed_context_size_error", message="the request exceeds the available context size"),
        Status(status=413, message="Request too large"),
    ],
)
def test_an_input_that_does_not_fit_is_told_apart(opening, too_long):
    with opening(too_long) as setup:
        assert type(setup.fail()) is ContextTooLong
    assert setup.outcomes == ["context_too_long"]


def test_a_refusal_of_the_model_is_a_refusal(opening):
    with opening(Refuse()) as setup:
        assert type(setup.fail()) is ModelRefused
    assert setup.outcomes == ["refused"]


def test_a_content_filter_is_a_refusal(opening):
    with opening(StopShort(reason="content_filter")) as setup:
        assert type(setup.fail()) is ModelRefused


def test_an_answer_cut_at_the_limit_is_invalid_and_its_tokens_count(opening):
    with opening(StopShort()) as setup:
        assert type(setup.fail()) is InvalidReply
    assert setup.outcomes == ["invalid"]
    assert setup.ledger.calls[0].usage.output_tokens > 0


def test_an_empty_answer_is_invalid(opening):
    with opening(Say("")) as setup:
        assert type(setup.fail()) is InvalidReply


def test_a_body_that_is_not_json_fails(opening):
    with opening(SendBytes(b"<html>gateway</html>")) as setup:
        assert type(setup.fail()) in (InvalidReply, ModelUnavailable)


def test_a_connection_cut_in_the_middle_is_tried_again(opening):
    with opening([CutOff(Say(SAMPLE_MEMORY)), Say(SAMPLE_MEMORY)]) as setup:
        assert len(setup.ask()) == 1
    assert setup.outcomes == ["unavailable", "ok"]


def test_a_model_that_never_answers_times_out(opening):
    seconds = 0.05
    stage = msgspec.structs.replace(
        STAGE, request_timeout_seconds=seconds, local_timeout_seconds=seconds, request_attempts=2
    )
    with opening(Hang(), stage=stage) as setup:
        assert type(setup.fail()) is ModelUnavailable
    assert set(setup.outcomes) == {"unavailable"}


def test_nobody_there_is_unavailable(opening):
    with opening(Say(SAMPLE_MEMORY)) as setup:
        pass
    assert type(setup.fail()) is ModelUnavailable
    assert setup.outcomes == ["unavailable"] * STAGE.request_attempts


def test_requests_run_side_by_side(opening):
    with opening(Slowly(0.1, Say(SAMPLE_MEMORY))) as setup:
        assert len(setup.ask(times=8)) == 8
    assert setup.server.max_in_flight == 8


def test_a_stopped_call_ends_at_once_and_is_a_row_too(opening):
    arrived = threading.Event()

    def respond(request: RecordedRequest) -> Reply:
        arrived.set()
        return Hang()

    with opening(respond) as setup, ThreadPoolExecutor(1) as pool:
        stop = Stop()
        answer = pool.submit(setup.model.complete, REQUEST, stop=stop)
        assert arrived.wait(10)
        stop.ask()
        with pytest.raises(Stopped):
            answer.result(10)
        setup.model.close()
    assert setup.outcomes == ["cancelled"]


def test_what_is_stopped_ahead_is_not_sent(opening):
    with opening(Say(SAMPLE_MEMORY)) as setup:
        stop = Stop()
        stop.ask()
        with pytest.raises(Stopped):
            setup.model.complete(REQUEST, stop=stop)
        setup.model.close()
    assert setup.server.requests == []


def test_a_pause_between_attempts_can_be_stopped(opening):
    busy = Status(status=429, headers={"retry-after": "3600"}, code="rate_limit_exceeded")
    stage = msgspec.structs.replace(STAGE, max_retry_pause_seconds=3600)
    stop = Stop()

    def respond(request: RecordedRequest) -> Reply:
        threading.Timer(0.2, stop.ask).start()
        return busy

    with opening(respond, stage=stage) as setup:
        with pytest.raises(Stopped):
            setup.model.complete(REQUEST, stop=stop)
        setup.model.close()
    assert setup.outcomes == ["rate_limited"]


def test_a_body_that_never_ends_is_cut_off_by_its_size_not_by_the_time_that_it_has(opening):
    stage = msgspec.structs.replace(STAGE, max_reply_bytes=100_000, request_attempts=1)
    with opening(NeverEnd(), stage=stage) as setup:
        error = setup.fail()
    assert type(error) is ModelUnavailable
    assert "100,000 bytes" in str(error)
    assert setup.outcomes == ["unavailable"]
