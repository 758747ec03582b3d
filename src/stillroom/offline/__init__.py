"""The engine that needs no language model: what was done, from typed events, and sentences scored by linear models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stillroom.offline.folder.consolidate import consolidate
    from stillroom.offline.session import distil

__all__ = ["consolidate", "distil"]


def __getattr__(name: str) -> Any:  # Any: one of the two above
    """Load an engine when it is asked for: who only wants to tell a person's lines from made ones needs neither."""
    if name == "consolidate":
        from stillroom.offline.folder.consolidate import consolidate

        return consolidate
    if name == "distil":
        from stillroom.offline.session import distil

        return distil
    raise AttributeError(f"module `{__name__}` has no `{name}`")
