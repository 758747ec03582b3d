"""Asking a person before something is done that can't be undone."""

from __future__ import annotations

import sys

from stillroom.cli.output import console, print_lines
from stillroom.errors import ConfigError


def agrees(question: str) -> bool:
    """Whether a person at the terminal says yes. Raises `ConfigError` where there is none to ask."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError("nobody can be asked here", hint="`--yes` does it without asking, `--dry-run` only shows")
    try:
        answer = console().input(f"{question} [y/N] ", markup=False)
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print_lines([(None, "nothing was changed")])
    return False
