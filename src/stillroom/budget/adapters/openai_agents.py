"""OpenAI Agents SDK: hooks around each request of a run, streamed or not.

    hooks = BudgetHooks()
    with budget.session("root"):
        await Runner.run(agent, "…", hooks=hooks)  # raises `TurnAborted`

A hand-off stays in the run and its hooks. An agent as a tool is a run of its own: give it the hooks too
(`agent.as_tool(…, hooks=hooks)`), and call it within `budget.session` to make it a thread of its own.
"""

from __future__ import annotations

from typing import Any

from stillroom.budget.adapters.request import Metering, Request
from stillroom.budget.reported import read_usage
from stillroom.budget.session import Session
from stillroom.spending import Usage

try:
    from agents import Agent, ModelResponse, RunContextWrapper, RunHooks, TResponseInputItem
except ImportError as error:
    raise ImportError("OpenAI's Agents SDK is missing: pip install 'stillroom[openai-agents]'") from error


class BudgetHooks(RunHooks[Any]):
    """Charges every request of a run to the current session. One object may serve many runs at once.

    To have hooks of your own beside them, inherit and call these.
    """

    def __init__(
        self, *, session: Session | None = None, reserve_tokens: float | None = None, window_id: str = "0"
    ) -> None:
        self._metering = Metering(session=session, reserve_tokens=reserve_tokens, window_id=window_id)
        #: By run: a run has one request at a time, and ends with it when it fails.
        self._requests: dict[int, Request] = {}

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        """Raises `TurnAborted` before anything is sent; adds a due reminder to what is sent, not to the history."""
        # Of a request that failed, or of a run that is gone and had the same number.
        if failed := self._requests.pop(id(context), None):
            failed.end()
        request = self._metering.admit()
        if request is None:
            return
        self._requests[id(context)] = request
        if request.reminder:
            input_items.append({"type": "message", "role": request.reminder.role, "content": request.reminder.text})

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Charge the response. Raises `TurnAborted` before its tools are run."""
        request = self._requests.pop(id(context), None)
        if request is None:
            return
        request.sent()
        with request:
            reported = read_usage(response.raw_usage)
            request.charge(usage_of(response), units=reported and reported.units)


def usage_of(response: ModelResponse) -> Usage:
    """What one request used, as the SDK counted it."""
    counted = response.usage
    return Usage(
        input_tokens=counted.input_tokens,
        cached_input_tokens=counted.input_tokens_details.cached_tokens,
        cache_write_tokens=getattr(counted.input_tokens_details, "cache_write_tokens", 0),
        output_tokens=counted.output_tokens,
        reasoning_tokens=counted.output_tokens_details.reasoning_tokens,
    )
