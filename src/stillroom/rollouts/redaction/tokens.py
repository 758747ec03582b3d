"""Rules from the table: tokens that are told by their own form."""

from __future__ import annotations

from stillroom.rollouts.redaction.matching import (
    Found,
    Handler,
    Pattern,
    Rule,
    Span,
    ends_word,
    starts_word,
)
from stillroom.rollouts.redaction.plausible import monotone
from stillroom.rollouts.redaction.rules import TOKEN_RULES, VENDOR_EXAMPLES, TokenRule

#: `sk-proj-your-key-goes-here`: letters only, and no part longer than a word.
_MAX_WORD = 12
#: AWS hands out keys as a table of ids and secrets.
_aws_secret = Pattern(r"[ \t,;|:]{1,4}(?P<secret>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)")


def token_rules() -> list[Rule]:
    """One rule for every row of the table, in its order."""
    return [Rule(row.head, _handler(row)) for row in TOKEN_RULES]


def is_example(token: bytes) -> bool:
    """True for what documents show instead of a token: `sk-xxxx…`, `AKIA…EXAMPLE`."""
    text = token.decode("latin-1")
    if any(word in text for word in VENDOR_EXAMPLES):
        return True
    words = text.replace("_", "-").split("-")
    if len(words) > 2 and all(word.isalpha() and len(word) <= _MAX_WORD for word in words):
        return True
    body = text.rsplit("-", 1)[-1] if "-" in text else text.rsplit("_", 1)[-1]
    return monotone(body) or monotone(text[4:])


def _handler(row: TokenRule) -> Handler:
    whole = Pattern(row.head + (f"{row.tail}*" if row.tail else ""))

    def handle(data: bytes, pos: int) -> Found | None:
        if not starts_word(data, pos):
            return None
        match = whole.match(data, pos)
        if match is None:
            return None
        end = match.end()
        while data[end - 1] == 0x2E:  # a full stop ends the sentence, not the token
            end -= 1
        if row.whole and not ends_word(data, end):
            return None
        if is_example(data[pos:end]):
            return Found((), end)
        spans = [Span(pos, end, row.kind)]
        if row.kind == "aws_access_key_id" and (secret := _aws_secret.match(data, end)) is not None:
            spans.append(Span(secret.start("secret"), secret.end("secret"), "aws_secret_key"))
        return Found(tuple(spans), spans[-1].end)

    return handle
