"""Which words a session surely does not say, told by its JSON before anything of it is decoded."""

from __future__ import annotations

from collections.abc import Callable

import re2

from stillroom.rollouts.rare import holder

#: What becomes ASCII when it is folded, and letters that are written as `\u` escapes.
_DISGUISED = re2.compile(r"[ßİŉſǰẖ-ẚẞ\x{212a}\x{fb00}-\x{fb06}]|\\u(?:[^0]|0[^0]|00[^01])")
_holds_escapes = holder(b"\\u")


def may_say(text: str) -> Callable[[str], bool]:
    """Tells of a case-folded word whether a string somewhere in this JSON may hold it. Only a no is certain.

    Escapes fall away with their backslashes: whatever is left of them stands beside a word, not in it.
    """
    data = text.encode("utf-8", "surrogatepass")
    if (not data.isascii() or _holds_escapes(data)) and _DISGUISED.search(data):
        return lambda word: True
    letters = data.replace(b"\\", b"").lower()
    return lambda word: not word.isascii() or word.replace("\\", "").encode() in letters
