"""Ten cycles in which an agent is told its memory, says it, cites it and looks it up change nothing in the folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, Source
from stillroom.extract.reading import read_text
from stillroom.pipeline import Options, run_pipeline
from stillroom.recall.injection.instructions import Instructions, instructions
from stillroom.store import Store
from stillroom.testing import LoopbackModel, RecordedRequest, Reply, Say

START = 1_796_029_200
DAY = 24 * 3600
CAUSE = "The integration tests hang because `seed_db` waits for the lock file `tmp/seed.lock` of a killed run"
CWD = "/home/dev/app"


def message(role: str, text: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def ran(name: str, arguments: dict[str, object], output: str, *, code: int = 0) -> list[dict[str, object]]:
    call_id = f"c{abs(hash((name, output))) % 10**9}"
    return [
        {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": call_id},
        {"type": "function_call_output", "call_id": call_id, "output": f"Exit code: {code}\nOutput:\n{output}"},
    ]


def record(codex: Path, number: int, items: list[dict[str, object]]) -> str:
    """One session of Codex's."""
    thread_id = f"01900000-0000-7000-8000-{number:012x}"
    stamp = f"2026-11-{number + 1:02d}T09:00:00.000Z"
    meta = {"id": thread_id, "timestamp": stamp, "cwd": CWD, "originator": "codex_cli_rs", "cli_version": "0.171.0"}
    lines = [("session_meta", {**meta, "source": "cli"}), *(("response_item", item) for item in items)]
    path = (
        codex
        / "sessions"
        / "2026"
        / "11"
        / f"{number + 1:02d}"
        / f"rollout-2026-11-{number + 1:02d}T09-00-00-{thread_id}.jsonl"
    )
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps({"timestamp": stamp, "type": k, "payload": p}) + "\n" for k, p in lines))
    return thread_id


def first_session() -> list[dict[str, object]]:
    return [
        message(
            "user", "The integration tests hang. Find out why. And always run them with `make integration`, please."
        ),
        *ran("exec_command", {"cmd": "make integration"}, "seed_db: waiting for tmp/seed.lock\nTimeout", code=1),
        *ran("exec_command", {"cmd": "rm tmp/seed.lock && make integration"}, "34 passed"),
        message("assistant", f"Found the cause. {CAUSE}. I removed it and all 34 tests pass."),
    ]


def echoing_session(settings: Settings, number: int) -> list[dict[str, object]]:
    """Told it, says it, looks it up in three ways, cites it."""
    told = instructions(settings, CWD)
    assert isinstance(told, Instructions)
    handbook = (settings.root / "MEMORY.md").read_text(encoding="utf-8")
    mcp = json.dumps({"path": "MEMORY.md", "content": handbook})
    citation = (
        "<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-9|note=[hang]\n</citation_entries>\n</oai-mem-citation>"
    )
    said = [line.lstrip("- ") for line in handbook.splitlines() if line.startswith("- ")]
    ways = [
        ran("exec_command", {"cmd": f"cat {settings.root}/MEMORY.md"}, handbook),
        ran("exec_command", {"cmd": f"rg -n hang {settings.root}"}, handbook),
        ran("mcp__stillroom__read", {"path": "MEMORY.md"}, mcp),
        ran("exec_command", {"cmd": "stillroom search 'integration tests hang'"}, handbook),
    ]
    return [
        message("developer", told.text),
        message("user", "The integration tests hang again. What do you know about the cause?"),
        *ways[number % 4],
        message("assistant", "I looked into the memory. " + "\n".join(said)),
        *ways[(number + 1) % 4],
        message("assistant", f"The cause is known: {CAUSE}. So {CAUSE[0].lower()}{CAUSE[1:]}.\n{citation}"),
    ]


@pytest.mark.anyio
async def test_ten_cycles_of_an_agent_that_repeats_its_memory_change_nothing(tmp_path: Path) -> None:
    codex = tmp_path / "codex"
    memories = Memories(max_rollouts_per_startup=16, max_rollout_age_days=90, max_unused_days=365)
    settings = Settings(home=tmp_path / "home", memories=memories, sources=(Source(format="codex", root=str(codex)),))
    clock = FixedClock(START * 1000)
    record(codex, 0, first_session())
    await run_pipeline(settings, options=Options(backfill=True), clock=clock)
    before = {path: path.read_bytes() for path in sorted(settings.root.rglob("*")) if path.is_file()}
    assert b"seed_db" in before[settings.root / "MEMORY.md"]
    for cycle in range(1, 11):
        clock.advance(seconds=DAY)
        thread_id = record(codex, cycle, echoing_session(settings, cycle))
        await run_pipeline(settings, options=Options(backfill=True), clock=clock)
        after = {path: path.read_bytes() for path in sorted(settings.root.rglob("*")) if path.is_file()}
        assert after == before
        with Store.open(settings.database, clock=clock) as store:
            thread = store.threads.get(thread_id)
        assert thread is not None
        for form in ("string", "evidence"):  # nor is a model given anything to repeat
            text = read_text(
                thread,
                form=form,
                token_limit=100_000,
                refuse_external=False,
                stage=settings.stage_one,
                redact=str,
                root=settings.root,
            )
            assert "What do you know" in text.rendered.text
            assert "seed_db" not in text.rendered.text


@pytest.mark.anyio
async def test_a_model_has_nothing_to_repeat_either(tmp_path: Path) -> None:
    """It keeps whatever it is shown of the cause; of ten sessions that were told it, it is shown nothing."""
    codex = tmp_path / "codex"
    kept: list[int] = []

    def keep(request: RecordedRequest) -> Reply:
        shown = request.body.decode()
        if "seed_db" not in shown:
            return Say(json.dumps({"raw_memory": "", "rollout_summary": "", "rollout_slug": ""}))
        kept.append(request.number)
        raw = (
            f"---\ndescription: tests\ntask: tests\ntask_group: app\ntask_outcome: success\ncwd: {CWD}\n"
            f"keywords: tests\n---\n\n### Task 1: tests\n\ntask: tests\ntask_group: app\ntask_outcome: success\n\n"
            f"Reusable knowledge:\n- {CAUSE}\n"
        )
        return Say(json.dumps({"raw_memory": raw, "rollout_summary": f"# Tests\n\n- {CAUSE}\n", "rollout_slug": "t"}))

    with LoopbackModel(keep) as server:
        settings = Settings(
            home=tmp_path / "home",
            memories=Memories(
                max_rollouts_per_startup=16,
                max_rollout_age_days=90,
                max_unused_days=365,
                extract_model="loopback:m",
                ask_above_weighted_tokens=10**9,
            ),
            sources=(Source(format="codex", root=str(codex)),),
            providers={"loopback": server.provider()},
        )
        clock = FixedClock(START * 1000)
        record(codex, 0, first_session())
        options = Options(backfill=True, agreed=True)
        await run_pipeline(settings, options=options, clock=clock)
        before = {path: path.read_bytes() for path in sorted(settings.root.rglob("*")) if path.is_file()}
        assert CAUSE.encode() in before[settings.root / "MEMORY.md"]
        for cycle in range(1, 11):
            clock.advance(seconds=DAY)
            record(codex, cycle, echoing_session(settings, cycle))
            report = await run_pipeline(settings, options=options, clock=clock)
            assert report.extract is not None and report.extract.failed == 0
            assert report.extract.no_output == 1
            assert {path: path.read_bytes() for path in sorted(settings.root.rglob("*")) if path.is_file()} == before
    assert len(kept) == 1
