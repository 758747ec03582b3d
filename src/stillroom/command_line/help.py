"""The page that `--help` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.markdown import Markdown
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from stillroom.command_line.command import Argument, Command, Group
from stillroom.command_line.docstring import Docstring, read_docstring
from stillroom.command_line.running import told_of_member

_Row = tuple[str, str, Markdown]


def print_help(of: Command | Group) -> None:
    """How it is used, on stdout. Colours only on a terminal."""
    out = Console(highlight=False)
    out.print(Text(f"Usage: {usage(of)}", style="bold"))
    told = told_of(of)
    for text in filter(None, (told.summary, told.more)):
        out.print()
        out.print(_markdown(text))
    out.print()
    if isinstance(of, Group):
        _print_rows(out, "Commands", _commands(of))
        return
    rows = [(each, _row(each, told)) for each in of.arguments]
    _print_rows(out, "Arguments", [row for each, row in rows if each.by_place])
    _print_rows(out, "Options", [row for each, row in rows if not each.by_place])


def usage(of: Command | Group) -> str:
    """`stillroom search [OPTIONS] WORDS`."""
    words = list(of.words)
    if isinstance(of, Group):
        return " ".join([*words, "COMMAND"])
    options = [each for each in of.arguments if not each.by_place]
    words += [f"{each.name} {value_of(each)}" for each in options if each.required]
    words += ["[OPTIONS]"] if any(not each.required for each in options) else []
    for each in of.arguments:
        if each.by_place:
            name = f"{each.name}..." if each.is_list else each.name
            words.append(name if each.required else f"[{name}]")
    return " ".join(words)


def told_of(of: Command | Group) -> Docstring:
    """What is told of it."""
    return read_docstring(of.told if isinstance(of, Group) else of.function.__doc__ or "")


def value_of(argument: Argument) -> str:
    """The kind of value that an option takes: `INT`; "" for a switch and for what is told by its place."""
    return "" if argument.kind is bool or argument.by_place else argument.kind.__name__.upper()


def notes(argument: Argument) -> Iterator[str]:
    """What the types tell beside the words of the docstring."""
    if argument.choices:
        yield f"one of: {', '.join(argument.choices)}"
    if argument.required:
        yield "required"
    elif argument.default not in (None, False):
        yield f"default: {argument.default}"


def _commands(group: Group) -> Iterable[_Row]:
    for name in group.members:
        yield "", name, _markdown(read_docstring(told_of_member(group, name)).summary)
    yield "", "--help (-h)", _markdown("Show this page, or that of a command.")
    if len(group.words) == 1:
        yield "", "--version", _markdown("Print the version.")


def _row(argument: Argument, told: Docstring) -> _Row:
    names = f"{argument.name} ({argument.short})" if argument.short else argument.name
    meaning = told.meanings.get(argument.parameter, "")
    meaning += "".join(f" \\[{note}\\]" for note in notes(argument))
    return "*" if argument.required else "", f"{names} {value_of(argument)}".rstrip(), _markdown(meaning)


def _print_rows(out: Console, title: str, rows: Iterable[_Row]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    rows = list(rows)
    if not rows:
        return
    marked = any(mark for mark, _, _ in rows)
    if marked:
        table.add_column(style="red", no_wrap=True)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for mark, name, meaning in rows:
        table.add_row(*([mark] if marked else []), name, meaning)
    out.print(Panel(table, title=title, title_align="left", box=box.ROUNDED, expand=True))


def _markdown(text: str) -> Markdown:
    """Examples have no ground of their own: it would be as wide as the terminal."""
    return Markdown(text, code_theme="ansi_light")
