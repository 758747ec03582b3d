"""What a quoted wish means for the next session: how far it reaches."""

from __future__ import annotations

from stillroom.offline.session.wish import Wish


def implied(wish: Wish, scope: str) -> str:
    """The default that follows from `wish`. Its point stands in the quote and is not told again."""
    match wish.kind:
        case "rule" | "preference":
            return f"default in {scope}"
        case "correction":
            return f"do so from the start in {scope}"
        case "decision":
            return "decided; the last words hold" if wish.amended else "decided; holds unless told otherwise"
        case "fact":
            return "true by the user's word"
