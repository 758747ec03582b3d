"""The extraction's request as a real llama.cpp server takes it: schema, roles, limits, and its own errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.llama_server import running

from stillroom.config import Provider, Settings, StageOne
from stillroom.errors import ContextTooLong, InvalidReply, StillroomError
from stillroom.extract.prompt import system_prompt
from stillroom.extract.schema import SCHEMA, SCHEMA_NAME
from stillroom.models import StructuredRequest, open_structured
from stillroom.stopping import Stop
from stillroom.testing import FixedClock, ListLedger

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]
HERE = Path(__file__).parent


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
