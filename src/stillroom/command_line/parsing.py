"""What was said to a command, as values of its function's parameters."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

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
    options, words = _parser(command).parse_known_args(list(tokens[:end]))
    for word in words:
        if word.startswith("-") and len(word) > 1 and " " not in word:
            name = word.partition("=")[0]
            known = [each.name for each in command.arguments if not each.by_place]
            raise CommandLineError(f"there is no option `{name}`{meant(name, known)}")
    return _by_place(command, [*words, *tokens[end + 1 :]]), vars(options)


def _by_place(command: Command, words: list[str]) -> list[Any]:
    values: list[Any] = []
    for argument in command.arguments:
        if not argument.by_place:
            continue
        if not words and argument.required:
            raise CommandLineError(f"{argument.name} is missing")
        taken = words if argument.is_list else words[:1]
        words = words[len(taken) :]
        convert = _converter(argument)
        try:
            given = [convert(each) for each in taken]
        except argparse.ArgumentTypeError as error:
            raise CommandLineError(f"{argument.name}: {error}") from error
        values.append(argument.default if not given else given if argument.is_list else given[0])
    if words:
        raise CommandLineError(f"nothing is known of {', '.join(f'`{each}`' for each in words)}")
    return values


def _parser(command: Command) -> argparse.ArgumentParser:
    """Of the options alone: argparse wants all words in one row."""
    parser = _Parser(prog=" ".join(command.words), add_help=False, allow_abbrev=False)
    parser.add_argument(*HELP, action=_Help, nargs=0, default=argparse.SUPPRESS)
    for each in command.arguments:
        if each.by_place:
            continue
        names = [each.name, *([each.short] if each.short else [])]
        common: dict[str, Any] = {"dest": each.parameter, "required": each.required, "default": argparse.SUPPRESS}
        if each.kind is bool:
            parser.add_argument(*names, action="store_true", **common)
        else:
            action = "append" if each.is_list else _Once
            parser.add_argument(*names, action=action, type=_converter(each), **common)
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandLineError(message)


class _Help(argparse.Action):
    def __call__(self, *_: object) -> NoReturn:
        raise HelpAsked


class _Once(argparse.Action):
    """A value that is said twice is a mistake: which one is meant?"""

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> None:
        if hasattr(namespace, self.dest):
            raise argparse.ArgumentError(self, "it is given twice")
        setattr(namespace, self.dest, values)


def _converter(argument: Argument) -> Callable[[str], object]:
    kind, least, most = argument.kind, argument.at_least, argument.at_most

    def choice(text: str) -> str:
        if text not in argument.choices:
            raise argparse.ArgumentTypeError(f"`{text}` is none of {', '.join(argument.choices)}")
        return text

    if kind not in (int, float):
        return choice if argument.choices else kind

    def number(text: str) -> object:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"`{text}` is no {'whole ' if kind is int else ''}number") from None
        assert isinstance(value, int | float)
        if least is not None and value < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        if most is not None and value > most:
            raise argparse.ArgumentTypeError(f"{text} is more than {most:,}")
        return value

    return number


def meant(word: str, names: Sequence[str]) -> str:
    """`; is `--home` meant?`, where a name is nearly the same."""
    from difflib import get_close_matches  # only mistakes need it

    near = get_close_matches(word, names, n=1)
    return f"; is `{near[0]}` meant?" if near else ""
