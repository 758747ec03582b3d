"""Whether a text names a secret and gives it: what no pattern of a vendor knows, people still type and commit."""

from __future__ import annotations

import re

from stillroom.pattern import late

_NAMES = (
    r"pass(?:word|wd|phrase|code)?|pwd|pw|secret|token|api[ _-]?key|credentials?|login|pin|contraseña|clave|passwort|"
    r"kennwort|zugangsdaten|mot de passe|mdp|identifiants?|senha|парол\w*|密码|密碼|口令|パスワード|비밀번호|암호|비번"
)
_GIVEN = late(
    rf"((?<![A-Za-z])(?:{_NAMES})(?![A-Za-z])[^.。!?\n]{{0,30}}?"
    r"(?:[=:：]|\b(?:is|ist|es|est|é|lautet|are|son|are)\b|是|は|[—–-]\s)\s*[\"'`“「]?)"
    r"((?=\S*\d|\S*[^\w\s.,;:]\S*|\S{3,}[\"'`”」])[^\s\"'`”」]+)",
    re.IGNORECASE,
)
_NAMED = late(rf"(?<![A-Za-z])(?:{_NAMES})(?![A-Za-z])", re.IGNORECASE)
#: Letters and digits in turn: an identifier that was dealt out, no word and no version.
_OPAQUE = late(r"(?<![\w./-])(?=[\w-]{12,}(?![\w/-]|\.\w))(?:[A-Za-z]+\d|\d+[A-Za-z])[\w-]*\d[\w-]*")
_LEAST_CHARS = 4
"""A shorter value is a number of something: "the token lives 15 minutes"."""


def gives_secret(text: str) -> bool:
    """Whether `text` names a password or the like and holds what may be it, beside the name or elsewhere."""
    return _GIVEN.search(text) is not None or (_NAMED.search(text) is not None and _OPAQUE.search(text) is not None)


def without_secrets(text: str) -> str:
    """`text` with what is given for a named secret replaced."""
    return _GIVEN.sub(lambda m: m[1] + ("[REDACTED_SECRET]" if _may_be_one(m[2]) else m[2]), text)


def _may_be_one(value: str) -> bool:
    return len(value) >= _LEAST_CHARS and any(c.isdigit() for c in value) and "/" not in value
