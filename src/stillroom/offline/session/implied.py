"""What a quoted wish means for the next session, in the user's own words as far as they reach."""

from __future__ import annotations

import re

from stillroom.offline import cues
from stillroom.offline.session.wishes import Wish
from stillroom.offline.text.words import shorten


def implied(wish: Wish, spoken: tuple[str, ...], scope: str) -> str:
    """The default that follows from `wish`."""
    core = _core(wish.quote, spoken)
    match wish.kind:
        case "rule" | "preference":
            return f"default in {scope}: {core}"
        case "correction":
            return f"from the start next time: {core}"
        case "decision":
            return "decided; the last words hold" if wish.amended else "decided; keep to it unless told otherwise"
        case "fact":
            return "true by the user's word"


def _core(quote: str, spoken: tuple[str, ...]) -> str:
    """The quote without openers such as "no," and "please"."""
    return shorten(re.sub(r"[\s.。!！]+$", "", cues.without_opener(quote, spoken)), 160)
