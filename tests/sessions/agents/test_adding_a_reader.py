"""The reader that `docs/adding-a-reader.md` builds reads the session that stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from golden import describe, seen_again

from stillroom.sessions.discovery import Found, Unchanged
from stillroom.sessions.readers import Reader

PAGE = Path(__file__).parents[3] / "docs" / "adding-a-reader.md"
READ = """\
# tidy-otter
file: sessions/tidy-otter.jsonl
source: cli  parent: None  version: None
cwd: /home/dev/app  branch: None  title: ''  preview: 'Make the check pass.'
  user: 'Make the check pass.'
  shell 'make check' -> exit 3, ok False: 'no such module'
  assistant (final): 'A module is missing.'
left out: 1 seen before  unknown: {'mood': 1}  superseded: 0
"""


def block(language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return cast("str", text)


@pytest.fixture
def quill(monkeypatch: pytest.MonkeyPatch) -> Reader:
    module = ModuleType("quill")
    monkeypatch.setitem(sys.modules, "quill", module)
    exec(compile(block("python"), PAGE, "exec"), module.__dict__)
    return cast("Reader", module)


def test_the_reader_of_the_page_reads_its_session(quill: Reader, tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "tidy-otter.jsonl"
    path.parent.mkdir()
    path.write_text(block("jsonl") + '{"kind":"model","text":"torn', encoding="utf-8")
    assert describe(quill, tmp_path) == READ
    assert seen_again(quill, tmp_path) == {Unchanged}
    (found,) = quill.discover(tmp_path, {}, max_line_bytes=1 << 20)
    assert isinstance(found, Found)
    assert list(quill.refreshed(tmp_path, [found.thread])) == []
    path.write_bytes(b"\x00[garbage\n" + b"[" * 5000 + b'\n{"kind":[1],"id":{},"text":7}\n7\n')
    assert "left out: nothing  unknown: {'': 1}" in describe(quill, tmp_path)


def test_the_example_is_short() -> None:
    lines = [line for line in block("python").splitlines() if line and not line.startswith(("from ", "import "))]
    assert len(lines) <= 45
