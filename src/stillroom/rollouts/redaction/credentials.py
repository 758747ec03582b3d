"""Rules for credentials that travel in requests: tokens, headers, cookies, and what stands in URLs."""

from __future__ import annotations

import base64
import binascii

from stillroom.rollouts.redaction.matching import GAP, MAX_RESCAN_BYTES, QUOTE, Found, Pattern, Rule, Span, starts_word
from stillroom.rollouts.redaction.plausible import is_placeholder, plausible

_MAX_TOKEN_BYTES = 4096


def credential_rules() -> list[Rule]:
    """Rules by shape, most specific first."""
    return [
        Rule(r"eyJ[A-Za-z0-9_-]{8}", _jwt),
        Rule(r":\\*/\\*/[^\s/:@\"'`\\<>\[]*:[^\s/@\"'`\\<>]+@", _url_password),
        Rule(r"(?i:bearer)(?:[ \t]|\\+t){1,16}[A-Za-z0-9._~+/-]{16}", _bearer),
        Rule(r"(?i:basic)[ \t]{1,4}[A-Za-z0-9+/]{8}", _basic),
        Rule(rf"(?i:authorization)(?:{QUOTE})?\]?{GAP}[:=,]{GAP}(?:{QUOTE})?[A-Za-z0-9]", _authorization),
        Rule(rf"(?i:cookie)(?:(?:{QUOTE})?{GAP}[:=]{GAP}(?:{QUOTE})?|[ \t]{QUOTE})[A-Za-z0-9_.$-]+=", _cookie),
        Rule(rf" -b[ \t]{QUOTE}[A-Za-z0-9_.$-]+=", _cookie),
        Rule(r"(?i:[?&;]|\\u0026|&amp;)(?i:sig|X-Amz-Signature|X-Goog-Signature)=[A-Za-z0-9%+/_-]{20}", _signature),
    ]


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


_signature_whole = Pattern(
    r"(?:[?&;]|\\u0026|&amp;)(?i:sig|X-Amz-Signature|X-Goog-Signature)=(?P<value>[A-Za-z0-9%+/_-]{20,}=*)"
)


def _signature(data: bytes, pos: int) -> Found | None:
    match = _signature_whole.match(data, pos, pos + _MAX_TOKEN_BYTES)
    if match is None or is_placeholder(match.group("value").decode("latin-1")):
        return None
    return Found((Span(match.start("value"), match.end("value"), "url_signature"),), match.end())
