"""The real clients of OpenAI and Anthropic, whole and streamed, against a model on 127.0.0.1."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from stillroom.budget import RolloutBudget, RolloutBudgetConfig, Session, TurnAborted
from stillroom.errors import BudgetError
from stillroom.testing import LoopbackModel, RecordedRequest, Say, SendBytes, Status

anthropic = pytest.importorskip("anthropic", reason="the extra `anthropic` is not installed")
openai = pytest.importorskip("openai")

from stillroom.budget.adapters import anthropic as for_anthropic  # noqa: E402
from stillroom.budget.adapters import openai as for_openai  # noqa: E402

pytestmark = pytest.mark.slow

TEXT = "You have {} weighted tokens left in the shared session token budget."
ANSWER = "word " * 40
#: What the loopback model reports for the answer.
OUTPUT = 53
KEPT = {"include_usage": False, "other": 1}


def a_budget(limit_tokens: int = 1000, **keys: Any) -> RolloutBudget:
    keys.setdefault("reminder_at_remaining_tokens", ())
    keys.setdefault("prefill_token_weight", 0)
    return RolloutBudget(RolloutBudgetConfig(limit_tokens=limit_tokens, **keys))


@dataclass(frozen=True)
class Api:
    """One protocol of one SDK; `stream` is read to its end."""

    open: Callable[[str], Any]
    open_async: Callable[[str], Any]
    resource: Callable[[Any], Any]
    ask: dict[str, Any]
    last: Callable[[RecordedRequest], tuple[str, str]]

    def create(self, client: Any, **keys: Any) -> Any:
        return self.resource(client).create(**self.ask, **keys)


def last_message(request: RecordedRequest) -> tuple[str, str]:
    message = (request.json.get("input") or request.json["messages"])[-1]
    content = message["content"]
    return message["role"], content if isinstance(content, str) else content[-1]["text"]


# A client takes long to make, for its TLS context: each test has a copy over the same pool.
OPENAI = openai.OpenAI(base_url="http://127.0.0.1", api_key="none", max_retries=0)
ANTHROPIC = anthropic.Anthropic(base_url="http://127.0.0.1", api_key="none", max_retries=0)


def openai_client(url: str) -> Any:
    return for_openai.with_budget(OPENAI).with_options(base_url=url)


def async_openai_client(url: str) -> Any:
    return for_openai.with_budget(openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0))


def anthropic_client(url: str) -> Any:
    return for_anthropic.with_budget(ANTHROPIC).with_options(base_url=url.removesuffix("/v1"))


def async_anthropic_client(url: str) -> Any:
    url = url.removesuffix("/v1")
    return for_anthropic.with_budget(anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0))


SAID = [{"role": "user", "content": "go"}]
APIS = {
    "responses": Api(
        openai_client, async_openai_client, lambda c: c.responses, {"model": "m", "input": SAID}, last_message
    ),
    "chat": Api(
        openai_client, async_openai_client, lambda c: c.chat.completions, {"model": "m", "messages": SAID}, last_message
    ),
    "messages": Api(
        anthropic_client,
        async_anthropic_client,
        lambda c: c.messages,
        {"model": "m", "messages": SAID, "max_tokens": 100},
        last_message,
    ),
}


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    return APIS[request.param]


def test_each_response_is_charged_and_an_exhausted_tree_sends_nothing_more(api: Api) -> None:
    budget = a_budget(2 * OUTPUT - 1)
    with LoopbackModel(Say(ANSWER)) as server, budget.session("root"):
        client = api.open(server.base_url)
        assert api.create(client).usage is not None
        with budget.session("child"), pytest.raises(TurnAborted) as stopped:
            api.create(client)
        with pytest.raises(TurnAborted):
            api.create(client)
        assert len(server.requests) == 2
    assert stopped.value.outcome.threads == {"root": OUTPUT, "child": OUTPUT}


def test_the_reminder_is_the_last_thing_in_the_request_and_is_sent_once(api: Api) -> None:
    budget = a_budget(1000, reminder_at_remaining_tokens=(950,))
    with LoopbackModel(Say(ANSWER)) as server, budget.session("root"):
        client = api.open(server.base_url)
        for _ in range(3):
            api.create(client)
        first, second, third = map(last_message, server.requests)
    fragment = "<rollout_budget>\n" + TEXT + "\n</rollout_budget>"
    assert first[1] == fragment.format(1000)
    assert second[1] == fragment.format(1000 - OUTPUT)
    assert third == ("user", "go")
    assert {"input": SAID, "messages": SAID}[next(key for key in api.ask if key in ("input", "messages"))] == [
        {"role": "user", "content": "go"}
    ], "the caller's history stays as it is"


def test_roles_and_places_are_those_of_the_protocol() -> None:
    with LoopbackModel(Say("ok")) as server, a_budget().session("root") as session:
        client, claude = openai_client(server.base_url), anthropic_client(server.base_url)
        for ask in (
            lambda: client.responses.create(model="m", input="go"),
            lambda: client.chat.completions.create(model="m", messages=SAID),
            lambda: client.chat.completions.create(
                model="m", messages=[{"role": "developer", "content": "be brief"}, *SAID]
            ),
            lambda: claude.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}]),
        ):
            session.rearm_reminder()
            ask()
        roles = [
            [message["role"] for message in request.json.get("input") or request.json["messages"]]
            for request in server.requests
        ]
        assert roles == [["user", "developer"], ["user", "system"], ["developer", "user", "developer"], ["user"]]
        session.rearm_reminder()
        begun = [*SAID, {"role": "assistant", "content": "The answer is"}]
        claude.messages.create(model="m", max_tokens=9, messages=begun)
        assert server.requests[-1].json["messages"] == begun, "an answer that is begun is gone on with"
        assert session.pending_reminder("0"), "and the reminder stays due"


def test_a_reminder_whose_request_failed_stays_due(api: Api) -> None:
    budget = a_budget()
    with (
        LoopbackModel([Status(status=500), Say(ANSWER), Say(ANSWER)]) as server,
        budget.session("root"),
    ):
        client = api.open(server.base_url)
        with pytest.raises((openai.APIError, anthropic.APIError)):
            api.create(client)
        api.create(client)
        api.create(client)
        reminded = ["rollout_budget" in last_message(request)[1] for request in server.requests]
    assert reminded == [True, True, False]
    assert budget.status().used == 2 * OUTPUT


def test_a_stream_is_charged_at_its_end_and_shows_what_it_showed_before(api: Api) -> None:
    budget = a_budget(1000)
    with LoopbackModel(Say(ANSWER)) as server:
        client = api.open(server.base_url)
        plain = [type(event).__name__ for event in api.create(client, stream=True)]
        with budget.session("root"), api.create(client, stream=True) as stream:
            assert stream.response.status_code == 200
            metered = list(stream)
        asked = server.requests[-1].json.get("stream_options")
    assert budget.status().used == OUTPUT
    if asked is None:
        assert [type(event).__name__ for event in metered] == plain
    else:
        assert asked == {"include_usage": True}
        assert all(chunk.choices for chunk in metered), "a caller that did not ask for the usage does not get it"


def test_a_streamed_chat_that_was_told_to_keep_its_usage_is_charged_all_the_same() -> None:
    budget = a_budget()
    with LoopbackModel(Say(ANSWER)) as server, budget.session("root"):
        chunks = list(APIS["chat"].create(openai_client(server.base_url), stream=True, stream_options=KEPT))
        assert server.requests[0].json["stream_options"] == {"include_usage": True, "other": 1}
    assert budget.status().used == OUTPUT
    assert all(chunk.choices for chunk in chunks)


def test_a_stream_that_crosses_the_limit_raises_after_its_last_event(api: Api) -> None:
    seen: list[Any] = []
    with (
        LoopbackModel(Say(ANSWER)) as server,
        a_budget(10).session("root"),
        pytest.raises(TurnAborted),
    ):
        for event in api.create(api.open(server.base_url), stream=True):
            seen = [*seen, event]
    assert len(seen) > 1


async def read(stream: Any) -> list[Any]:
    return [event async for event in stream]


@pytest.mark.anyio
async def test_asynchronous_clients_are_metered_alike(api: Api) -> None:
    budget = a_budget(3 * OUTPUT - 1)
    with LoopbackModel(Say(ANSWER)) as server, budget.session("root"):
        async with api.open_async(server.base_url) as client:
            await api.create(client)
            async with await api.create(client, stream=True) as stream:
                await read(stream)
            with pytest.raises(TurnAborted):
                await read(await api.create(client, stream=True))
            with pytest.raises(TurnAborted):
                await api.create(client)
        assert len(server.requests) == 3


def test_a_stream_that_is_closed_early_gives_back_what_it_held(api: Api) -> None:
    budget = a_budget(1000)
    with LoopbackModel(Say(ANSWER)) as server, budget.session("root") as session:
        wrap = for_anthropic.with_budget if api is APIS["messages"] else for_openai.with_budget
        client = wrap(api.open(server.base_url), session=session, reserve_tokens=600)
        api.create(client)
        assert budget.status().used == OUTPUT, "metered again is not metered twice"
        for _ in range(2):
            with api.create(client, stream=True) as stream:
                next(stream)
        api.create(client, stream=True).close()
    assert budget.status().reserved == 0


def test_a_stream_that_breaks_off_raises_its_own_error_and_is_charged_as_far_as_it_told() -> None:
    start = b'{"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m", '
    start += b'"content": [], "usage": {"input_tokens": 100, "output_tokens": 1}}}'
    events = b"event: message_start\ndata: %s\n\nevent: error\ndata: {}\n\n" % start
    budget = a_budget(10, prefill_token_weight=1)
    with LoopbackModel(SendBytes(events, content_type="text/event-stream")) as server, budget.session("root"):
        claude = anthropic_client(server.base_url)
        with pytest.raises(anthropic.APIStatusError):
            list(claude.messages.create(model="m", max_tokens=9, messages=SAID, stream=True))
    assert budget.status().used == 101


def test_raw_responses_and_copies_of_the_client_are_metered(api: Api) -> None:
    budget = a_budget(10_000)
    with LoopbackModel(Say(ANSWER)) as server, budget.session("root"):
        client = api.open(server.base_url)
        raw = api.resource(client.with_options(timeout=9).copy(max_retries=1)).with_raw_response.create(**api.ask)
        assert raw.headers and raw.parse().usage
        assert budget.status().used == OUTPUT
        streamed = api.resource(client).with_raw_response.create(**api.ask, stream=True)
        assert streamed.headers and list(streamed.parse())
        assert budget.status().used == 2 * OUTPUT
        with (
            pytest.raises(BudgetError, match="with_streaming_response"),
            api.resource(client).with_streaming_response.create(**api.ask),
        ):
            pass
        assert len(server.requests) == 2


def test_the_stream_helpers_of_the_sdks_are_metered() -> None:
    budget = a_budget(10_000)
    with LoopbackModel(Say(ANSWER)) as server, budget.session("root"):
        client, claude = openai_client(server.base_url), anthropic_client(server.base_url)
        with client.responses.stream(model="m", input="go") as stream:
            assert stream.get_final_response().output_text == ANSWER
        with client.chat.completions.stream(model="m", messages=SAID) as stream:
            assert stream.get_final_completion().choices[0].message.content == ANSWER
        with claude.messages.stream(model="m", max_tokens=9, messages=SAID) as stream:
            assert stream.get_final_text() == ANSWER
    assert budget.status().used == 3 * OUTPUT


def test_units_of_the_provider_and_the_cache_of_anthropic_are_charged_as_reported() -> None:
    body = b"""{"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "status": "completed",
        "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "codex_rollout_budget_units": 77.5}}"""
    message = b"""{"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": {"input_tokens": 100, "cache_read_input_tokens": 800,
        "cache_creation_input_tokens": 50, "output_tokens": 10}}"""
    budget = a_budget(10_000, prefill_token_weight=1)
    with LoopbackModel([SendBytes(body), SendBytes(message)]) as server, budget.session("root"):
        openai_client(server.base_url).responses.create(model="m", input="go")
        assert budget.status().used == 77.5
        anthropic_client(server.base_url).messages.create(model="m", max_tokens=9, messages=SAID)
        assert budget.status().used == 77.5 + 160


@pytest.mark.anyio
async def test_children_at_once_share_the_ledger_and_reserve() -> None:
    budget = a_budget(250)
    with LoopbackModel(Say(ANSWER)) as server:

        async def child(client: Any, number: int) -> str:
            with budget.session(f"child {number}"):
                try:
                    await client.responses.create(model="m", input="go")
                    return "answered"
                except TurnAborted as stopped:
                    return stopped.reason

        with budget.session("root"):
            plain = openai.AsyncOpenAI(base_url=server.base_url, api_key="none")
            async with for_openai.with_budget(plain, reserve_tokens=100) as client:
                ends = await asyncio.gather(*(child(client, number) for number in range(3)))
        assert len(server.requests) == 2
    assert sorted(ends) == ["answered", "answered", "budget_reserved"]
    assert (budget.status().used, budget.status().reserved) == (2 * OUTPUT, 0)


def test_outside_of_a_session_and_for_other_requests_nothing_changes(api: Api) -> None:
    with LoopbackModel(Say(ANSWER)) as server:
        client = api.open(server.base_url)
        api.create(client)
        assert last_message(server.requests[-1]) == ("user", "go")
    budget = a_budget()
    with LoopbackModel(Say(ANSWER)) as server:
        plain = OPENAI.with_options(base_url=server.base_url)
        for_openai.with_budget(plain, session=Session(budget, "given")).responses.create(model="m", input="go")
        plain.responses.create(model="m", input="go")
    assert budget.status().used == OUTPUT
