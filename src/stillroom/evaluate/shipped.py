"""The labelled sessions that ship with Stillroom. Nobody tunes an engine on them: read their totals only."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "sets"
#: Where each set is, by its name.
SETS = {name: _FOLDER / name for name in ("heldout", "blind")}
#: Three projects that live through replaced rules, echoes and a forgotten session.
LIFE = _FOLDER / "life" / "life.toml"
