"""What is exported is read by those whose formats it is: the real Codex CLI, and Harbor's own models of ATIF."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.interop.codex_client import CodexServer, write_config

from stillroom import Recorder, load_settings
from stillroom.clock import SystemClock
from stillroom.recording.exporting.export import ExportFormat, export_thread, find_thread
from stillroom.testing import LoopbackModel, RecordedRequest, Reply, Say

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]


def _exported(tmp_path: Path, format: ExportFormat) -> bytes:
    home = tmp_path / "stillroom"
    with Recorder("shop-bot", cwd=tmp_path, thread_id="ticket-7", home=home) as recorder:
        recorder.user("Run the checks with `make verify`.")
        recorder.tool_result(recorder.tool_call("shell", {"command": "make verify"}), "3 checks", exit_code=0)
        recorder.tool_result(recorder.tool_call("look"), {"a": 1}, ok=False)
        recorder.from_agent("The cause is in money.py.", author="reviewer")
        recorder.assistant("They pass.")
    settings = load_settings(home=home)
    thread = find_thread(settings, "ticket", clock=SystemClock())
    return b"".join(export_thread(settings, thread, format=format))


def test_the_real_codex_goes_on_with_an_exported_thread(binary: Path, tmp_path: Path) -> None:
    rollout = _exported(tmp_path, "codex")
    thread_id = json.loads(rollout.splitlines()[0])["payload"]["id"]
    codex_home = tmp_path / "codex"
    folder = codex_home / "sessions" / "2026" / "11" / "29"
    folder.mkdir(parents=True)
    (folder / f"rollout-2026-11-29T12-00-00-{thread_id}.jsonl").write_bytes(rollout)
    asked: list[RecordedRequest] = []

    def answer(request: RecordedRequest) -> Reply:
        asked.append(request)
        return Say("Going on.")

    with LoopbackModel(answer) as model:
        write_config(codex_home, model.base_url, memories=False)
        with CodexServer(binary, codex_home) as codex:
            codex.request("thread/resume", {"threadId": thread_id})
            codex.turn(thread_id, "And now?")
    sent = json.dumps(asked[-1].json["input"])
    for told in ("make verify", "3 checks", "execution error: ", "money.py", "They pass.", "And now?"):
        assert told in sent, told


def test_harbors_own_models_take_an_exported_trajectory(tmp_path: Path) -> None:
    models = pytest.importorskip(
        "harbor.models.trajectories", reason="Harbor is not installed: it needs Python 3.12, `pip install harbor`"
    )
    trajectory = models.Trajectory.model_validate_json(_exported(tmp_path, "atif"))
    assert trajectory.session_id == "ticket-7" and len(trajectory.steps) == 5
