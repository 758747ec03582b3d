"""What the commands say in a home where there is nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stillroom.cli.app import run_command


@pytest.mark.parametrize(
    ("words", "told", "data"),
    [
        (["redo"], "nothing is held back by an undo", {"sessions": 0}),
        (["redact", "--retro"], "there is no memory yet", {"kinds": [], "done": None}),
        (["review"], "no result waits for you", {"held": None, "withheld": [], "accepted": None, "rejected": False}),
        (["resume"], "passes were not paused", {"paused_since": None, "changed": False}),
        (["memories"], "the memory is switched off nowhere", None),
    ],
)
def test_an_empty_home_is_told_as_such_and_stays_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str, data: dict[str, Any] | None
) -> None:
    home = tmp_path / "none"
    assert run_command([*words, "--home", str(home)]) == 0
    said = capsys.readouterr()
    assert said.out + said.err == f"{told}\n"
    assert run_command([*words, "--home", str(home), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert data is None or answer == data
    assert not home.exists()
