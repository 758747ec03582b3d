"""The Agent Trajectory Interchange Format, version 1.8: one JSON object, written step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import msgspec

from stillroom.errors import RecordingError
from stillroom.recording.exporting.pieces import Called, Piece, Returned, Said
from stillroom.recording.lines import timestamp
from stillroom.spending import Usage
from stillroom.thread import Thread

SCHEMA = "ATIF-v1.8"
# A step holds the calls of one answer, a handful. A record of calls without any result must not be held as one.
_MAX_CALLS = 256
_SOURCES = {"user": "user", "assistant": "agent", "agent": "system", "harness": "system"}

_encode = msgspec.json.Encoder().encode


class _Step(msgspec.Struct, omit_defaults=True):
    source: str
    message: str = msgspec.field(default_factory=str)
    timestamp: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    observation: dict[str, list[dict[str, Any]]] | None = None
    extra: dict[str, Any] | None = None


def atif(thread: Thread, pieces: Iterable[Piece], *, agent: str, used: Usage) -> Iterator[bytes]:
    """The trajectory in parts of valid JSON, one step a line. Raises `RecordingError` for a thread without a step.

    What another agent said, and what a client put into the talk, is of the source `system`: nobody typed it. A result
    whose call is not in the same step names it under `extra`.
    """
    steps = _steps(pieces)
    first = next(steps, None)
    if first is None:
        raise RecordingError(f"`{thread.thread_id}` holds nothing that could be written out")
    head = {
        "schema_version": SCHEMA,
        "session_id": thread.thread_id,
        "trajectory_id": thread.thread_id,
        "agent": {"name": agent, "version": thread.cli_version or "unknown"},
    }
    yield _encode(head)[:-1] + b',"steps":[\n' + _step(first, 1)
    count = 1
    for count, step in enumerate(steps, 2):
        yield b",\n" + _step(step, count)
    facts = {
        "cwd": thread.cwd,
        "source": thread.source,
        "parent_thread_id": thread.parent_thread_id,
        "git_branch": thread.git_branch,
        "git_sha": thread.git_sha,
    }
    tail = {
        "final_metrics": {"total_steps": count, **_metrics(used)},
        "extra": {name: value for name, value in facts.items() if value},
    }
    yield b"\n]," + _encode(tail)[1:] + b"\n"


def _steps(pieces: Iterable[Piece]) -> Iterator[_Step]:
    """An answer of the agent is one step with the calls that it makes and their results."""
    step: _Step | None = None
    for piece in pieces:
        match piece:
            case Said(who=who):
                if step is not None:
                    yield step
                step = _Step(_SOURCES[who], piece.text, _time(piece.at_ms))
                if who in ("agent", "harness"):
                    step.extra = {"said_by": who}
            case Called():
                if (
                    step is None
                    or step.source != "agent"
                    or step.observation
                    or len(step.tool_calls or ()) >= _MAX_CALLS
                ):
                    if step is not None:
                        yield step
                    step = _Step("agent", timestamp=_time(piece.at_ms))
                call = {"tool_call_id": piece.call_id, "function_name": piece.tool, "arguments": piece.as_object()}
                step.tool_calls = [*(step.tool_calls or []), call]
            case Returned():
                known = {call["tool_call_id"] for call in (step.tool_calls if step else None) or ()}
                if step is None or piece.call_id not in known:
                    if step is not None:
                        yield step
                    yield _Step("agent", timestamp=_time(piece.at_ms), observation={"results": [_stray(piece)]})
                    step = None
                    continue
                results = step.observation["results"] if step.observation else []
                step.observation = {"results": [*results, {"source_call_id": piece.call_id, **_result(piece)}]}
            case _:
                assert_never(piece)
    if step is not None:
        yield step


def _step(step: _Step, number: int) -> bytes:
    return b'{"step_id":%d,' % number + _encode(step)[1:]


def _result(piece: Returned) -> dict[str, Any]:
    told = {"exit_code": piece.exit_code, "ok": piece.ok}
    extra = {name: value for name, value in told.items() if value is not None}
    return {"content": piece.text, **({"extra": extra} if extra else {})}


def _stray(piece: Returned) -> dict[str, Any]:
    result = _result(piece)
    return {**result, "extra": {**result.get("extra", {}), "call_id": piece.call_id}}


def _metrics(used: Usage) -> dict[str, int]:
    if used == Usage():  # the record does not tell
        return {}
    return {
        "total_prompt_tokens": used.input_tokens,
        "total_completion_tokens": used.output_tokens,
        "total_cached_tokens": used.cached_input_tokens,
    }


def _time(at_ms: int | None) -> str | None:
    return timestamp(at_ms) if at_ms is not None else None
