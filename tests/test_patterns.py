"""What no regular expression of the code may hold, so that it matches the same with every Python that is supported."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
# Up to Python 3.11.4 (Debian 12 has 3.11.2) a possessive or atomic group goes on in the wrong place when its last
# repetition fails half-way. Possessive characters and classes are sound.
UNSOUND = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")


def test_no_pattern_holds_what_early_pythons_match_wrongly() -> None:
    found = [str(path) for path in SOURCE.rglob("*.py") if UNSOUND.search(path.read_text(encoding="utf-8"))]

    assert found == []
