"""Who stops a command is told what is so: whether something was begun that others finish."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stillroom.cli.app import COMMANDS, Command, run_command
from stillroom.undoing import unfinished


def stopped() -> int:
    raise KeyboardInterrupt


@pytest.fixture
def interrupted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path], tuple[int, str]]:
    monkeypatch.setitem(COMMANDS, "stopped", Command(f"{__name__}:stopped", "Every day", "Is interrupted."))

    def tell(home: Path) -> tuple[int, str]:
        return run_command(["stopped", "--home", str(home)]), capsys.readouterr().err

    return tell


def test_nothing_is_left_where_nothing_was_begun(
    interrupted: Callable[[Path], tuple[int, str]], tmp_path: Path
) -> None:
    assert interrupted(tmp_path / "none") == (130, "interrupted; nothing is left half done\n")


@pytest.mark.parametrize("begun", ["taking back", "publishing"])
def test_what_was_begun_is_said_to_be_finished_later(
    interrupted: Callable[[Path], tuple[int, str]], tmp_path: Path, begun: str
) -> None:
    if begun == "taking back":
        unfinished.begin(tmp_path, unfinished.Redacting(at=1))
    else:
        (tmp_path / "staging" / "1-ab").mkdir(parents=True)
        (tmp_path / "staging" / "1-ab" / "journal.json").write_text("{}", encoding="utf-8")
    code, told = interrupted(tmp_path)
    assert (code, "finished by the next pass" in told) == (130, True)
