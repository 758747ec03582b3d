"""The examples of the adapters in `docs/recorder.md` run: with a double of the framework, without a network."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from stillroom.sessions.discovery import Found
from stillroom.sessions.readers import reader_of

PAGE = Path(__file__).parents[3] / "docs" / "recorder.md"


@pytest.mark.parametrize("framework", ["pydantic_ai", "agents"])
def test_an_adapters_example_records_a_thread(framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec(framework)
    if found is None or found.origin is None:  # a folder of tests that is called `agents` is no package
        pytest.skip(f"`{framework}` is not installed: `make adapters` runs this")
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path))
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (example,) = (block for block in blocks if f"from {framework} import" in block)
    exec(compile(example, PAGE, "exec"), {})
    (thread,) = (
        each.thread
        for each in reader_of("stillroom").discover(tmp_path, {}, max_line_bytes=1 << 23)
        if isinstance(each, Found)
    )
    assert thread.preview == "How many lamps are left?"
