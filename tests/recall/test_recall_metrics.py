"""The metric of the memory tools, read as a host program with the OpenTelemetry SDK would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stillroom import telemetry
from stillroom.clock import FixedClock
from stillroom.errors import RecallError
from stillroom.recall.browse.tools import (
    ListRequest,
    ReadRequest,
    SearchRequest,
    call_list,
    call_note,
    call_read,
    call_search,
)

sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason="the OpenTelemetry SDK is not installed")
export = pytest.importorskip("opentelemetry.sdk.metrics.export")


def test_every_call_is_counted_with_what_it_was_about_and_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = export.InMemoryMetricReader()
    provider = sdk.MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    monkeypatch.setattr(telemetry, "_meter", lambda: provider.get_meter(telemetry.METER))
    telemetry._instrument.cache_clear()
    (tmp_path / "MEMORY.md").write_text("one\ntwo\n", encoding="utf-8")

    call_list(tmp_path, ListRequest())
    call_read(tmp_path, ReadRequest(path="MEMORY.md", max_lines=1))
    call_search(tmp_path, SearchRequest(queries=["o"], max_results=1))
    call_note(tmp_path, "x", name=None, clock=FixedClock(0), redaction="typed")
    with pytest.raises(RecallError):
        call_read(tmp_path, ReadRequest(path="skills/none.md"))

    assert _points(reader, "stillroom.memories.tool.call") == {
        ("list", "root", "succeeded", "false"): 1,
        ("read", "memory_md", "succeeded", "true"): 1,
        ("search", "all", "succeeded", "true"): 1,
        ("add_ad_hoc_note", "ad_hoc_notes", "succeeded", "not_applicable"): 1,
        ("read", "skills", "failed", "unknown"): 1,
    }
    telemetry._instrument.cache_clear()


def _points(reader: Any, name: str) -> dict[tuple[str, ...], int]:
    data = reader.get_metrics_data()
    metrics = [metric for found in data.resource_metrics for scope in found.scope_metrics for metric in scope.metrics]
    (points,) = (metric.data.data_points for metric in metrics if metric.name == name)
    tags = ("tool", "scope", "status", "truncated")
    return {tuple(point.attributes[tag] for tag in tags): point.value for point in points}
