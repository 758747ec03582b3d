"""What a quoted wish means for the next session, in the user's own words as far as they reach."""

from __future__ import annotations

import re

from stillroom.offline import cues
from stillroom.offline.session.wish import Wish

_CORE_CHARS = 100
"""A point longer than this would only repeat the quote."""


def implied(wish: Wish, spoken: tuple[str, ...], scope: str) -> str:
    """The default that follows from `wish`: its point again where the quote has words before it, else its reach."""
    match wish.kind:
        case "rule" | "preference":
            core = re.sub(r"[\s.。!！]+$", "", cues.without_opener(wish.quote, spoken))
            stripped = len(core) + 4 < len(wish.quote) and len(core) <= _CORE_CHARS
            # "And please: no inline styles": the "no" is no way to begin.
            stripped = stripped and cues.has("prohibition", core, spoken) == cues.has("prohibition", wish.quote, spoken)
            return f"default in {scope}: {core}" if stripped else f"default in {scope}"
        case "correction":
            return f"do so from the start in {scope}"
        case "decision":
            return "decided; the last words hold" if wish.amended else "decided; holds unless told otherwise"
        case "fact":
            return "true by the user's word"
