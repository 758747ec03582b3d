"""The example of `docs/recorder.md` runs, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stillroom.sessions.discovery import Found
from stillroom.sessions.readers import reader_of

PAGE = Path(__file__).parents[2] / "docs" / "recorder.md"


def examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def previews(home: Path) -> list[str]:
    found = reader_of("stillroom").discover(home, {}, max_line_bytes=1 << 23)
    return [each.thread.preview for each in found if isinstance(each, Found)]


def test_the_first_example_records_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path))
    exec(compile(examples()[0], PAGE, "exec"), {})
    assert previews(tmp_path) == ["Which tests fail?"]
