"""The steps of a trajectory in ATIF, which many harnesses write, as the items that memory keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.rollouts.agents.chat_parts import ChatDecoder, Content, Message, inner_text, when
from stillroom.rollouts.agents.decoder import text_of
from stillroom.rollouts.agents.made import Made, said_by_agent, said_by_assistant


class _Call(msgspec.Struct):
    tool_call_id: Any = None
    function_name: Any = None
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _Result(msgspec.Struct):
    source_call_id: Any = None
    content: Any = None


class _Observation(msgspec.Struct):
    results: list[_Result] = []


class _Step(msgspec.Struct):
    step_id: Any = None
    timestamp: Any = None
    source: Any = None
    message: Content = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    is_copied_context: Any = None
    #: Ours: what a harness found out about the run, put behind its steps.
    outcome: Any = None


_step = msgspec.json.Decoder(_Step)


class Records(ChatDecoder):
    """Decodes steps, one a line. `of_agent`: the tasks are an evaluation's, or another agent's."""

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a step."""
        step = _step.decode(line)
        return when(step.timestamp), self._made(step)

    def _made(self, step: _Step) -> Iterator[Made]:
        if step.is_copied_context is True:
            self.stats.drop("seen before")
        elif step.source == "user":
            yield from self.prompt(*self._texts(step), of_agent=self._of_agent)
        elif step.source == "agent":
            yield from self._answer(step)
        elif step.source == "system":
            self.stats.drop("system prompt")
        elif step.outcome is not None:
            yield said_by_agent(text_of(step.outcome))
        else:
            self.stats.count_unknown(f"step/{step.source}")
        yield from self._results(step)

    def _answer(self, step: _Step) -> Iterator[Made]:
        if text := "\n".join(text for text in self._texts(step) if text.strip()):
            yield said_by_assistant(text)
        for call in step.tool_calls or ():
            yield from self.call(text_of(call.tool_call_id), text_of(call.function_name), bytes(call.arguments))

    def _results(self, step: _Step) -> Iterator[Made]:
        for result in step.observation.results if step.observation is not None else ():
            # Of an agent with one tool some harnesses don't say which call a result belongs to.
            call_id = text_of(result.source_call_id)
            if not call_id and step.tool_calls:
                call_id = text_of(step.tool_calls[0].tool_call_id)
            text = inner_text(result.content)
            if text or call_id:
                yield from self.result(call_id or f"step-{step.step_id}", text, failed=None)

    def _texts(self, step: _Step) -> list[str]:
        return self.texts(Message(content=step.message))
