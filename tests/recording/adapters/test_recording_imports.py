"""An adapter costs only those who use it, and says what to install."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("openai_agents", "agents", "openai-agents"), ("pydantic_ai", "pydantic_ai", "pydantic-ai")],
)
def test_a_missing_framework_is_named_with_the_extra_that_brings_it(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in ("budget", "recording"):
        monkeypatch.delitem(sys.modules, f"stillroom.{room}.adapters.{name}", raising=False)
    for loaded in [package, *(known for known in sys.modules if known.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, loaded, None)  # what Python takes for "can't be imported"
    with pytest.raises(ImportError, match=rf"pip install 'stillroom\[{extra}\]'"):
        importlib.import_module(f"stillroom.recording.adapters.{name}")
