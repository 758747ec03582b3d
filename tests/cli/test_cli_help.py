"""Every command is listed with what it does, and shows how it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from stillroom.cli.app import COMMANDS, Command, Commands, run_command


def every(commands: Mapping[str, Command | Commands], *before: str) -> Iterator[tuple[str, ...]]:
    for name, command in commands.items():
        if isinstance(command, Commands):
            yield from every(command.members, *before, name)
        else:
            yield (*before, name)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_command(words) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_each_command_is_listed_with_a_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    listed = dict(re.findall(r"^│ ([a-z]+) +(\S.*?) *│$", shown(capsys, *words), re.MULTILINE))
    assert listed == {name: command.about for name, command in COMMANDS.items()}


@pytest.mark.parametrize("words", list(every(COMMANDS)), ids=" ".join)
def test_each_command_shows_an_example(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    page = shown(capsys, *words, "--help")
    assert re.search(rf"^ (?:stillroom|claude mcp .* stillroom) {' '.join(words)}\b", page, re.MULTILINE)


def test_words_of_two_open_their_own_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.findall(r"^│ (status|serve) ", shown(capsys, "budget"), re.MULTILINE) == ["status", "serve"]


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("statsu", 'unknown command "statsu". Did you mean "status"?', "stillroom --help"),
        ("status --jsn", "unknown option: --jsn. Did you mean --json?", "stillroom status --help"),
        ("threads help", "unexpected argument `help`", "stillroom threads --help"),
        ("threads --limit x", 'invalid value for --limit: unable to convert "x" into int.', "stillroom threads --help"),
        ("log --limit 0", 'invalid value "0" for --limit. Must be >= 1.', "stillroom log --help"),
        ("budget sratus", 'unknown command "sratus". Did you mean "status"?', "stillroom budget --help"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(
    capsys: pytest.CaptureFixture[str], line: str, message: str, hint: str
) -> None:
    assert run_command(line.split()) == 2
    assert capsys.readouterr().err == f"error: {message}\nhint: `{hint}` shows how it is used\n"


def test_global_options_stand_anywhere(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    before = run_command(["--home", f"{tmp_path}", "log", "--json"]), capsys.readouterr()
    after = run_command(["log", "--json", f"--home={tmp_path}"]), capsys.readouterr()
    assert before == after
