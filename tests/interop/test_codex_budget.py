"""The real Codex CLI and our ledger, given the same settings and the same responses: the same reminders, the same end.

Each answer is one turn, or a compaction.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.interop.codex_client import CodexServer, write_config

from stillroom.budget import RolloutBudget, RolloutBudgetConfig, TurnAborted, read_usage
from stillroom.testing import LoopbackModel, RecordedRequest, Reply, SendBytes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

COMPACT = "compact"
LIMIT = "limit_tokens = 100\nreminder_at_remaining_tokens = [75, 50, 25]\n"


def out(tokens: int) -> dict[str, Any]:
    return {"output_tokens": tokens}


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        (LIMIT, [out(10), out(10), out(10), out(0), out(45), out(0), out(16), out(0)]),
        (LIMIT, [out(20), out(10), (COMPACT, out(10)), out(10), out(0)]),
        (LIMIT, [out(50), out(50), out(0), out(1), out(0)]),
        (LIMIT, [out(100), (COMPACT, out(0)), out(0), (COMPACT, out(1)), out(0)]),
        (LIMIT, [{"codex_rollout_budget_units": units} for units in (24.5, 0.4, 0.25, 0, 16.125, 9, 50, 0)]),
        (LIMIT + "sampling_token_weight = 0.25\n", [out(3), out(96), out(1), out(301), out(0)]),
        (LIMIT + "reminder_at_context_start = false\n", [out(10), out(20), out(0), (COMPACT, out(5)), out(10), out(0)]),
        (LIMIT + "enforce_limit = false\n", [out(80), out(50), out(0), (COMPACT, out(5)), out(0)]),
        (
            LIMIT + "sampling_token_weight = 2.0\nprefill_token_weight = 0.5\n",
            [
                {"input_tokens": 60, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 15},
                {"codex_rollout_budget_units": 11, "output_tokens": 90},
                out(30),
                out(1),
            ],
        ),
        (
            "limit_budget = 2.5\nreminder_at_remaining_tokens = [1]\n",
            [{"codex_rollout_budget_units": units} for units in (0.75, 1.25, 0.25, 0.5, 1)],
        ),
    ],
)
def test_reminders_and_the_end_are_codexs(binary: Path, tmp_path: Path, settings: str, steps: list[Any]) -> None:
    assert run_codex(binary, tmp_path, settings, steps) == run_ours(settings, steps)


def run_codex(binary: Path, tmp_path: Path, settings: str, steps: list[Any]) -> list[tuple[str, ...] | str]:
    """For each turn the reminders that its request holds, or how it failed."""
    usages: list[dict[str, Any]] = []
    home, project = tmp_path / "codex", tmp_path / "project"
    project.mkdir()
    seen: list[tuple[str, ...] | str] = []
    with LoopbackModel(lambda request: _answer(request, usages.pop(0))) as model:
        write_config(home, model.base_url, memories=False)
        with (home / "config.toml").open("a", encoding="utf-8") as file:
            file.write(f"\n[features.rollout_budget]\nenabled = true\n{settings}")
        with CodexServer(binary, home) as codex:
            thread_id = codex.start_thread(project)
            for step in steps:
                if isinstance(step, tuple):
                    usages.append(step[1])
                    codex.request("thread/compact/start", {"threadId": thread_id})
                    codex.wait_for("turn/completed", threadId=thread_id)
                    continue
                before = len(model.requests)
                usages.append(step)
                turn = codex.turn(thread_id, "Go on.")["turn"]
                sent = len(model.requests) > before
                usages.clear()
                told = _reminders(model.requests[-1]) if sent else "nothing sent"
                seen.append(told if turn["status"] == "completed" else f"{told} {turn['error']['codexErrorInfo']}")
    return seen


def run_ours(settings: str, steps: list[Any]) -> list[tuple[str, ...] | str]:
    table = tomllib.loads(settings)
    table["reminder_at_remaining_tokens"] = tuple(table["reminder_at_remaining_tokens"])
    budget = RolloutBudget(RolloutBudgetConfig(**table))
    history: list[str] = []
    window = 0
    seen: list[tuple[str, ...] | str] = []
    for step in steps:
        told: tuple[str, ...] | str = "nothing sent"
        reported = read_usage(step[1] if isinstance(step, tuple) else step)
        assert reported is not None
        usage, units = reported
        try:
            if isinstance(step, tuple):
                budget.record_usage("root", usage, units=units)
                history, window = [], window + 1
                continue
            budget.check("root")
            if reminder := budget.pending_reminder("root", str(window)):
                history.append(reminder.text)
                budget.mark_reminder_delivered(reminder)
            told = tuple(history)
            budget.record_usage("root", usage, units=units)
            seen.append(told)
        except TurnAborted:
            if isinstance(step, tuple):
                continue  # a compaction that fails leaves the history
            seen.append(f"{told} sessionBudgetExceeded")
    return seen


def _reminders(request: RecordedRequest) -> tuple[str, ...]:
    developer = [item for item in request.json["input"] if item.get("role") == "developer"]
    texts = "\n".join(part.get("text", "") for item in developer for part in item["content"])
    return tuple(re.findall(r"<rollout_budget>.*?</rollout_budget>", texts, re.DOTALL))


def _answer(request: RecordedRequest, usage: dict[str, Any]) -> Reply:
    usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, **usage}
    message = {
        "type": "message",
        "id": f"message-{request.number}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
    }
    response = {"id": f"response-{request.number}"}
    events = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.completed", "response": {**response, "output": [message], "usage": usage}},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return SendBytes(body.encode(), content_type="text/event-stream")
