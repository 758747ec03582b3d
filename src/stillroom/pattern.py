"""Regular expressions that cost nothing until they are used."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, AnyStr, cast


class _Late:
    """Becomes the compiled pattern, method by method, as each is first asked for."""

    def __init__(self, compiled: Callable[[], object]) -> None:
        self._compiled = compiled

    def __getattr__(self, name: str) -> Any:  # a pattern's methods, of whatever kind
        value = getattr(self._compiled(), name)
        self.__dict__[name] = value
        return value


def late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, put off until the pattern is used: compiling all of them took longer than most sessions."""
    return cast("re.Pattern[AnyStr]", _Late(partial(re.compile, pattern, flags)))
