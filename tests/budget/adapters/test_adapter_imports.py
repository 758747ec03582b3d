"""An adapter costs only those who use it, and says what to install."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

FRAMEWORKS = {
    "anthropic": ("anthropic", "anthropic"),
    "langchain": ("langchain", "langchain"),
    "litellm": ("litellm", "litellm"),
    "openai": ("openai", "openai"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_missing_framework_is_named_with_the_extra_that_brings_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, extra = FRAMEWORKS[name]
    module = f"stillroom.budget.adapters.{name}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    for loaded in [package, *(known for known in sys.modules if known.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, loaded, None)  # what Python takes for "can't be imported"
    with pytest.raises(ImportError, match=rf"pip install 'stillroom\[{extra}\]'"):
        importlib.import_module(module)


def test_the_ledger_and_the_decorator_import_no_framework() -> None:
    packages = {package for package, _ in FRAMEWORKS.values()}
    code = (
        f"import sys, stillroom.budget, stillroom.budget.adapters.function\nprint(*({packages!r} & sys.modules.keys()))"
    )
    source = str(Path(__file__).parents[3] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": source}, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []
