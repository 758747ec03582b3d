"""`stillroom list`, `read` and `note` in a home that a real pass filled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from stillroom.cli.app import run_command

PROJECT = Path(__file__).parents[2]
NOW = "2026-11-30T09:00:00Z"
LATER = "2026-11-30T19:00:00Z"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(PROJECT / "examples" / "codex-home", tmp_path / "codex")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_note_is_listed_read_and_taken_up_by_the_next_consolidation(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["run", "--backfill", "--now", NOW]) == 0
    assert run_command(["note", "Always deploy shopfront with `make ship`, never by hand."]) == 0
    path = capsys.readouterr().out.strip()
    assert run_command(["list", "extensions/ad_hoc/notes"]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert run_command(["run", "--now", LATER, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["consolidate"]
    assert (report["outcome"], report["changed"]) == ("consolidated", [f"A {path}"])
    for file in ("memory_summary.md", "MEMORY.md"):
        assert run_command(["read", file]) == 0
        text = capsys.readouterr().out
        assert "Always deploy shopfront with `make ship`, never by hand. [ad-hoc note]" in text
    assert (home / "memories" / path).exists()


def test_a_note_is_the_first_thing_in_an_empty_home(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["note", "Prefer tabs.", "--name", "2026-11-30T08-00-00-tabs.md", "--json"]) == 0
    note = json.loads(capsys.readouterr().out)
    assert note == {"path": "extensions/ad_hoc/notes/2026-11-30T08-00-00-tabs.md", "text": "Prefer tabs."}
    assert run_command(["run", "--now", NOW]) == 0
    assert "Prefer tabs." in (home / "memories" / "memory_summary.md").read_text(encoding="utf-8")


def test_lines_pages_and_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "memories").mkdir(parents=True)
    for name in "abc":
        (home / "memories" / f"{name}.md").write_text("one\ntwo\nthree", encoding="utf-8")
    assert run_command(["list", "--max", "2"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a.md\nb.md\n", "there is more: --cursor 2\n")
    assert run_command(["list", "--cursor", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entries"] == [{"path": "c.md", "entry_type": "file"}]
    assert run_command(["read", "a.md", "--line", "2", "--lines", "1"]) == 0
    assert capsys.readouterr().out == "two\n"
    assert run_command(["read", "a.md", "--line", "3"]) == 0
    assert capsys.readouterr().out == "three\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["list"], 1, "there is no memory folder"),
        (["read", "../x"], 1, "is no path inside the memory folder"),
        (["read", "MEMORY.md", "--line", "0"], 2, "--line"),
        (["note", " "], 1, "the note is empty"),
        (["note", "x", "--name", "x.md"], 1, "YYYY-MM-DDTHH-MM-SS"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_a_hint(
    home: Path, words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(words) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert message in shown.err
    assert "hint: " in shown.err or code == 1
