"""What `status` tells is what the store, the folder and the logs hold."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Provider, Settings
from stillroom.insight.status import Status, read_status
from stillroom.pausing import pause
from stillroom.spending import ModelCall, Phase, Usage
from stillroom.store import Stage1Claim, Stage1Draft, Store
from stillroom.store.records import ThreadRead
from stillroom.thread import FileStamp, Thread

NOW = 1_796_029_200  # 2026-11-30T09:00:00Z
DAY = 24 * 3600


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def status_of(settings: Settings, store: Store, clock: FixedClock) -> Status:
    status = read_status(settings, store, clock)
    assert msgspec.json.decode(msgspec.json.encode(status), type=Status) == status
    return status


def save(store: Store, name: str, *, agent: str = "codex", days_ago: float = 1, source: str = "cli") -> None:
    moment = int((NOW - days_ago * DAY) * 1000)
    thread = Thread(
        thread_id=name,
        agent=agent,
        rollout_path=f"/{name}",
        source=source,
        cwd="/p",
        created_at_ms=moment,
        updated_at_ms=moment,
        preview="hello",
        cli_version="1.2",
    )
    store.threads.save([(thread, FileStamp(size=1000, mtime_ns=1))])


def claim(store: Store, settings: Settings, name: str) -> Stage1Claim:
    claims = store.extraction.claim(
        worker_id="w", current_thread_id=None, memories=settings.memories, stage=settings.stage_one, max_claims=100
    )
    for other in claims:
        if other.thread_id != name:
            store.extraction.release(other)
    return next(each for each in claims if each.thread_id == name)


def call(at: int, *, phase: Phase = "extract", cost_usd: float | None = 0.5, outcome: str = "ok") -> ModelCall:
    usage = Usage(input_tokens=100, output_tokens=10)
    return ModelCall(at=at, phase=phase, model="m", outcome=outcome, usage=usage, cost_usd=cost_usd)  # type: ignore[arg-type]


def test_threads_are_counted_by_agent_and_state_and_the_rules_that_exclude_them(settings: Settings) -> None:
    clock = FixedClock(NOW * 1000)
    with Store.open(settings.database, clock=clock) as store:
        for name in ("done", "empty", "broken", "held", "free"):
            save(store, name)
        save(store, "fresh", days_ago=1 / 1440)
        save(store, "script", source="exec", agent="claude-code")
        save(store, "old", days_ago=99, agent="claude-code")
        draft = Stage1Draft(raw_memory="raw", rollout_summary="summary", rollout_slug=None)
        store.extraction.finish(claim(store, settings, "done"), draft, engine="offline")
        store.extraction.finish(claim(store, settings, "empty"), None, engine="offline")
        store.extraction.fail(claim(store, settings, "broken"), reason="disk on fire", retry_delay_seconds=3600)
        claim(store, settings, "held")
        read = ThreadRead(messages=3, tokens=40, bad_lines=1, unknown={"oddity": 2})
        store.reads.save("done", read)
        status = status_of(settings, store, clock)
        # The next pass takes what `status` says that it takes.
        taken = store.extraction.claim(
            worker_id="v", current_thread_id=None, memories=settings.memories, stage=settings.stage_one, max_claims=100
        )
    by_agent = {each.agent: each for each in status.agents}
    assert by_agent["codex"].states == {
        "extracted": 1, "no_output": 1, "failed": 1, "running": 1, "next": 1, "waiting": 1
    }  # fmt: skip
    assert (by_agent["codex"].threads, by_agent["codex"].bytes) == (6, 6000)
    assert by_agent["claude-code"].states == {"excluded": 2}
    assert (by_agent["codex"].excluded, by_agent["claude-code"].excluded) == ({}, {"source": 1, "age": 1})
    assert status.excluded == {"source": 1, "age": 1}
    assert [(each.thread_id, each.decided.until) for each in status.failed] == [("broken", NOW + 3600)]
    assert "disk on fire" in str(status.failed[0].decided.values)
    assert [(each.thread_id, each.decided.values["worker"]) for each in status.running] == [("held", "w")]
    assert status.next_threads == len(taken) == 1
    assert (status.waiting_threads, status.waiting_until) == (1, NOW - 60 + 5 * 60)
    assert (status.worth.outputs, status.worth.citations, status.worth.last_used) == (1, 0, None)
    assert [(each.agent, each.bad_lines) for each in status.reads] == [("codex", 1)]
    assert [(each.kind, each.version, each.records) for each in status.unknown] == [("oddity", "1.2", 2)]
    assert status.consolidation.state == "due"


def test_what_was_spent_today_is_apart_from_what_was_spent_in_all(settings: Settings) -> None:
    clock = FixedClock(NOW * 1000)
    with Store.open(settings.database, clock=clock) as store:
        for each in (call(NOW - 3 * DAY), call(NOW), call(NOW, cost_usd=None, outcome="unavailable")):
            store.ledger.record_call(each)
        store.ledger.record_call(call(NOW - DAY, phase="consolidate"))
        status = status_of(settings, store, clock)
    (today,) = status.spent_today
    assert (today.calls, today.failed_calls, today.unpriced_calls, today.cost_usd) == (2, 1, 1, 0.5)
    assert [(each.phase, each.calls, each.usage.input_tokens) for each in status.spent] == [
        ("consolidate", 1, 100),
        ("extract", 3, 300),
    ]


def test_what_keeps_the_next_pass_from_its_work_is_told_in_its_order(settings: Settings) -> None:
    clock = FixedClock(NOW * 1000)
    cap = Memories(extract_model="p:m", consolidation_model="p:n", max_weighted_tokens_per_day=100)
    with Store.open(settings.database, clock=clock) as store:
        assert status_of(settings, store, clock).obstacles == ()
        elsewhere = Provider(kind="openai-chat", base_url="http://model.invalid/v1")
        capped = msgspec.structs.replace(settings, memories=cap, providers={"p": elsewhere})
        (first,) = status_of(capped, store, clock).obstacles
        assert (first.kind, first.told[:20], first.remedy) == (
            "asks_first",
            "no call of p:m, p:n ",
            "stillroom run --dry-run",
        )
        for model in ("p:m", "p:n"):
            store.ledger.record_call(msgspec.structs.replace(call(NOW), model=model))
        limits = {"primary": {"used_percent": 90.0, "window_minutes": 300, "resets_at": NOW + 60}}
        store.ledger.save_rate_limits("p", json.dumps(limits).encode(), NOW)
        assert [each.kind for each in status_of(capped, store, clock).obstacles] == ["day_cap", "quota"]
        pause(str(settings.home), "2026-11-30T08:00:00Z")
        off = msgspec.structs.replace(settings, memories=Memories(enabled=False))
        assert [each.kind for each in status_of(off, store, clock).obstacles] == ["switched_off", "paused"]


def test_passes_are_told_as_they_ended_also_those_of_which_nothing_can_be_read(settings: Settings) -> None:
    clock = FixedClock(NOW * 1000)
    reports = (
        b'{"extract":{"with_output":2,"no_output":1,"failed":0},"consolidate":{"outcome":"failed","reason":"no disk"}}',
        b'{"extract":{"with_output":0},"consolidate":{"outcome":"skipped","status":"skipped_no_input"}}',
        b'{"skipped":"paused","detail":"since then"}',
        b"\xff not JSON",
    )
    with Store.open(settings.database, clock=clock) as store:
        for number, report in enumerate(reversed(reports)):
            store.ledger.record_pass(NOW + number, report)
        passes = status_of(settings, store, clock).passes
    assert passes[1].consolidation_status == "skipped_no_input"
    assert [(each.skipped, each.with_output, each.consolidation, each.reason) for each in passes] == [
        (None, 2, "failed", "no disk"),
        (None, 0, "skipped", None),
        ("paused", 0, None, "since then"),
        (None, 0, None, "its report can't be read"),
    ]


def test_the_folder_the_pause_and_the_sessions_that_were_told_are_shown(settings: Settings) -> None:
    clock = FixedClock(NOW * 1000)
    settings.root.mkdir()
    (settings.root / "MEMORY.md").write_bytes(b"#" * 10)
    (settings.root / "rollout_summaries").mkdir()
    (settings.root / "rollout_summaries" / "a.md").write_bytes(b"#" * 5)
    (settings.root / "elsewhere").symlink_to("/")
    lines = [json.dumps({"at": NOW - n, "agent": "codex", "thread_id": f"t{n}", "tokens": n}) for n in range(9, -1, -1)]
    (settings.home / "sessions.jsonl").write_text("torn}\n" + "\n".join(lines) + "\n", encoding="utf-8")
    pause(str(settings.home), "2026-11-30T08:00:00Z")
    with Store.open(settings.database, clock=clock) as store:
        status = status_of(settings, store, clock)
    assert (status.folder.exists, status.folder.files, status.folder.handbook_bytes) == (True, 2, 10)
    assert [told.thread_id for told in status.told] == ["t0", "t1", "t2", "t3", "t4"]
    assert status.paused_since == "2026-11-30T08:00:00Z"
    assert status.consolidation.state == "never"
