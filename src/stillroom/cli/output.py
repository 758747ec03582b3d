"""How Stillroom speaks: data on stdout, people on stderr, colour only on a terminal that wants it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import TYPE_CHECKING, Literal, TextIO

import msgspec

from stillroom.wording import plain

if TYPE_CHECKING:
    from rich.console import Console

Style = Literal["bold", "dim", "red", "green", "yellow", "cyan", "bold red"]
Line = tuple[Style | None, str]
"""A line for people, with the style that it has where there are colours."""

#: As terminals want them. Written by ourselves: to load rich takes as long as a short command.
_STYLES: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "bold red": "1;31",
}


def console(stream: TextIO | None = None) -> Console:
    """A console on stderr by default. `NO_COLOR` and redirection are respected by rich."""
    # A sixth of the time that a short command takes, and one that prints data has no use for it.
    from rich.console import Console

    return Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)


def prepare_stdout() -> None:
    """Let stdout take every character: what is piped is UTF-8, as the files of the memory are, whatever the locale.

    A terminal that can't show a character shows `?`, and so does what reads in the encoding that it asked for.
    """
    if not isinstance(sys.stdout, TextIOWrapper):
        return
    told = sys.stdout.isatty() or os.environ.get("PYTHONIOENCODING")
    sys.stdout.reconfigure(encoding=None if told else "utf-8", errors="replace")


def print_answer(lines: Iterable[Line]) -> None:
    """What a person asked for, on stdout: it may be paged, searched and kept."""
    print_lines(lines, to=sys.stdout)


def print_lines(lines: Iterable[Line], *, to: TextIO | None = None) -> None:
    """Lines for people, on stderr by default, each in the style ahead of it where there are colours."""
    to = to or sys.stderr
    for style, line in lines:
        to.write(f"{_styled(plain(line), style, to)}\n")


def _styled(text: str, style: Style | None, stream: TextIO) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if style and _has_colours(stream) else text


def _has_colours(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    understood = os.environ.get("TERM") not in ("dumb", "unknown") and (os.name != "nt" or "WT_SESSION" in os.environ)
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and understood)


def print_error(message: str, *, hint: str | None = None) -> None:
    """`error: …`, and below it what to do."""
    sys.stderr.write(f"{_styled('error:', 'bold red', sys.stderr)} {plain(message)}\n")
    if hint:
        sys.stderr.write(f"{_styled('hint:', 'bold', sys.stderr)} {plain(hint)}\n")


def print_data(text: str, *, end: str = "\n") -> None:
    """Text of the memory on stdout: as it is for a program, without what would steer it for a terminal."""
    if sys.stdout.isatty():
        text = "\n".join(plain(line.expandtabs()) for line in text.split("\n"))
    sys.stdout.write(text + end)


def print_json(value: msgspec.Struct) -> None:
    """A value as JSON on stdout. Bytes of a path that are no UTF-8 are `\\udc80` and up."""
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeEncodeError:
        import json  # only such bytes need it

        text = json.dumps(msgspec.to_builtins(value), indent=2)
    sys.stdout.write(text + "\n")
