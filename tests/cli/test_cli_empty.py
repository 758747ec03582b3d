"""What the commands say where there is nothing: a home of nobody's, and what coverage has no number of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stillroom.cli.app import run_command
from stillroom.cli.coverage import lost_line
from stillroom.insight.coverage.coverage import Lost


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


def test_each_loss_has_its_words_and_none_is_told_of_nothing() -> None:
    assert lost_line(Lost()) == (None, "lost to cuts  nothing")
    every = Lost(
        bad_lines=1,
        long_lines=2,
        cut_bytes=3_000_000,
        shortened=("a", "b", "c", "d"),
        unreadable=5,
        not_in_folder=6,
        withheld=1,
    )
    said = (
        "lost to cuts  2 long lines (3 MB cut out), 1 broken line, 5 sessions that can't be read, "
        "4 sessions that did not fit the model (a, b, c), 6 sessions that the folder does not name, "
        "1 line that only a tool or the web says (`stillroom review`)"
    )
    assert lost_line(every) == ("yellow", said)
