"""What is wrong with a result. On its own: to show one, nothing needs to be judged."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong; a fatal one keeps the result out of the folder."""

    rule: str
    path: str
    line: int  #: 0: the file as a whole
    message: str
    fatal: bool = True

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message} [{self.rule}]"
