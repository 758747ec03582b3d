"""How long work tells where it is. Stages call it, faces draw it, nobody else looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """`done` of `total` in one stage; `total` None while it isn't known."""

    stage: Literal["scan", "count", "usage", "price", "extract", "consolidate", "ingest", "export", "evaluate"]
    done: int
    total: int | None = None
    note: str = ""


ProgressListener = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """The listener that nobody has to pass."""
