"""The extraction's request as a real llama.cpp server takes it: schema, roles, limits, and its own errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.llama_server import running

from stillroom.config import Memories, Provider, Settings, Source, StageOne
from stillroom.errors import ContextTooLong, InvalidReply, StillroomError
from stillroom.extract.outcome import Failed
from stillroom.extract.prompt import system_prompt
from stillroom.extract.schema import SCHEMA, SCHEMA_NAME
from stillroom.models import StructuredRequest, open_structured
from stillroom.pipeline import Options, run_pipeline
from stillroom.stopping import Stop
from stillroom.store import Store
from stillroom.testing import FixedClock, ListLedger, sample_rollout

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]
HERE = Path(__file__).parent
STARTED_MS = 1_780_300_000_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    for package in ("xllamacpp", "gguf"):
        pytest.importorskip(package, reason=f"`{package}` has no build for this machine")
    model = tmp_path_factory.mktemp("model") / "tiny.gguf"
    with running(str(HERE / "tiny_model.py"), str(model)) as at:
        yield at


def fault_of(address: str, tmp_path: Path, user: str, ledger: ListLedger, *, max_output_tokens: int) -> StillroomError:
    settings = Settings(
        home=tmp_path,
        providers={"llama": Provider(kind="openai-chat", base_url=f"{address}/v1")},
        stage_one=StageOne(request_attempts=1),
    )
    request = StructuredRequest(
        system=system_prompt(),
        user=user,
        schema=SCHEMA,
        schema_name=SCHEMA_NAME,
        effort="low",
        max_output_tokens=max_output_tokens,
        thread_id=None,
    )

    model = open_structured("llama:tiny", settings, ledger=ledger, clock=FixedClock(0), redact=str)
    with pytest.raises(StillroomError) as caught:
        model.complete(request, stop=Stop())
    model.close()
    return caught.value


def test_an_answer_that_is_cut_off_is_no_memory_but_its_tokens_are_counted(address: str, tmp_path: Path) -> None:
    ledger = ListLedger()
    error = fault_of(address, tmp_path, "x", ledger, max_output_tokens=16)
    assert isinstance(error, InvalidReply) and "cut off (`length`)" in str(error)
    [call] = ledger.calls
    assert call.usage.output_tokens == 16
    assert call.usage.input_tokens > len(system_prompt().encode())


def test_an_input_beyond_the_window_is_told_apart(address: str, tmp_path: Path) -> None:
    ledger = ListLedger()
    assert isinstance(fault_of(address, tmp_path, "x" * 17_000, ledger, max_output_tokens=16), ContextTooLong)
    assert [call.outcome for call in ledger.calls] != ["ok"]


def test_a_session_beyond_the_window_is_halved_once_and_then_fits(address: str, tmp_path: Path) -> None:
    sample_rollout(tmp_path / "codex", size_bytes=9000, started_at_ms=STARTED_MS)
    settings = Settings(
        home=tmp_path / "home",
        memories=Memories(extract_model="llama:tiny", default_sources=False),
        providers={"llama": Provider(kind="openai-chat", base_url=f"{address}/v1")},
        sources=(Source(format="codex", root=str(tmp_path / "codex")),),
        stage_one=StageOne(max_reply_tokens=16),
    )
    clock = FixedClock(STARTED_MS + 24 * 3600 * 1000)

    report = asyncio.run(run_pipeline(settings, options=Options(backfill=True), clock=clock))

    assert report.extract is not None
    [outcome] = report.extract.outcomes
    assert isinstance(outcome, Failed) and "cut off (`length`) after 16 tokens" in outcome.reason
    with Store.open(settings.database, clock=clock) as store:
        last, first = store.ledger.calls()
    assert (first.outcome, last.outcome) == ("context_too_long", "invalid")
    assert len(system_prompt()) < last.usage.input_tokens < 16_384
