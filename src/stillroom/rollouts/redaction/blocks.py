"""Rules for secrets with a shape of their own around them: keys in PEM, headers, cookies, URLs, webhooks, pairs."""

from __future__ import annotations

import base64
import binascii

from stillroom.rollouts.redaction.matching import (
    GAP,
    MAX_RESCAN_BYTES,
    QUOTE,
    URL64,
    Found,
    Pattern,
    Rule,
    Span,
    starts_word,
)
from stillroom.rollouts.redaction.plausible import is_placeholder, monotone, plausible

_LINE_BREAK = r"(?:\s|\\+[nrt])"
_PEM_LABEL = r"[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?"
_PEM_BEGIN = rf"-----BEGIN {_PEM_LABEL}-----"
_PEM_END = rf"-----END {_PEM_LABEL}-----"
_PEM_TEXT = rf"(?:{_LINE_BREAK}*[A-Za-z0-9+/=]{{16,}})*"
_PEM_HEADERS = rf"(?:{_LINE_BREAK}*[A-Z][A-Za-z-]{{1,30}}: [^\\\n\"'`]{{1,200}})*"
_PEM_LAST = rf"(?:{_LINE_BREAK}*[A-Za-z0-9+/=]{{1,76}})?(?:{_LINE_BREAK}*{_PEM_END})"
_pem = Pattern(rf"{_PEM_BEGIN}{_PEM_HEADERS}(?P<body>{_PEM_TEXT})(?P<last>{_PEM_LAST})?")
#: A key spread over string literals, or behind line numbers and `+` signs: whatever stands between, then a line of it.
_pem_next_line = Pattern(
    r"(?:\\+[nrt\"'/]|[^A-Za-z0-9+/=\\]|[0-9]{1,5}[^A-Za-z0-9+/=\\]){1,48}(?P<line>[A-Za-z0-9+/=]{32,})"
)
_letter_of_a_key = Pattern(r"[A-DF-Za-df-z]")
_pem_end = Pattern(
    rf"(?:{_LINE_BREAK}|[^A-Za-z0-9]){{0,48}}(?:(?P<line>[A-Za-z0-9+/=]{{6,31}})(?:{_LINE_BREAK}|[^A-Za-z0-9]){{1,48}})?{_PEM_END}"
)
_pem_tail = Pattern(rf"(?:[A-Za-z0-9+/=]{{32,}}{_LINE_BREAK}+)+(?:[A-Za-z0-9+/=]{{1,76}}{_LINE_BREAK}+)?$")
_PEM_MAX_TAIL_BYTES = 16_384
_PEM_MAX_LINES = 400
_MAX_TOKEN_BYTES = 4096


def block_rules() -> list[Rule]:
    """Rules by shape, most specific first."""
    return [
        Rule(_PEM_BEGIN, _private_key),
        Rule(_PEM_END, _private_key_tail),
        Rule(r"eyJ[A-Za-z0-9_-]{8}", _jwt),
        Rule(r":\\*/\\*/[^\s/:@\"'`\\<>\[]*:[^\s/@\"'`\\<>]+@", _url_password),
        Rule(r"(?i:bearer)(?:[ \t]|\\+t){1,16}[A-Za-z0-9._~+/-]{16}", _bearer),
        Rule(r"(?i:basic)[ \t]{1,4}[A-Za-z0-9+/]{8}", _basic),
        Rule(rf"(?i:authorization)(?:{QUOTE})?\]?{GAP}[:=,]{GAP}(?:{QUOTE})?[A-Za-z0-9]", _authorization),
        Rule(rf"(?i:cookie)(?:(?:{QUOTE})?{GAP}[:=]{GAP}(?:{QUOTE})?|[ \t]{QUOTE})[A-Za-z0-9_.$-]+=", _cookie),
        Rule(rf" -b[ \t]{QUOTE}[A-Za-z0-9_.$-]+=", _cookie),
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
        Rule(r"(?i:[?&;]|\\u0026|&amp;)(?i:sig|X-Amz-Signature|X-Goog-Signature)=[A-Za-z0-9%+/_-]{20}", _signature),
        Rule(r"AC[0-9a-f]{32}", _twilio_account),
    ]


def _private_key(data: bytes, pos: int) -> Found | None:
    match = _pem.match(data, pos)
    if match is None:
        return None
    end = match.end()
    spans = [Span(pos, end, "private_key")] if match.start("body") < match.end("body") else []
    if match.start("last") >= 0:
        return Found(tuple(spans), end)
    for _ in range(_PEM_MAX_LINES):
        closing = _pem_end.match(data, end)
        if closing is not None:
            last = (_after_escape(data, closing.start("line")), closing.end("line"))
            if last[1] > last[0] and _letter_of_a_key.search(data, *last):
                spans.append(Span(*last, "private_key"))
            break
        line = _pem_next_line.match(data, end)
        if line is None:
            break
        start = min(_after_escape(data, line.start("line")), line.end())
        if not _letter_of_a_key.search(data, start, line.end()):
            break  # a long number, which in JSON may stand without quotes
        end = line.end()
        spans.append(Span(start, end, "private_key"))
    return Found(tuple(spans), end)


def _after_escape(data: bytes, start: int) -> int:
    """`start`, or further when what stands there belongs to an escape such as `\\n` or `\\u001f`."""
    if start == 0 or data[start - 1] != 0x5C:
        return start
    return start + 5 if data[start] == 0x75 else start + 1


def _private_key_tail(data: bytes, pos: int) -> Found | None:
    """The end of a key whose beginning was cut off."""
    floor = max(0, pos - _PEM_MAX_TAIL_BYTES, data.rfind(b"-----", max(0, pos - _PEM_MAX_TAIL_BYTES), pos))
    tail = _pem_tail.search(data[floor:pos])
    if tail is None:
        return None
    start = _after_escape(data, floor + tail.start())
    return Found((Span(start, pos, "private_key"),), pos) if start < pos else None


_jwt_whole = Pattern(
    r"eyJ[A-Za-z0-9_-]{8,}\.(?:eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*|[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)"
)
_jwt_run = Pattern(r"[A-Za-z0-9_-]*")


def _jwt(data: bytes, pos: int) -> Found | None:
    if not starts_word(data, pos) or (pos > 0 and data[pos - 1] == 0x2D):
        return None
    match = _jwt_whole.match(data, pos)
    if match is None:
        run = _jwt_run.match(data, pos)
        return None if run is None else Found((), run.end())
    return Found((Span(pos, match.end(), "jwt"),), match.end())


_url = Pattern(r":\\*/\\*/[^\s/:@\"'`\\<>\[]{0,64}:(?P<password>[^\s/?#\"'`\\<>]{1,256}|[^\s/@\"'`\\<>]{1,128})@")


def _url_password(data: bytes, pos: int) -> Found | None:
    match = _url.match(data, pos)
    if match is None:
        return None
    start, end = match.start("password"), match.end("password")
    password = data[start:end].decode("latin-1")
    stands_for = password.lower() in ("password", "pass", "passwd", "pwd", "secret", "token", "pw")
    if stands_for or is_placeholder(password) or password.startswith("["):
        return Found((), start)
    return Found((Span(start, end, "url_password"),), end)


_bearer_whole = Pattern(r"(?i:bearer)(?:[ \t]|\\+t){1,16}(?P<token>[A-Za-z0-9._~+/-]{16,}=*)")


def _bearer(data: bytes, pos: int) -> Found | None:
    if not starts_word(data, pos):
        return None
    match = _bearer_whole.match(data, pos)
    if match is None:
        return None
    token = match.group("token").decode("latin-1")
    if is_placeholder(token) or _is_compound_word(token):
        return Found((), match.end())
    return Found((Span(pos, match.end(), "bearer_token", b"Bearer "),), match.end())


def _is_compound_word(token: str) -> bool:
    """`token-based-authentication`, `YOUR_ACCESS_TOKEN`, `auth/login.html`: words, joined."""
    parts = token.rstrip("=").replace("/", "-").replace("_", "-").replace(".", "-").split("-")
    return len(parts) > 1 and all(part.isalpha() or not part for part in parts) and len(token) < 64


_basic_whole = Pattern(r"(?i:basic)[ \t]{1,4}(?P<token>[A-Za-z0-9+/]{8,}={0,2})")


def _basic(data: bytes, pos: int) -> Found | None:
    if not starts_word(data, pos):
        return None
    match = _basic_whole.match(data, pos)
    if match is None:
        return None
    start, end = match.start("token"), match.end("token")
    if not _is_user_and_password(data[start:end]):
        return Found((), end) if end - start > MAX_RESCAN_BYTES else None
    return Found((Span(start, end, "basic_credentials"),), end)


def _is_user_and_password(token: bytes) -> bool:
    try:
        decoded = base64.b64decode(token, validate=True)
    except binascii.Error:
        return False
    return b":" in decoded and all(0x20 <= byte < 0x7F for byte in decoded)


_authorization_whole = Pattern(
    rf"(?i:authorization)(?P<close>{QUOTE})?\]?{GAP}[:=,]{GAP}(?P<open>{QUOTE})?"
    r"(?P<scheme>(?i:bearer|basic|token|apikey|api-key|key|bot|ssws|splunk|negotiate|ntlm|client-id|oauth)[ \t]{1,8})?"
    r"(?P<token>[A-Za-z0-9._~+/:-]{6,}=*)"
)


def _authorization(data: bytes, pos: int) -> Found | None:
    match = _authorization_whole.match(data, pos, pos + _MAX_TOKEN_BYTES)
    if match is None or (match.start("close") >= 0 and match.start("open") < 0):
        return None
    start, end = match.start("token"), match.end("token")
    token = data[start:end].decode("latin-1")
    scheme = match.start("scheme") >= 0
    if not plausible(token, kind="token" if scheme else "weak", place="quoted"):
        long = end - start > MAX_RESCAN_BYTES
        return Found((), end if long else match.start("scheme") if scheme else start)
    if scheme and match.group("scheme").lower().startswith(b"bearer"):
        return Found((Span(match.start("scheme"), end, "bearer_token", b"Bearer "),), end)
    basic = scheme and match.group("scheme").lower().startswith(b"basic")
    return Found((Span(start, end, "basic_credentials" if basic else "authorization"),), end)


_cookie_head = Pattern(rf"(?: -b|(?i:cookie)(?:(?:{QUOTE})?{GAP}[:=]{GAP}(?:{QUOTE})?)?)(?:[ \t]{QUOTE})?")
_cookie_pair = Pattern(r"(?:[ \t]{0,2};[ \t]{0,4})?(?P<name>[A-Za-z0-9_.$-]{1,64})=(?P<value>[^\s;,\"'`\\]*)")
_COOKIE_ATTRIBUTES = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite", b"priority", b"version"))
_MAX_COOKIES = 64


def _cookie(data: bytes, pos: int) -> Found | None:
    head = _cookie_head.match(data, pos)
    if head is None:
        return None
    spans: list[Span] = []
    end = head.end()
    for _ in range(_MAX_COOKIES):
        pair = _cookie_pair.match(data, end, end + _MAX_TOKEN_BYTES)
        if pair is None:
            break
        start, end = pair.start("value"), pair.end("value")
        value = data[start:end].decode("latin-1")
        name = pair.group("name").lower()
        if name in _COOKIE_ATTRIBUTES or not plausible(value, kind="token", place="quoted"):
            continue
        spans.append(Span(start, end, "cookie"))
    if spans:
        return Found(tuple(spans), spans[-1].end)
    return Found((), end) if end - head.end() > MAX_RESCAN_BYTES else None


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


_signature_whole = Pattern(
    r"(?:[?&;]|\\u0026|&amp;)(?i:sig|X-Amz-Signature|X-Goog-Signature)=(?P<value>[A-Za-z0-9%+/_-]{20,}=*)"
)


def _signature(data: bytes, pos: int) -> Found | None:
    match = _signature_whole.match(data, pos, pos + _MAX_TOKEN_BYTES)
    if match is None or is_placeholder(match.group("value").decode("latin-1")):
        return None
    return Found((Span(match.start("value"), match.end("value"), "url_signature"),), match.end())


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
