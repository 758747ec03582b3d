"""The examples of the adapters are short, and run as they stand: with a double of the framework, without a network."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.budget import BudgetExceeded

PROJECT = Path(__file__).parents[3]
NEEDS: dict[str, tuple[str, ...]] = {
    "anthropic": ("anthropic",),
    "function": (),
    "langchain": ("langchain",),
    "openai": ("openai",),
    "openai_agents": ("agents",),
    "pydantic_ai": ("pydantic_ai",),
}
MAX_LINES = 30


@pytest.mark.slow  # each imports its framework anew
@pytest.mark.parametrize("name", NEEDS)
def test_an_example_runs_until_its_budget_is_used_up(name: str, tmp_path: Path) -> None:
    for module in NEEDS[name]:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"`{module}` is not installed: `make adapters` runs this")
    example = PROJECT / "examples" / f"budget_{name}.py"
    assert len(example.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "error", example],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert BudgetExceeded.from_json(done.stdout.splitlines()[-1]).reason == "budget_exceeded"


def test_every_example_is_tried() -> None:
    found = {path.stem.removeprefix("budget_") for path in (PROJECT / "examples").glob("budget_*.py")}
    assert found == set(NEEDS)
