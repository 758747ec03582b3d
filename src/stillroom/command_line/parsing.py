"""What was said to a command, as values of its function's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stillroom.command_line.command import Argument, Command
from stillroom.errors import CommandLineError

HELP = ("--help", "-h")


class HelpAsked(Exception):
    """Somebody asks how a command is used; everything else that was said is of no account."""


def parse(command: Command, tokens: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Values by their places and by their names, as the function takes them; options that were not said are left out.

    Options may stand among the words; behind `--` everything is a word. Raises `CommandLineError`, `HelpAsked`.
    """
    end = tokens.index("--") if "--" in tokens else len(tokens)
    if not set(HELP).isdisjoint(tokens[:end]):
        raise HelpAsked
    words, options = _parted(command, iter(tokens[:end]))
    return _by_place(command, [*words, *tokens[end + 1 :]]), options


def _parted(command: Command, tokens: Iterator[str]) -> tuple[list[str], dict[str, Any]]:
    """The words, and the options by their parameters."""
    known = {name: each for each in command.arguments if not each.by_place for name in (each.name, each.short) if name}
    words: list[str] = []
    options: dict[str, Any] = {}
    for token in tokens:
        name, is_joined, value = token.partition("=")
        if token not in known and name not in known:
            if _looks_like_option(token):
                names = [each for each in known if each.startswith("--")]
                raise CommandLineError(f"there is no option `{name}`{meant(name, names)}")
            words.append(token)
            continue
        argument = known[name]
        if argument.kind is bool:
            if is_joined:
                raise CommandLineError(f"{_title(argument)}: it takes no value")
            options[argument.parameter] = True
            continue
        if not is_joined:
            value = next(tokens, "--")
            if _looks_like_option(value) and not _is_number(value):
                raise CommandLineError(f"{_title(argument)}: expected one argument")
        if argument.is_list:
            options.setdefault(argument.parameter, []).append(_value(argument, value))
        elif argument.parameter in options:  # which one is meant?
            raise CommandLineError(f"{_title(argument)}: it is given twice")
        else:
            options[argument.parameter] = _value(argument, value)
    for argument in known.values():
        if argument.required and argument.parameter not in options:
            raise CommandLineError(f"`{argument.name}` is missing")
    return words, options


def _by_place(command: Command, words: list[str]) -> list[Any]:
    values: list[Any] = []
    for argument in command.arguments:
        if not argument.by_place:
            continue
        if not words and argument.required:
            raise CommandLineError(f"{argument.name} is missing")
        taken = words if argument.is_list else words[:1]
        words = words[len(taken) :]
        given = [_value(argument, each) for each in taken]
        values.append(argument.default if not given else given if argument.is_list else given[0])
    if words:
        raise CommandLineError(f"nothing is known of {', '.join(f'`{each}`' for each in words)}")
    return values


def _looks_like_option(token: str) -> bool:
    """What has a blank in it is something that somebody wrote, whatever it begins with."""
    return token.startswith("-") and len(token) > 1 and " " not in token


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdecimal()


def _title(argument: Argument) -> str:
    return argument.name if argument.by_place else f"argument {argument.name}"


def _value(argument: Argument, text: str) -> object:
    if argument.choices and text not in argument.choices:
        raise CommandLineError(f"{_title(argument)}: `{text}` is none of {', '.join(argument.choices)}")
    if argument.kind not in (int, float):
        return argument.kind(text)
    try:
        number = argument.kind(text)
    except ValueError:
        kind = "whole number" if argument.kind is int else "number"
        raise CommandLineError(f"{_title(argument)}: `{text}` is no {kind}") from None
    assert isinstance(number, int | float)
    if argument.at_least is not None and number < argument.at_least:
        raise CommandLineError(f"{_title(argument)}: {text} is less than {argument.at_least}")
    if argument.at_most is not None and number > argument.at_most:
        raise CommandLineError(f"{_title(argument)}: {text} is more than {argument.at_most:,}")
    return number


def meant(word: str, names: Sequence[str]) -> str:
    """`; is `--home` meant?`, where a name is nearly the same."""
    from difflib import get_close_matches  # only mistakes need it

    near = get_close_matches(word, names, n=1)
    return f"; is `{near[0]}` meant?" if near else ""
