"""Regular expressions that cost nothing until they are used."""

from __future__ import annotations

import re
from typing import Any, cast


class _Late:
    """Becomes the compiled pattern, method by method, as each is first asked for."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._source), name)
        self.__dict__[name] = value
        return value


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, put off until the pattern is used: compiling all of them took longer than most sessions."""
    return cast("re.Pattern[str]", _Late(pattern, flags))
