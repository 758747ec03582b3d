"""What commands have in common: the global options, flags, and limits of numbers."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from stillroom.config import Settings, default_home, load_settings
from stillroom.errors import CommandLineError


class Places(NamedTuple):
    """The global options `--home` and `--root`; None where they are not given."""

    home: Path | None = None
    root: Path | None = None


places: ContextVar[Places] = ContextVar("places")


def current_settings() -> Settings:
    """The settings of this command line's home. Raises `ConfigError`."""
    home, root = places.get(Places())
    return load_settings(home=home, root=root)


def current_home() -> Path:
    """The home of this command line, absolute. Its settings need not be readable."""
    return (places.get(Places()).home or default_home(os.environ)).absolute()


def option(*names: str, at_least: int | None = None, at_most: int | None = None) -> Parameter:
    """An option with other names than its parameter's, or with limits: `option("--limit", "-n", at_least=1)`."""
    limits = None if at_least is None and at_most is None else Number(gte=at_least, lte=at_most)
    return Parameter(name=names or None, validator=limits)


def flag(*names: str) -> Parameter:
    """A switch with other names than its parameter's: `flag("--yes", "-y")`."""
    return Parameter(name=names or None, show_default=False)


def _refuse_options(type_: object, words: list[str] | None) -> None:
    """`-` and `- a bullet` are words; `--jsn` is a mistake."""
    for word in words or ():
        if word.startswith("-") and word != "-" and " " not in word:
            raise CommandLineError(f"unknown option: {word}", hint="words that begin with dashes go behind `--`")


WORDS = Parameter(allow_leading_hyphen=True, validator=_refuse_options)
"""For words that a person writes, in one row: `Annotated[list[str], WORDS]`."""
Flag = Annotated[bool, flag()]
"""A switch that is off by default: `--json`."""
Yes = Annotated[bool, flag("--yes", "-y")]
Verbose = Annotated[bool, flag("--verbose", "-v")]
