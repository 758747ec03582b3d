"""What the command prints reaches whoever reads it, in any locale and from any folder."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from stillroom.cli.app import run_command
from stillroom.cli.output import prepare_stdout, print_data
from stillroom.integrations.event import Event


def _printed(monkeypatch: pytest.MonkeyPatch, text: str, *, encoding: str, terminal: bool = False) -> bytes:
    class Stream(io.TextIOWrapper):
        def isatty(self) -> bool:
            return terminal

    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Stream(raw, encoding=encoding))
    prepare_stdout()
    print_data(text)
    sys.stdout.flush()
    return raw.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "utf-8"])
def test_what_is_piped_is_utf_8_in_every_locale(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    assert _printed(monkeypatch, "测试 … é", encoding=encoding) == "测试 … é\n".encode()


def test_a_terminal_shows_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    assert _printed(monkeypatch, "测 é", encoding="latin-1", terminal=True) == "? é\n".encode("latin-1")


def test_who_asked_for_an_encoding_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    assert _printed(monkeypatch, "测 é", encoding="latin-1") == "? é\n".encode("latin-1")


def test_a_folder_that_was_deleted_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run_command(["recall"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: the folder that you are in is gone",
        "hint: change to another one: `cd`",
    ]
    monkeypatch.setenv("PWD", str(gone))
    assert Event("codex", "session-start", {}).cwd == str(gone)
