"""Is this value a secret, or only a name, a placeholder, an expression, a word? Judged by its form alone."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal

from stillroom.pattern import late
from stillroom.rollouts.redaction.matching import Pattern

Kind = Literal["password", "secret", "token", "api_key", "weak"]
"""What the name on the left promises. `weak` names (`…_key`, `auth`) need a value that is random without doubt."""

Place = Literal["quoted", "literal", "bare"]
"""`quoted`: a string. `literal`: unquoted, where no code can stand (`.env`, a flag). `bare`: may be an expression."""

_MIN_PASSWORD = 6
_MIN_OTHER = 8
_MIN_PHRASE = 12
_MIN_RANDOM = 16
#: Enough to tell, and it keeps the look at one place short.
_MAX_JUDGED = 512
#: Base64 of this length without a digit is rare enough.
_MIN_LETTERS = 24

# RE2 is ready fifteen times as soon as `re` for so many words, and most processes meet a handful of values.
_PLACEHOLDER = Pattern(
    r"^[<$%{\[(]|&lt;|\$\{|\$\(|\{\{|\{[A-Za-z_][\w.\x80-\xff]*\}|%\(|%[sd]$|<[^<>]*>|\.\.\.|…|\*\*\*|xxxx|XXXX|"
    r"REDACTED|redacted|EXAMPLE|(?i:example(?:[^a-z0-9]|$)|placeholder|change[-_ ]?(?:me|this|it)|dummy|"
    r"(?:^|[^a-z])(?:your|my|the|some|any|fake|insert|replace|enter|todo|tbd)[-_ ]|(?:^|[-_ ])here$)"
)
_HASH = late(r"^(?:sha\d{1,3}|md5|blake\d\w?)[-:]", re.IGNORECASE)
#: How tokens of some providers begin. Under a secret's name that is enough, however odd the rest.
_TOKEN_PREFIX = late(
    r"^(?:sk-|gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|npm_|pypi-|hf_|sk_(?:live|test)_|rk_(?:live|test)_|AIza|ya29\.)"
)
_UUID = late(r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_HEX = late(r"^[0-9a-fA-F]+$")
_LOCATION = late(r"^(?:[a-z][a-z0-9+.-]*://|~?/|\.{1,2}/|[A-Za-z]:[\\/])")
_PATH = late(r"^[\w.@~/-]+$")
_NUMBER = late(r"^[\d.,:_/+-]+$")
_CALL_CHAIN = late(r"^[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)+[!?]*$")
_SEGMENTS = late(r"[-_./:@ ]+")
_CAMEL = late(r"^[A-Z]?[a-z]+(?:[A-Z][a-z]+)+$")
_TECHNICAL = late(
    r"(?i)(?<![a-z])(?:base(?:16|32|58|64)|sha-?\d{1,3}|md[45]|utf-?(?:8|16|32)(?:mb[34])?|oauth2?|auth0|s3|k8s|ec2|x86|arm64|argon2(?:id)?|"
    r"pbkdf2|(?:u?int|float|win|win|es|ed|rs|hs)\d{2,5}|v\d+(?:beta\d|alpha\d)?|http2|ipv[46]|web3|latin1|i18n|l10n)(?![a-z])"
)
_META = late(
    r"(?i)pass(?:w(?:or)?d|phrase|code)?|pwd|token|secret|key|auth|cred|string|value|field|name|user|login|type|config|"
    r"setting|env|param|arg|input|output|hash|salt|test|none|null|true|false|undefined|required|optional|default|"
    r"include|omit|same|forgot|reset|invalid|missing|error|hidden|text|label|form|prompt|provider|header|cookie|request|"
    r"response|session|client|server|service|bearer|basic|length|empty|unset|unknown|manager|store|vault|file|path|self|this|"
    r"access|refresh|generate|create|get|read|load|encrypt|decrypt|callback|function|schema|model|state|option"
)


def plausible(value: str, *, kind: Kind, place: Place) -> bool:
    """True when `value` is likely to be a real secret under a name of this kind. Only its beginning is judged."""
    value = value[:_MAX_JUDGED]
    if len(value) < (_MIN_PASSWORD if kind == "password" else _MIN_OTHER):
        return False
    if is_placeholder(value) or any(ord(char) > 0x2E7F for char in value):
        return False
    if _TOKEN_PREFIX.match(value):
        return True
    if any(char.isspace() for char in value):
        return _phrase(value, kind=kind)
    if _HASH.match(value) or value.startswith("arn:") or (_LOCATION.match(value) and not _random_path(value)):
        return False
    if _NUMBER.match(value):
        return kind == "password" and value.isdigit()
    if _UUID.match(value):
        return kind in ("password", "secret", "api_key")
    if kind == "weak":
        return any(_random(part) and not _HEX.match(part) for part in _SEGMENTS.split(value))
    segments = [segment for segment in _SEGMENTS.split(value.rstrip("!?")) if segment]
    if all(segment.isalpha() or (segment.isdigit() and len(segment) <= 4) for segment in segments):
        return _words(value, segments, kind=kind, place=place)
    return _mixed(value, kind=kind, place=place)


def is_placeholder(value: str) -> bool:
    """True for what stands where a secret would: `<token>`, `${X}`, `xxxx`, `changeme`, a vendor's example."""
    return _PLACEHOLDER.search(value.encode("utf-8", "replace")) is not None or monotone(value)


def monotone(value: str) -> bool:
    """True when only one letter or digit is repeated, as in `xxxxxxxx` or `0000-0000`."""
    return len({char for char in value.lower() if char.isalnum()}) <= 1


def _phrase(value: str, *, kind: Kind) -> bool:
    """Several words: a scheme and its token, or a password with spaces; anything else is language."""
    first, _, rest = value.partition(" ")
    if first.lower() in ("bearer", "basic", "token"):
        return plausible(rest.strip(), kind="token", place="quoted")
    words = value.split()
    return (
        kind == "password"
        and len(words) <= 4
        and any(any(c.isdigit() for c in word) and any(c.isalpha() for c in word) for word in words)
        and not _META.search(_TECHNICAL.sub("", value))
    )


def _words(value: str, segments: list[str], *, kind: Kind, place: Place) -> bool:
    """Letters, perhaps with separators and numbers between them: mostly names of things."""
    if place == "bare" or _META.search(value):
        return False
    if kind == "password":
        if len(segments) > 1:
            return len(value) >= _MIN_PHRASE
        return len(value) >= 8 and not value.istitle()
    if len(segments) > 1 or _CAMEL.match(value):
        return False
    return len(value) >= _MIN_RANDOM and not value.istitle() and not value.isupper()


def _mixed(value: str, *, kind: Kind, place: Place) -> bool:
    """Letters and digits run together, or signs that no name has."""
    bare = _TECHNICAL.sub("", value)
    letters = sum(char.isalpha() for char in bare)
    digits = sum(char.isdigit() for char in bare)
    if place == "bare":
        if _CALL_CHAIN.match(value) and not _random(value):
            return False
        if kind != "password" and _META.search(bare):
            return False
        if digits == 0 or letters == 0:
            signs = any(char in "!@#%^*~" for char in bare)
            return kind == "password" and letters > 0 and signs and not _META.search(bare)
        if bare.rstrip("0123456789").replace("_", "").isalpha() and digits <= 2:
            one_word = kind == "password" and value.islower() and "_" not in value
            return one_word and (len(value) >= _MIN_PHRASE or not _META.search(bare))
        return kind == "password" or len(value) >= 12
    if digits and letters:
        simple = bare.rstrip("0123456789").replace("_", "").replace("-", "")
        if simple.isalpha() and digits <= 3:
            return kind == "password" and not _META.search(simple)
        return True
    if _META.search(bare) or _PATH.match(value):
        return False
    return len(value) >= (_MIN_OTHER if kind == "password" else _MIN_LETTERS) and any(
        not char.isalnum() and char not in "-_./: " for char in bare
    )


def _random(value: str) -> bool:
    """True for 16 characters and more that change between cases and digits as no name does."""
    if len(value) < _MIN_RANDOM:
        return False
    classes = [_class(char) for char in value if char.isalnum()]
    changes = sum(1 for left, right in pairwise(classes) if left != right)
    return len(set(classes)) >= 2 and classes.count(3) >= 2 and changes * 4 >= len(value)


def _class(char: str) -> int:
    if char.isdigit():
        return 3
    return 2 if char.isupper() else 1


def _random_path(value: str) -> bool:
    """Base64 may begin with a slash; a path has segments that are words."""
    return value.startswith("/") and len(value) >= 32 and value.count("/") <= 3 and _random(value)
