"""`stillroom list`, `read` and `note` in a home that a real pass filled."""

from __future__ import annotations

import io
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
    assert run_command(["list", "--limit", "2"]) == 0
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


def test_a_note_needs_no_quotes_and_may_come_from_a_pipe(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_command(["note", "Answer", "in", "German."]) == 0
    assert "answer-in-german.md" in capsys.readouterr().out
    pipe = io.TextIOWrapper(io.BytesIO(b"Releases go out on Fridays.\n"))
    monkeypatch.setattr("sys.stdin", pipe)
    assert run_command(["note", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "Releases go out on Fridays."
    assert run_command(["recall"]) == 0
    given = capsys.readouterr().out
    assert "Answer in German." in given and "Releases go out on Fridays." in given


def test_notes_are_listed_and_taken_away_by_a_part_of_their_names(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, text in enumerate(("Prefer tabs.", "Prefer tabs in Go.", "Never push.")):
        run_command(["note", text, "--name", f"2026-11-30T08-00-0{number}-{['tabs-go', 'tabs', 'push'][number]}.md"])
    capsys.readouterr()
    assert run_command(["note", "--list", "--json"]) == 0
    assert [note["text"] for note in json.loads(capsys.readouterr().out)["notes"]] == [
        "Never push.", "Prefer tabs in Go.", "Prefer tabs."
    ]  # fmt: skip
    assert run_command(["note", "--remove", "tabs"]) == 1
    assert "in the names of 2 notes" in capsys.readouterr().err
    assert run_command(["note", "--remove", "nothing"]) == 1
    assert run_command(["note", "--remove", "tabs-go", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "Prefer tabs."
    assert run_command(["note", "--remove", "2026-11-30T08-00-01-tabs"]) == 0
    capsys.readouterr()
    assert run_command(["note", "--list"]) == 0
    assert capsys.readouterr().out == "2026-11-30T08-00-02-push.md  Never push.\n"


@pytest.mark.parametrize("words", [[], ["x", "--list"], ["--list", "--remove", "x"]])
def test_a_note_command_that_says_nothing_or_two_things_exits_2(home: Path, words: list[str]) -> None:
    assert run_command(["note", *words]) == 2


def test_no_note_is_removed_over_a_link(home: Path, tmp_path: Path) -> None:
    run_command(["note", "Prefer tabs."])
    notes = next(home.rglob("ad_hoc")) / "notes"
    (tmp_path / "kept.md").write_text("kept")
    (notes / "2026-11-30T08-00-00-link.md").symlink_to(tmp_path / "kept.md")
    assert run_command(["note", "--remove", "link"]) == 1
    assert (tmp_path / "kept.md").exists()
