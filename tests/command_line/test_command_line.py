"""A function's signature and docstring are a command: what may be said, what is refused, and what is told about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest

from stillroom.command_line.command import Group, Option, read_command
from stillroom.command_line.docstring import Docstring, read_docstring
from stillroom.command_line.markdown import as_markdown
from stillroom.command_line.parsing import HelpAsked, parse
from stillroom.command_line.running import run, told_of_member
from stillroom.errors import CommandLineError

Called = tuple[list[object], dict[str, object]]
CALLED: list[Called] = []


def mend(
    thing: str,
    others: list[str] | None = None,
    /,
    *,
    place: Path | None = None,
    most: Annotated[int, Option(name="--max", at_least=1, at_most=9)] = 3,
    tool: list[str] | None = None,
    how: Literal["glue", "tape"] = "glue",
    yes: Annotated[bool, Option(short="-y")] = False,
) -> int:
    """Mend a thing,
    and others.

    With what is at hand.

    ```
    tool mend cup
    ```

    Parameters
    ----------
    thing
        What is broken,
        in one word.
    most
        At most so often.
    """
    CALLED.append(([thing, others], {"place": place, "most": most, "tool": tool, "how": how, "yes": yes}))
    return 7


COMMAND = read_command(("tool", "mend"), mend)
TOOL = Group(("tool",), "Mends things.", {"mend": f"{__name__}:mend", "more": Group(("tool", "more"), "More.", {})})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cup", (["cup", None], {})),
        ("cup pot pan", (["cup", ["pot", "pan"]], {})),
        ("--max 2 cup -y pot --place=/x", (["cup", ["pot"]], {"most": 2, "yes": True, "place": Path("/x")})),
        ("cup --tool a --tool b --how tape", (["cup", None], {"tool": ["a", "b"], "how": "tape"})),
        ("--yes -- --max -y", (["--max", ["-y"]], {"yes": True})),
        ("-", (["-", None], {})),
        ("cup --place -", (["cup", None], {"place": Path("-")})),
        ("a=b --place=x=y", (["a=b", None], {"place": Path("x=y")})),
    ],
)
def test_words_and_options_may_stand_in_any_order(line: str, said: Called) -> None:
    assert parse(COMMAND, line.split()) == said


def test_a_word_with_a_blank_is_no_option() -> None:
    assert parse(COMMAND, ["- a bullet"]) == (["- a bullet", None], {})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "THING is missing"),
        ("cup --plac x", "there is no option `--plac`; is `--place` meant?"),
        ("cup -q", "there is no option `-q`"),
        ("cup --max 0", "argument --max: 0 is less than 1"),
        ("cup --max=10", "argument --max: 10 is more than 9"),
        ("cup --max x", "argument --max: `x` is no whole number"),
        ("cup --how nail", "argument --how: `nail` is none of glue, tape"),
        ("cup --place", "argument --place: expected one argument"),
        ("cup --place --yes", "argument --place: expected one argument"),
        ("cup --max -5", "argument --max: -5 is less than 1"),
        ("cup --yes=no", "argument --yes: it takes no value"),
        ("cup -5", "there is no option `-5`"),
        ("cup --place a --place b", "argument --place: it is given twice"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(line: str, message: str) -> None:
    with pytest.raises(CommandLineError) as raised:
        parse(COMMAND, line.split())
    assert str(raised.value) == message


def test_an_option_that_must_be_said_is_missed() -> None:
    def meet(*, place: Path) -> int:
        return len(str(place))

    with pytest.raises(CommandLineError, match="`--place` is missing"):
        parse(read_command(("meet",), meet), [])


def test_help_is_for_whoever_asks_whatever_else_is_said() -> None:
    with pytest.raises(HelpAsked):
        parse(COMMAND, ["--max", "x", "-h", "--nonsense"])


def test_the_command_that_is_named_is_called_and_its_exit_code_returned() -> None:
    assert run(TOOL, ["mend", "cup", "-y"]) == 7
    assert CALLED.pop()[0] == ["cup", None]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["mand"], "there is no command `mand`; is `mend` meant?", "`tool --help` lists the commands"),
        (["more", "x"], "there is no command `x`", "`tool more --help` lists the commands"),
        (["--all"], "there is no option `--all`", "`tool --help` lists the commands"),
        (["mend"], "THING is missing", "`tool mend --help` shows how it is used"),
    ],
)
def test_what_is_unknown_says_where_to_look(words: list[str], message: str, hint: str) -> None:
    with pytest.raises(CommandLineError) as raised:
        run(TOOL, words)
    assert (str(raised.value), raised.value.hint) == (message, hint)


def test_a_function_that_no_shell_can_call_is_refused() -> None:
    def wrong(*, table: dict[str, str]) -> int:
        return len(table)

    with pytest.raises(TypeError, match="`table` can't be said in a shell"):
        read_command(("wrong",), wrong)


def test_a_docstring_has_a_summary_more_and_meanings() -> None:
    assert read_docstring(mend.__doc__ or "") == Docstring(
        summary="Mend a thing, and others.",
        more="With what is at hand.\n\n```\ntool mend cup\n```",
        meanings={"thing": "What is broken, in one word.", "most": "At most so often."},
    )


def test_help_shows_use_examples_and_each_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(TOOL, ["mend", "--help"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("Usage: tool mend [OPTIONS] THING [OTHERS...]\n\nMend a thing, and others.")
    assert "\n tool mend cup " in page
    assert "│ *  THING   What is broken, in one word. [required]" in page
    assert "│ --max INT     At most so often. [default: 3]" in page
    assert "│ --how STR     [one of: glue, tape] [default: glue]" in page
    assert "│ --yes (-y)" in page


def test_the_list_of_commands_tells_of_each_without_calling_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(TOOL, ["--help"]) == 0
    page = capsys.readouterr().out
    assert "│ mend         Mend a thing, and others." in page
    assert "│ more         More." in page
    assert told_of_member(TOOL, "mend") == mend.__doc__


def test_the_documentation_has_every_command() -> None:
    page = as_markdown(TOOL, level=3)
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        "### tool",
        "#### tool mend",
        "#### tool more",
    ]
    assert "* `--max INT`: At most so often. *[default: 3]*" in page
