"""Doubles without a network: a model that follows a script, a ledger that keeps its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat

from stillroom.errors import ModelError
from stillroom.models.structured import StructuredReply, StructuredRequest
from stillroom.spending import ModelCall, Usage
from stillroom.stopping import Stop


class ScriptedModel:
    """A `StructuredModel` that answers from a list (the last entry repeats) or a function; a `ModelError` is raised."""

    def __init__(
        self,
        script: Sequence[str | ModelError] | Callable[[StructuredRequest], str | ModelError],
        *,
        name: str = "scripted:model",
        context_window: int | None = None,
    ) -> None:
        self.name = name
        self.context_window = context_window
        self.requests: list[StructuredRequest] = []
        self.closed = False
        replies = iter(()) if callable(script) else chain(script, repeat(script[-1]))
        self._choose = script if callable(script) else lambda request: next(replies)

    def complete(self, request: StructuredRequest, *, stop: Stop) -> StructuredReply:
        stop.check()
        self.requests.append(request)
        answer = self._choose(request)
        if isinstance(answer, ModelError):
            raise answer
        return StructuredReply(text=answer, usage=Usage(input_tokens=len(request.user) // 4, output_tokens=1))

    def close(self) -> None:
        self.closed = True


class ListLedger:
    """A `SpendingLedger` in memory."""

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []

    def record_call(self, call: ModelCall) -> None:
        self.calls.append(call)
