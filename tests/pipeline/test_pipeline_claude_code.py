from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from stillroom.clock import FixedClock
from stillroom.config import Settings, load_settings
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.testing import sample_rollout

SAMPLES = Path(__file__).parents[1] / "data" / "claude-code"
NOW_MS = 1_796_029_200_000  # 2026-11-30T09:00:00Z


def settings(tmp_path: Path, layout: str) -> Settings:
    """As the command line has them where the agents' homes are."""
    environ = {"CODEX_HOME": str(tmp_path / "codex"), "CLAUDE_CONFIG_DIR": str(SAMPLES / layout)}
    return load_settings(home=tmp_path / "home", environ=environ)


def run(given: Settings) -> PipelineReport:
    given.home.mkdir(exist_ok=True)
    return asyncio.run(run_pipeline(given, options=Options(backfill=True), clock=FixedClock(NOW_MS)))


def test_claude_codes_sessions_become_memory_beside_codexs(tmp_path: Path):
    sample_rollout(tmp_path / "codex", number=0, started_at_ms=NOW_MS - 86_400_000)
    given = settings(tmp_path, "2.1.332-interactive-hooks")
    report = run(given)
    assert not report.failed
    assert report.threads is not None
    assert (report.threads.found, report.threads.broken) == (5, ())
    raw = (given.root / "raw_memories.md").read_text(encoding="utf-8")
    # In one session nothing happened, and a sub-agent's is not asked.
    assert report.extract is not None
    assert (report.extract.with_output, report.extract.no_output) == (3, 1)
    assert raw.count("## Thread `") == 3
    assert "1a9c50b4-6b45-491a-8d16-7235a743075f" in raw
    memory = (given.root / "MEMORY.md").read_text(encoding="utf-8")
    assert "unittest" in memory
    # They went back behind it.
    assert "pytest style" not in memory
    assert "MEMORY: past session learned" not in memory
    again = run(given)
    assert again.threads is not None
    assert (again.threads.found, again.threads.unchanged, again.threads.missing) == (0, 5, 0)


def test_headless_sessions_are_known_and_never_remembered(tmp_path: Path):
    given = settings(tmp_path, "2.1.332-headless")
    report = run(given)
    assert report.threads is not None
    assert report.threads.found > 0
    assert report.extract is not None
    assert report.extract.claimed == 0


def test_the_threads_of_a_source_that_was_removed_are_missing_and_come_back(tmp_path: Path):
    given = settings(tmp_path, "2.1.332-interactive-hooks")
    run(given)
    without = run(msgspec.structs.replace(given, sources=given.sources[:1]))
    assert without.threads is not None
    assert without.threads.missing == 4
    back = run(given)
    assert back.threads is not None
    assert back.threads.found == 4
