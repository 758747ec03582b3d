"""A command is a function: its parameters are what may be said, its docstring tells what that means.

Parameters ahead of `/` are told by their place, those behind `*` as options. A `bool` is a switch, a `Literal` one of
several words, a `list` may be said several times, and what has a default may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

_KINDS = (bool, int, float, str, Path)


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """How a parameter is said, where its name and type don't tell: `Annotated[int, Option(at_least=1)]`."""

    #: In place of the parameter's own name: `--max`.
    name: str | None = None
    #: One letter: `-y`.
    short: str | None = None
    at_least: int | None = None
    at_most: int | None = None


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that may be said to a command."""

    parameter: str
    #: `WORDS` by its place, else `--max`.
    name: str
    short: str | None
    kind: type[bool | int | float | str | Path]
    #: Texts of which it must be one; none: any.
    choices: tuple[str, ...]
    is_list: bool
    #: What it is where nothing is said; `required`: something must be.
    default: object
    required: bool
    at_least: int | None
    at_most: int | None

    @property
    def by_place(self) -> bool:
        return not self.name.startswith("-")


class Command(msgspec.Struct, frozen=True):
    """A function and how it is called from a shell."""

    #: `("stillroom", "budget", "serve")`.
    words: tuple[str, ...]
    function: FunctionType
    arguments: tuple[Argument, ...]


class Group(msgspec.Struct, frozen=True):
    """Commands with a name in common. A command is `module:function`, imported when it is called or told about."""

    words: tuple[str, ...]
    #: In Markdown, its first paragraph a summary.
    told: str
    members: dict[str, str | Group]


def read_command(words: tuple[str, ...], function: FunctionType) -> Command:
    """The command that a function is. Read off its code: `inspect` takes longer to import than most commands to run."""
    hints = get_type_hints(function, include_extras=True)
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = _defaults(function)
    return Command(
        words,
        function,
        tuple(
            _argument(name, hints[name], defaults, by_place=number < code.co_posonlyargcount)
            for number, name in enumerate(names)
        ),
    )


def _defaults(function: FunctionType) -> Mapping[str, object]:
    """What parameters are where nothing is said; those that must be said are not in it."""
    values = function.__defaults__ or ()
    count = function.__code__.co_argcount
    named = function.__code__.co_varnames[count - len(values) : count]
    return {**dict(zip(named, values, strict=True)), **(function.__kwdefaults__ or {})}


def _argument(parameter: str, hint: object, defaults: Mapping[str, object], *, by_place: bool) -> Argument:
    said, hint = (get_args(hint)[1], get_args(hint)[0]) if get_origin(hint) is Annotated else (Option(), hint)
    kinds = list(_without_none(hint))
    is_list = get_origin(kinds[0]) is list
    kind = get_args(kinds[0])[0] if is_list else kinds[0]
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    kind = str if choices else kind
    if len(kinds) != 1 or kind not in _KINDS or not isinstance(said, Option):
        raise TypeError(f"`{parameter}` can't be said in a shell: {hint}")
    word = parameter.replace("_", "-")
    return Argument(
        parameter=parameter,
        name=said.name or (word.upper() if by_place else f"--{word}"),
        short=said.short,
        kind=kind,
        choices=choices,
        is_list=is_list,
        default=defaults.get(parameter),
        required=parameter not in defaults,
        at_least=said.at_least,
        at_most=said.at_most,
    )


def _without_none(hint: Any) -> Iterator[Any]:  # Any: annotations are of no one type
    if get_origin(hint) in (Union, UnionType):
        yield from (each for each in get_args(hint) if each is not NoneType)
    else:
        yield hint
