"""Take secrets out of text, and nothing else.

`redact` works on plain text and on JSON text, whose quotes may be escaped once or twice: a placeholder never crosses
the end of a string, so JSON stays JSON of the same shape. It is idempotent and takes linear time: one search by RE2 for
the heads of all rules, then a bounded look at each place found. The rules are in `redaction/`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

import re2

from stillroom.config import RedactionStyle
from stillroom.pattern import late
from stillroom.rollouts.redaction.assignments import assignment_rules
from stillroom.rollouts.redaction.credentials import credential_rules
from stillroom.rollouts.redaction.documented import is_documented
from stillroom.rollouts.redaction.matching import Found, Pattern, Rule, Span, options
from stillroom.rollouts.redaction.private_keys import private_key_rules
from stillroom.rollouts.redaction.tokens import token_rules
from stillroom.rollouts.redaction.vendors import vendor_rules

_PLACEHOLDER = r"\[REDACTED_SECRET(?::[a-z0-9_]{1,32})?\]"
#: Longer than the longest head of a rule.
_HEAD_WINDOW_BYTES = 768


#: A placeholder may bring what stands beside it into a clear form, so the text is looked at until nothing is found.
#: More than two looks are needed for text that was made up for it.
_MAX_LOOKS = 5


def redact(text: str, *, style: RedactionStyle = "typed") -> str:
    """`text` without its secrets: a `[REDACTED_SECRET:github_token]` for each, or Codex's `[REDACTED_SECRET]`."""
    return _redacted(text, style)[0]


def redact_counted(text: str, *, style: RedactionStyle = "typed") -> tuple[str, Counter[str]]:
    """Like `redact`, with how many secrets of each kind were replaced."""
    clean, kinds = _redacted(text, style)
    return clean, Counter(kinds)


def _redacted(text: str, style: RedactionStyle) -> tuple[str, list[str]]:
    """The text, the same string when nothing was found, and the kind of each secret."""
    data = text.encode("utf-8", "surrogatepass")
    kinds: list[str] = []
    for _ in range(_MAX_LOOKS):
        spans = _find(data)
        if not spans:
            break
        kinds += [span.kind for span in spans]
        data = _replace(data, spans, style)
    return (data.decode("utf-8", "surrogatepass") if kinds else text), kinds


class Secret(NamedTuple):
    """A secret that stands in a text."""

    kind: str
    text: str


def secrets_in(text: str) -> list[Secret]:
    """What `redact` takes out. For whoever must look whether it is anywhere else; never to be shown."""
    data = text.encode("utf-8", "surrogatepass")
    found: list[Secret] = []
    for _ in range(_MAX_LOOKS):
        spans = _find(data)
        if not spans:
            break
        found += [Secret(span.kind, data[span.start : span.end].decode("utf-8", "replace")) for span in spans]
        data = _replace(data, spans, "typed")
    return found


def _placeholder(data: bytes, pos: int) -> Found | None:
    match = _placeholder_whole.match(data, pos)
    return None if match is None else Found((), match.end())


_placeholder_whole = Pattern(_PLACEHOLDER)
_RULES: tuple[Rule, ...] = (
    Rule(_PLACEHOLDER, _placeholder),
    *token_rules(),
    *private_key_rules(),
    *credential_rules(),
    *vendor_rules(),
    *assignment_rules(),
)
_LONG_COUNT = late(r"\{([1-9][0-9]+)\}$")


def _short(head: str) -> str:
    """A head for the search: what counts many characters makes the automaton large, and its rule looks again anyway."""
    return _LONG_COUNT.sub("{8}", head)


_FIRST_BY_NAME = len(_RULES) - len(assignment_rules())


def heads_pattern() -> str:
    """The one expression that finds where any rule may apply."""
    return "|".join(f"(?:{_short(rule.head)})" for rule in _RULES)


@cache
def _heads() -> re2._Regexp:
    """Compiled when the first text is looked at, and the next when the first head is found: few commands need both."""
    return re2.compile(heads_pattern().encode(), options())


@cache
def _which() -> re2.Set:
    which = re2.Set.MatchSet(options())
    for rule in _RULES:
        which.Add(_short(rule.head).encode())
    which.Compile()
    return which


def _find(data: bytes) -> list[Span]:
    """Every secret, in order, without overlaps."""
    spans: list[Span] = []
    pos = 0
    heads = _heads()
    while (head := heads.search(data, pos)) is not None:
        start = head.start()
        pos = start + 1
        for index in _rules_at(data, start):
            found = _RULES[index].handle(data, start)
            if found is None:
                continue
            if spans and found.spans and found.spans[0].start < spans[-1].end:
                continue
            spans.extend(
                _named_by_form(data, span) if index >= _FIRST_BY_NAME else span
                for span in found.spans
                if not is_documented(data[span.start : span.end])
            )
            pos = max(pos, found.resume)
            if found.spans:
                break
    return spans


def _rules_at(data: bytes, pos: int) -> list[int]:
    """The rules whose heads stand at `pos`, first ones first."""
    return sorted(_which().Match(data[pos : pos + _HEAD_WINDOW_BYTES]) or ())


def _named_by_form(data: bytes, span: Span) -> Span:
    """A secret found by the name beside it, under the name that its own form gives it."""
    for index in _rules_at(data, span.start):
        found = _RULES[index].handle(data, span.start) if index < _FIRST_BY_NAME else None
        if found is not None and found.spans and found.spans[0].start == span.start and found.resume == span.end:
            return found.spans[0]
    return span


def _replace(data: bytes, spans: list[Span], style: RedactionStyle) -> bytes:
    pieces: list[bytes] = []
    end = 0
    for span in spans:
        marker = b"[REDACTED_SECRET]" if style == "codex" else b"[REDACTED_SECRET:" + span.kind.encode() + b"]"
        pieces += (data[end : span.start], span.prefix, marker)
        end = span.end
    pieces.append(data[end:])
    return b"".join(pieces)
