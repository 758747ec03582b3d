"""Every command is listed with what it does, and shows how it is used."""

from __future__ import annotations

import re

import pytest

from stillroom.cli.app import COMMANDS, run_command


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_command(words) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_each_command_is_listed_with_a_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    listed = dict(re.findall(r"^│ ([a-z]+) +(\S.*?) *│$", shown(capsys, *words), re.MULTILINE))
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shows_an_example(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert re.search(
        rf"^ (?:stillroom|claude mcp .* stillroom) {command}\b", shown(capsys, command, "--help"), re.MULTILINE
    )
