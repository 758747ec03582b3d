"""The commands as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator

from stillroom.command_line.command import Argument, Command, Group
from stillroom.command_line.docstring import Docstring
from stillroom.command_line.help import notes, told_of, usage, value_of
from stillroom.command_line.running import member


def as_markdown(group: Group, *, level: int) -> str:
    """The group and all of its commands, headed by headings from this level on."""
    return "\n\n".join(filter(None, _parts(group, level)))


def _parts(of: Command | Group, level: int) -> Iterator[str]:
    told = told_of(of)
    yield f"{'#' * level} {' '.join(of.words)}"
    yield f"```console\n{usage(of)}\n```"
    yield told.summary
    yield told.more
    if isinstance(of, Command):
        for title, by_place in (("Arguments", True), ("Options", False)):
            rows = [_row(each, told) for each in of.arguments if each.by_place == by_place]
            if rows:
                yield f"**{title}**:\n\n" + "\n".join(rows)
        return
    members = [member(of, name) for name in of.members]
    yield "\n".join(f"* [`{each.words[-1]}`](#{'-'.join(each.words)}): {told_of(each).summary}" for each in members)
    for each in members:
        yield from _parts(each, level + 1)


def _row(argument: Argument, told: Docstring) -> str:
    names = ", ".join(filter(None, (argument.name, argument.short)))
    noted = "".join(f" *[{note}]*" for note in notes(argument))
    return f"* `{f'{names} {value_of(argument)}'.strip()}`: {told.meanings.get(argument.parameter, '')}{noted}"
