"""Finds the command that is called, and calls it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import CodeType, FunctionType

from stillroom.command_line.command import Command, Group, read_command
from stillroom.command_line.parsing import HELP, HelpAsked, meant, parse
from stillroom.errors import CommandLineError


def run(group: Group, tokens: Sequence[str]) -> int:
    """Call the command and return its exit code. Raises `CommandLineError`, and what the command raises."""
    if not tokens or tokens[0] in HELP:
        return _help(group)
    name, rest = tokens[0], tokens[1:]
    if name not in group.members:
        what = "option" if name.startswith("-") else "command"
        raise CommandLineError(
            f"there is no {what} `{name}`{meant(name, list(group.members))}",
            hint=f"`{' '.join(group.words)} --help` lists the commands",
        )
    found = member(group, name)
    if isinstance(found, Group):
        return run(found, rest)
    try:
        values, options = parse(found, rest)
    except HelpAsked:
        return _help(found)
    except CommandLineError as error:
        error.hint = f"`{' '.join(found.words)} --help` shows how it is used"
        raise
    return found.function(*values, **options) or 0


def member(group: Group, name: str) -> Command | Group:
    """A command of the group, with what it imports."""
    found = group.members[name]
    if isinstance(found, Group):
        return found
    return read_command((*group.words, name), _load(found))


def told_of_member(group: Group, name: str) -> str:
    """What is told of a command, its docstring. It is read from the compiled module: to import all takes a second."""
    found = group.members[name]
    if isinstance(found, Group):
        return found.told
    from importlib.abc import InspectLoader
    from importlib.util import find_spec

    module, _, function = found.partition(":")
    spec = find_spec(module)
    if spec is None or not isinstance(spec.loader, InspectLoader):  # who loads it otherwise may not compile it so
        return _load(found).__doc__ or ""
    code = spec.loader.get_code(module)
    for constant in code.co_consts if code else ():
        if isinstance(constant, CodeType) and constant.co_name == function and constant.co_consts:
            told = constant.co_consts[0]
            return told if isinstance(told, str) else ""
    return ""


def _load(found: str) -> FunctionType:
    module, _, function = found.partition(":")
    called: FunctionType = getattr(import_module(module), function)
    return called


def _help(found: Command | Group) -> int:
    from stillroom.command_line.help import print_help  # it draws with rich

    print_help(found)
    return 0
