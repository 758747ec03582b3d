"""The examples of `docs/budget.md` run, one after the other, as a reader would type them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "budget.md"


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path))
    text = PAGE.read_text(encoding="utf-8")
    examples = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert len(examples) > 5
    names: dict[str, object] = {}
    for example in examples:
        line = text.count("\n", 0, example.start()) + 1
        exec(compile("\n" * line + example[1], PAGE, "exec"), names)
