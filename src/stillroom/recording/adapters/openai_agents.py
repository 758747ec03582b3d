"""OpenAI Agents SDK: a session around a session.

    session = RecordedSession(Recorder("shop-assistant"))
    result = await Runner.run(agent, "…", session=session)
    await session.record_usage(result)

Everything that the SDK adds to the session is recorded when it is added: prompts, answers, calls of tools and their
results, those of hand-offs too. An agent as a tool is a run of its own: give it a session with `recorder.child(…)`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from stillroom.budget.adapters.openai_agents import usage_of
from stillroom.recording.adapters.writing import Writing
from stillroom.recording.lines import encoded
from stillroom.recording.recorder import Recorder
from stillroom.sessions.agents.openai_agents import Records
from stillroom.sessions.stats import ReadStats

try:
    from agents import Session, SQLiteSession, TResponseInputItem
    from agents.memory.session import SessionABC
    from agents.result import RunResultBase
except ImportError as error:
    raise ImportError("OpenAI's Agents SDK is missing: pip install 'stillroom[openai-agents]'") from error


class _Live(Records):
    """Nothing comes twice here, and some models give all of their calls one id."""

    def is_new(self, key: str) -> bool:
        return True


class RecordedSession(SessionABC):
    """Keeps what another session keeps, by default one in memory, and records it.

    What the SDK takes out again, to try a request once more, is not recorded a second time.
    """

    def __init__(self, recorder: Recorder, session: Session | None = None) -> None:
        self.recorder = recorder
        self._session = session if session is not None else SQLiteSession(recorder.thread_id)
        self.session_id = self._session.session_id
        self.session_settings = self._session.session_settings
        self._writing = Writing(recorder, _Live(ReadStats()))
        self._taken_out: Counter[bytes] = Counter()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return await self._session.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._session.add_items(items)
        await self._writing.write([line for item in items if self._is_new(line := _line(item))])

    async def pop_item(self) -> TResponseInputItem | None:
        item = await self._session.pop_item()
        if item is not None:
            self._taken_out[_line(item)] += 1
        return item

    async def clear_session(self) -> None:
        """The talk begins anew; what is recorded stays."""
        await self._session.clear_session()

    async def record_usage(self, result: RunResultBase) -> None:
        """Record what the requests of a finished run used."""
        await self._writing.write((), [usage_of(response) for response in result.raw_responses])

    def _is_new(self, line: bytes) -> bool:
        if self._taken_out[line] == 0:
            return True
        self._taken_out[line] -= 1
        return False


def _line(item: Any) -> bytes:
    """As the reader of the SDK's own databases is given it."""
    return encoded({"item": item, "message": {}})
