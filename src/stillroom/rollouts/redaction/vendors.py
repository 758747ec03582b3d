"""Rules for secrets that a vendor's mark stands in the middle of, or that come in pairs: webhooks, bots, clouds."""

from __future__ import annotations

import base64
import binascii

from stillroom.rollouts.redaction.matching import URL64, Found, Pattern, Rule, Span, starts_word
from stillroom.rollouts.redaction.plausible import is_placeholder, monotone


def vendor_rules() -> list[Rule]:
    """Rules by shape, most specific first."""
    return [
        Rule(
            r"(?:hooks\.slack\.com|hooks\.slack-gov\.com)\\?/(?:services|workflows|triggers)\\?/[A-Za-z0-9]",
            _slack_webhook,
        ),
        Rule(
            r"discord(?:app)?\.com\\?/api\\?/(?:v[0-9]{1,2}\\?/)?webhooks\\?/[0-9]{10,22}\\?/[A-Za-z0-9_-]{20}",
            _discord_webhook,
        ),
        Rule(r"webhook\.office\.com\\?/webhookb2\\?/[A-Za-z0-9@-]", _teams_webhook),
        Rule(r":AA[A-Za-z0-9_-]{33}", _telegram),
        Rule(r"[MNO][DTjz][A-Za-z0-9]{2}[MNO][DTjz]", _discord_token),
        Rule(r"\.atlasv1\.", _terraform_token),
        Rule(r"[78]Q~[A-Za-z0-9_~.-]{31}", _azure_client_secret),
        Rule(r"JQQJ99[A-Za-z0-9]{26}", _azure_key),
        Rule(r"(?i:AccountKey|SharedAccessKey)=[A-Za-z0-9+/%]{20}", _azure_account_key),
        Rule(r"AC[0-9a-f]{32}", _twilio_account),
    ]


_slack_path = Pattern(
    r"[a-z.-]{1,32}\\?/[a-z]{1,12}\\?/(?P<path>[A-Za-z0-9]{2,16}\\?/[A-Za-z0-9]{2,24}\\?/[A-Za-z0-9]{8,128}(?:\\?/[A-Za-z0-9]{8,128})?)"
)


def _slack_webhook(data: bytes, pos: int) -> Found | None:
    match = _slack_path.match(data, pos)
    if match is None or monotone(match.group("path").decode("latin-1").rsplit("/", 1)[-1]):
        return None
    return Found((Span(match.start("path"), match.end("path"), "slack_webhook"),), match.end())


_discord_path = Pattern(
    r"discord(?:app)?\.com\\?/api\\?/(?:v[0-9]{1,2}\\?/)?webhooks\\?/[0-9]{10,22}\\?/(?P<token>[A-Za-z0-9_-]{20,128})"
)


def _discord_webhook(data: bytes, pos: int) -> Found | None:
    match = _discord_path.match(data, pos)
    if match is None or monotone(match.group("token").decode("latin-1")):
        return None
    return Found((Span(match.start("token"), match.end("token"), "discord_webhook"),), match.end())


_teams_path = Pattern(r"webhook\.office\.com\\?/webhookb2\\?/(?P<path>[A-Za-z0-9@/\\-]{40,400})")


def _teams_webhook(data: bytes, pos: int) -> Found | None:
    match = _teams_path.match(data, pos)
    if match is None:
        return None
    start, end = match.start("path"), match.end("path")
    while data[end - 1] == 0x5C:
        end -= 1
    return Found((Span(start, end, "teams_webhook"),), end)


def _telegram(data: bytes, pos: int) -> Found | None:
    start = pos
    while pos - start < 10 and start > 0 and 0x30 <= data[start - 1] <= 0x39:
        start -= 1
    end = pos + 1
    while end < len(data) and end - pos < 64 and data[end] in URL64:
        end += 1
    before = data[start - 1 : start]
    if pos - start < 8 or before.isdigit() or monotone(data[pos + 3 : end].decode("latin-1")):
        return None
    if not starts_word(data, start) and data[max(0, start - 3) : start].lower() != b"bot":
        return None
    return Found((Span(start, end, "telegram_token"),), end)


#: It begins with the owner's id in base64: digits, which encode to a few letters only.
_discord_whole = Pattern(
    r"(?P<id>[MNO][DTjz][A-Za-z0-9]{20,25}[A-Za-z0-9_-]?)\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?:[^A-Za-z0-9_-]|$)"
)


def _discord_token(data: bytes, pos: int) -> Found | None:
    match = _discord_whole.match(data, pos) if starts_word(data, pos) else None
    if match is None:
        return None
    user = match.group("id")
    try:
        known = base64.urlsafe_b64decode(user + b"=" * (-len(user) % 4)).isdigit()
    except binascii.Error:
        return None
    end = match.end()
    while data[end - 1] not in URL64:
        end -= 1
    return Found((Span(pos, end, "discord_token"),), end) if known else None


def _terraform_token(data: bytes, pos: int) -> Found | None:
    start = pos - 14
    match = _terraform_tail.match(data, pos)
    if match is None or start < 0 or not data[start:pos].isalnum() or not starts_word(data, start):
        return None
    return Found((Span(start, match.end(), "terraform_token"),), match.end())


_terraform_tail = Pattern(r"\.atlasv1\.[A-Za-z0-9_-]{40,}")


_AZURE_CHARS = URL64 | frozenset(b"~.")


def _azure_client_secret(data: bytes, pos: int) -> Found | None:
    start = pos - 3
    if start < 0 or any(byte not in _AZURE_CHARS for byte in data[start:pos]) or not starts_word(data, start):
        return None
    end = pos + 3
    while end < len(data) and end - pos < 40 and data[end] in _AZURE_CHARS:
        end += 1
    while data[end - 1] == 0x2E:
        end -= 1
    return Found((Span(start, end, "azure_client_secret"),), end)


def _azure_key(data: bytes, pos: int) -> Found | None:
    start = pos - 52
    if start < 0 or not data[start:pos].isalnum() or not starts_word(data, start):
        return None
    return Found((Span(start, pos + 32, "azure_key"),), pos + 32)


_account_key = Pattern(r"(?i:AccountKey|SharedAccessKey)=(?P<key>[A-Za-z0-9+/%]{20,512}=*)")


def _azure_account_key(data: bytes, pos: int) -> Found | None:
    match = _account_key.match(data, pos)
    if match is None or is_placeholder(match.group("key").decode("latin-1")):
        return None
    return Found((Span(match.start("key"), match.end("key"), "azure_account_key"),), match.end())


_twilio_pair = Pattern(r"AC[0-9a-f]{32}(?:\\*[\"'`])?[ \t]{0,4}[:,][ \t]{0,4}(?:\\*[\"'`])?(?P<token>[0-9a-f]{32})")
_auth_token = Pattern(r"(?i:auth[_ -]?token)")
_TWILIO_CONTEXT_BYTES = 160


def _twilio_account(data: bytes, pos: int) -> Found | None:
    """An account id alone is no secret; beside its token it is one half of a login."""
    end = pos + 34
    if not starts_word(data, pos) or (end < len(data) and chr(data[end]).isalnum()):
        return None
    account = Span(pos, end, "twilio_account")
    pair = _twilio_pair.match(data, pos)
    if pair is not None:
        token = Span(pair.start("token"), pair.end("token"), "twilio_auth_token")
        return Found((account, token), token.end)
    near = _auth_token.search(data, max(0, pos - _TWILIO_CONTEXT_BYTES), min(len(data), end + _TWILIO_CONTEXT_BYTES))
    return None if near is None else Found((account,), end)
