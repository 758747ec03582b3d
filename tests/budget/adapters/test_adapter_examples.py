"""The examples of the adapters are short, and run as they stand: with a double of the framework, without a network."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path

import pytest

from stillroom.budget import BudgetExceeded

EXAMPLES = Path(__file__).parents[3] / "examples"
NEEDS = {
    "anthropic": "anthropic",
    "function": "stillroom",
    "langchain": "langchain",
    "litellm": "litellm",
    "openai": "openai",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
}
MAX_LINES = 30


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NEEDS)
def test_an_example_runs_until_its_budget_is_used_up(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = importlib.util.find_spec(NEEDS[name])
    if found is None or found.origin is None:  # a folder of tests that is called `agents` is no package
        pytest.skip(f"`{NEEDS[name]}` is not installed: `make adapters` runs this")
    example = EXAMPLES / f"budget_{name}.py"
    assert len(example.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
    runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert BudgetExceeded.from_json(printed[-1]).reason == "budget_exceeded"


def test_every_example_is_tried() -> None:
    assert {path.stem.removeprefix("budget_") for path in EXAMPLES.glob("budget_*.py")} == set(NEEDS)
