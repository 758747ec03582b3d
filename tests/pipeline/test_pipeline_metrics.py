"""The metrics of a pass, read as a host program with the OpenTelemetry SDK would: names and tags of spec §1.12."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from stillroom import telemetry
from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, Source
from stillroom.consolidate.outcome import Consolidated
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.spending import Usage
from stillroom.store import Store
from stillroom.testing import SAMPLE_MEMORY, CallTool, LoopbackModel, RecordedRequest, Reply, Say

sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason="the OpenTelemetry SDK is not installed")
export = pytest.importorskip("opentelemetry.sdk.metrics.export")

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z
SUMMARY = "v1\n\n## User Profile\n\n## User preferences\n\n## General Tips\n\n## What's in Memory\n"


class Metrics:
    """What was sent since the last look: counters by name and tags, histograms as the number of values."""

    def __init__(self) -> None:
        self.reader = export.InMemoryMetricReader(
            preferred_temporality={
                sdk.Counter: export.AggregationTemporality.DELTA,
                sdk.Histogram: export.AggregationTemporality.DELTA,
            }
        )
        self.provider = sdk.MeterProvider(metric_readers=[self.reader], shutdown_on_exit=False)

    def sent(self) -> dict[str, int]:
        data = self.reader.get_metrics_data()
        found: dict[str, int] = {}
        for resource in data.resource_metrics if data else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in metric.data.data_points:
                    tags = ",".join(str(value) for value in point.attributes.values())
                    name = f"{metric.name}{{{tags}}}" if tags else metric.name
                    found[name] = point.value if hasattr(point, "value") else point.count
        return found


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Iterator[Metrics]:
    # The process may have one provider only; the meter of this one is put where Stillroom keeps its own.
    found = Metrics()
    telemetry._instrument.cache_clear()
    monkeypatch.setattr(telemetry, "_meter", lambda: found.provider.get_meter(telemetry.METER))
    yield found
    telemetry._instrument.cache_clear()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    shutil.copytree(CODEX_HOME, tmp_path / "codex")
    return Settings(home=tmp_path / "home", sources=(Source(format="codex", root=str(tmp_path / "codex")),))


async def run(settings: Settings, *, now: int = DAY_AFTER) -> PipelineReport:
    return await run_pipeline(settings, options=Options(backfill=True), clock=FixedClock(now))


class Model:
    """Extracts the sample; consolidates in one turn, by patch, so that it works without a shell too."""

    def __init__(self, handbook: str = "") -> None:
        self.turns = 0
        self.handbook = handbook

    def __call__(self, request: RecordedRequest) -> Reply:
        if not request.json.get("tools"):
            return Say(SAMPLE_MEMORY)
        self.turns += 1
        if self.turns == 1:
            return CallTool("write", {"path": "MEMORY.md", "content": self.handbook})
        if self.turns == 2:
            return CallTool("write", {"path": "memory_summary.md", "content": SUMMARY})
        return Say("done")


def with_model(settings: Settings, server: LoopbackModel) -> Settings:
    memories = Memories(extract_model="loopback:m", consolidation_model="loopback:m", jail="files")
    return msgspec.structs.replace(settings, memories=memories, providers={"loopback": server.provider()})


@pytest.mark.anyio
async def test_a_pass_by_the_rules_sends_its_counts_and_no_tokens(settings: Settings, metrics: Metrics) -> None:
    report = await run(settings)
    assert report.extract is not None
    sent = metrics.sent()
    assert sent == {
        "stillroom.memory.phase1{claimed}": 6,
        "stillroom.memory.phase1{succeeded}": report.extract.with_output,
        "stillroom.memory.phase1{succeeded_no_output}": report.extract.no_output,
        "stillroom.memory.phase1.output": report.extract.with_output,
        "stillroom.memory.phase1.e2e_ms": 1,
        "stillroom.memory.phase2{claimed}": 1,
        "stillroom.memory.phase2.input": report.extract.with_output,
        "stillroom.memory.phase2{succeeded}": 1,
        "stillroom.memory.phase2.e2e_ms": 1,
    }


@pytest.mark.anyio
async def test_a_pass_without_work_says_so(settings: Settings, metrics: Metrics) -> None:
    await run(settings)
    metrics.sent()
    await run_pipeline(settings, clock=FixedClock(DAY_AFTER))
    assert metrics.sent() == {
        "stillroom.memory.phase1{skipped_no_candidates}": 1,
        "stillroom.memory.phase2{claimed}": 1,
        "stillroom.memory.phase2.input": 3,
        "stillroom.memory.phase2{succeeded_no_workspace_changes}": 1,
        "stillroom.memory.phase2.e2e_ms": 1,
    }


@pytest.mark.anyio
async def test_a_model_s_tokens_are_sent_and_reported_for_both_phases(settings: Settings, metrics: Metrics) -> None:
    with LoopbackModel(Model("# Memory\n")) as server:
        report = await run(with_model(settings, server))
    assert isinstance(report.consolidate, Consolidated)
    assert report.consolidate.usage is not None
    assert report.consolidate.usage.input_tokens > 0
    sent = metrics.sent()
    assert sent["stillroom.memory.phase2{agent_spawned}"] == 1
    for phase in ("phase1", "phase2"):
        for token_type, _ in Usage().by_type():
            assert sent[f"stillroom.memory.{phase}.token_usage{{{token_type}}}"] == 1


@pytest.mark.anyio
async def test_what_a_failed_agent_spent_is_reported(settings: Settings, metrics: Metrics) -> None:
    with LoopbackModel(Model("")) as server:
        server_settings = with_model(settings, server)
        report = await run(server_settings)
    # The offline engine takes its place, and what the agent spent is told all the same.
    assert isinstance(report.consolidate, Consolidated), report.consolidate
    assert report.consolidate.fallback_reason is not None
    assert report.consolidate.usage is not None
    with Store.open(settings.database, clock=FixedClock(DAY_AFTER)) as store:
        calls = [call for call in store.ledger.calls() if call.phase == "consolidate"]
    assert report.consolidate.usage.output_tokens == sum(call.usage.output_tokens for call in calls)


@pytest.mark.anyio
@pytest.mark.parametrize("phase", ["extract_model", "consolidation_model"])
async def test_a_guarded_pass_sends_one_count(settings: Settings, metrics: Metrics, phase: str) -> None:
    headers = {"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "1"}
    headers["x-ratelimit-reset-requests"] = "1h"
    with LoopbackModel(Say(SAMPLE_MEMORY), headers=headers) as server:
        first = with_model(settings, server)
        memories = msgspec.structs.replace(Memories(jail="files"), **{phase: "loopback:m"})
        first = msgspec.structs.replace(first, memories=memories)
        await run(first)
        assert server.count
        metrics.sent()
        report = await run(first)
    assert report.guard is not None
    assert not report.guard.allowed, report.guard
    assert metrics.sent() == {"stillroom.memory.startup{skipped_rate_limit}": 1}
