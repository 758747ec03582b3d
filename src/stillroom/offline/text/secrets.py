"""Whether a text names a secret and gives it: what no pattern of a vendor knows, people still type and commit."""

from __future__ import annotations

import re

from stillroom.offline.text.pattern import late

_NAMES = (
    r"pass(?:word|wd|phrase|code)?|pwd|pw|secret|token|api[ _-]?key|credentials?|login|pin|contraseña|clave|passwort|"
    r"kennwort|zugangsdaten|mot de passe|mdp|identifiants?|senha|парол\w*|密码|密碼|口令|パスワード|비밀번호|암호|비번"
)
_GIVEN = late(
    rf"(?<![A-Za-z])(?:{_NAMES})(?![A-Za-z])[^.。!?\n]{{0,30}}?(?:[=:：]|\b(?:is|ist|es|est|é|lautet|are|son|are)\b|是|は|[—–-]\s)"
    rf"\s*[\"'`“「]?(?=\S*\d|\S*[^\w\s.,;:]\S*|\S{{3,}}[\"'`”」])\S+",
    re.IGNORECASE,
)


def gives_secret(text: str) -> bool:
    """Whether `text` names a password or the like and then holds what may be it."""
    return _GIVEN.search(text) is not None
