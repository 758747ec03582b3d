"""Which words a session surely does not say, told by its JSON before anything of it is decoded."""

from __future__ import annotations

import re2

from stillroom.rollouts.rare import holder

#: What becomes ASCII when it is folded, and letters that are written as `\u` escapes.
_DISGUISED = re2.compile(r"[ßİŉſǰẖ-ẚẞ\x{212a}\x{fb00}-\x{fb06}]|\\u(?:[^0]|0[^0]|00[^01])")
_holds_escapes = holder(b"\\u")
#: Of a longer word its beginning is looked for: the time that `rfind` takes may grow with the length.
_MOST_LETTERS = 64


class Record:
    """The JSON of a session, case-folded as far as it is ASCII. Of its answers only a no is certain.

    Escapes fall away with their backslashes: what is left of them, a letter, stands beside a word, not in it.
    """

    def __init__(self, json: str) -> None:
        data = json.encode("utf-8", "surrogatepass")
        self._is_disguised = (not json.isascii() or _holds_escapes(data)) and _DISGUISED.search(data) is not None
        self._letters = b"" if self._is_disguised else data.replace(b"\\", b"").lower()
        self._known: dict[str, bool] = {}

    def may_say(self, word: str) -> bool:
        """Whether a string in it may hold this case-folded word."""
        if (known := self._known.get(word)) is not None:
            return known
        self._known[word] = known = self._is_disguised or not word.isascii() or self._holds(word)
        return known

    def _holds(self, word: str) -> bool:
        # From the end, which takes half of the time of `in`.
        return self._letters.rfind(word.replace("\\", "").encode()[:_MOST_LETTERS]) >= 0
