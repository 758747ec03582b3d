"""Rules for secrets that only the name on their left gives away, in shell, code, JSON, YAML, TOML, XML and prose."""

from __future__ import annotations

import re
from typing import NamedTuple

from stillroom.pattern import late
from stillroom.rollouts.redaction.matching import GAP, MAX_RESCAN_BYTES, QUOTE, URL64, Found, Pattern, Rule, Span
from stillroom.rollouts.redaction.plausible import Kind, Place, plausible

_PASSWORD = (
    r"(?i:passw(?:or)?d|passphrase|passcode|pwd|[_-]pass|contrase(?:ñ|n)a|passwort|kennwort|senha|mot de passe)|"
    r"пароль|Пароль|密码|密碼|口令|パスワード|비밀번호|암호"
)
_API_KEY = (
    r"(?i:(?:api|access|secret|private|auth|encryption|signing|master|account|shared|subscription|consumer|client|service|"
    r"service[_-]?role|storage|license|app|application|admin|project|write|deploy|host|webhook|session)[_-]?key)"
)
_SECRET = r"(?i:secret|secret[_-]?key[_-]?base|credentials)"
_TOKEN = r"(?i:token)"
_WEAK = r"(?i:[a-z0-9][_-]key|[a-z0-9]Key|[_\"'-]auth)"
_SUFFIX = r"(?i:[_-]?(?:value|v?[0-9]{1,2}|prod|dev|test|live))?"
_TYPE = r"(?:(?:str|string|String|&str|&'static str|bytes|SecretStr|Optional\[str\]|str \| None)[ \t]{0,4}=[ \t]{0,4})?"
_SEPARATOR = r"(?:=>|[:?+!]?={1,3}|:|：)"
_OPEN = rf"(?:[bfrBFRuU@]{{0,2}}{QUOTE})"
_BARE_FIRST = r"[A-Za-z0-9!@#%^+/_~]"
_BARE = r"[^\s\"'`\\,;&|<>(){}\[\]]"
_QUOTED_FIRST = r"[^\s\"'\\,:}\])]"

_TOLD = r"(?i:token|api[ _-]?key|secret)"
_QUOTED = rf"(?:{QUOTE}|「|“|«)"
#: `the password is X`, `the password "X"`.
_IS = rf"(?:(?: (?i:is|ist|est|es|é):? | — | - | ?(?:是|为|為|は|은|는)[: ]?){_QUOTED}?| {_QUOTED})"
_TOLD_VALUE = r"[!#-&(-\[\]-_a-~]"
_NAMES = rf"(?:{_PASSWORD}|{_API_KEY}|{_SECRET}|{_TOKEN}){_SUFFIX}"
_CLOSE = rf"(?:{QUOTE})?\]?"
#: `{"name": "API_KEY", "value": "…"}`, as Kubernetes, Terraform and XML write it.
_PAIRED = rf"(?:[\s,]|\\+[nrt])+(?:{QUOTE})?(?i:value)(?:{QUOTE})?{GAP}[:=]"
_ASSIGN = rf"{_CLOSE}(?:{GAP}{_SEPARATOR}|{_PAIRED}){GAP}{_TYPE}"
_VALUE_HEAD = rf"(?:{_OPEN}{_QUOTED_FIRST}[^\r\n\"'`]{{3}}|{_BARE_FIRST}{_BARE}{{5}})"
_WEAK_HEAD = rf"(?:{_OPEN}[A-Za-z0-9+/_=-]{{16}}|[A-Za-z0-9+/_=-]{{16}})"


def _compile(pattern: str) -> re.Pattern[bytes]:
    """Python's `re`, for looks at one place: on a few bytes it answers sooner than RE2, and here none can run wild."""
    return late(pattern.encode())


_whole = _compile(
    rf"(?P<name>(?P<password>{_PASSWORD})|(?P<api_key>{_API_KEY})|(?P<secret>{_SECRET})|(?P<token>{_TOKEN})|(?P<weak>{_WEAK}))"
    rf"{_SUFFIX}(?P<close>{QUOTE})?\]?(?P<separator>(?:{GAP}{_SEPARATOR}|{_PAIRED}){GAP}|\(){_TYPE}(?:[bfrBFRuU@]{{0,2}}(?P<open>{QUOTE}))?"
)
_flag = _compile(
    rf"(?:-|ENV [A-Z_]*)"
    rf"(?P<name>(?P<password>{_PASSWORD})|(?P<api_key>{_API_KEY})|(?P<secret>{_SECRET})|(?P<token>{_TOKEN}))"
    rf"[ \t]+(?P<open>{QUOTE})?"
)
_bare_value = _compile(rf"{_BARE}+")
_MAX_BARE_BYTES = 4096
#: Name, separator and opening quote are shorter than this; so is a value that stands in a sentence.
_MAX_HEAD_BYTES = 640
_stop = _compile(r"\\*[\"'`]|[\r\n]|\\+[nr]")
_MAX_QUOTED_BYTES = 8192

_NAME_CHARS = URL64 | frozenset(b".$")
_MAX_NAME_BYTES = 48
_NO_SECRETS = Pattern(
    r"(?i)(?:next|prev|page|paging|pagination|continuation|cancel(?:l?ation)?|sync|resume|pad|eos|bos|unk|sep|cls|mask|stop|"
    r"special|start|starting|end|public[_-]?key|eot|bot|ownership|owner|lease|fencing|lock|claim|max|min|num|total|input|"
    r"output|prompt|completion|cached|reasoning|per|each|first|last|current|design|color|lexer|syntax|parser|semantic|id)[_.-]?token$|"
    r"(?:primary|foreign|public|sort|partition|hash|cache|composite|unique|index|row|map|dict|object|lookup|group|order|"
    r"query|react|route|translation|idempotency|shortcut|hot|arrow|registry|dedup\w*|sub|parent|child|data|config|settings?|"
    r"item|list|file|metric|event|message|job|task|thread|user|trace|span|issue|ssh_?host)[_.-]?key$|"
    r"(?:^|[_.-])(?:old)?pwd$"
)
_ENV_NAME = late(r"^[A-Z][A-Z0-9_]*$")


class _Name(NamedTuple):
    text: str
    start: int
    kind: Kind


def assignment_rules() -> list[Rule]:
    """Rules by name."""
    flag_names = rf"(?:{_PASSWORD}|{_API_KEY}|{_SECRET}|{_TOKEN})"
    return [
        Rule(rf"{_NAMES}{_ASSIGN}{_VALUE_HEAD}", _assigned),
        Rule(rf"{_NAMES}\({_OPEN}{_QUOTED_FIRST}[^\r\n\"'`]{{3}}", _assigned),
        Rule(rf"{_WEAK}{_SUFFIX}{_ASSIGN}{_WEAK_HEAD}", _assigned),
        Rule(rf"(?:-|ENV [A-Z_]*){flag_names}[ \t]+(?:{QUOTE})?[^\s\"'\\<$-][^\s\"'\\]{{3}}", _flagged),
        Rule(r"(?i:login)[ \t]{1,4}[^\s\"'\\]{1,64}[ \t]{1,4}(?i:password)[ \t]{1,4}[^\s\"'\\]{6}", _netrc),
        Rule(rf"(?:{_PASSWORD}|{_TOLD}){_IS}{_TOLD_VALUE}{{6}}", _told),
        Rule(rf"(?:{_TOLD})[ ]{{1,2}}(?:{QUOTE})?[A-Za-z0-9+/_-]{{20}}", _beside),
        Rule(r"(?:sshpass|redis-cli|docker login|mysql(?:dump|admin)?) ", _option),
        Rule(r"(?:-u|--user)[ =](?:\\*[\"'])?[^\s:\"'\\$<]+:[^\s\"'\\$<]{4}", _curl),
        Rule(r"(?i:password|secret|token|apikey|api_key|api-key)>[^\s<>\"'\\]{6}", _element),
        Rule(r"(?i:pwd|password)[ ]{0,2}=[ ]{0,2}\{", _braced),
    ]


def _assigned(data: bytes, pos: int) -> Found | None:
    match = _whole.match(data, pos, pos + _MAX_HEAD_BYTES)
    if match is None:
        return None
    name = _name(data, match)
    start = match.end()
    if name.start > 0 and data[name.start - 1] == 0x3A and match.group("separator")[:1] == b":":
        return Found((), start)  # `arn:aws:…:secret:NAME`, `AWS::IAM::AccessKey: …`
    called = match.group("separator") == b"("
    if called and (match.start("open") < 0 or name.text.lower().endswith("pass")):
        return Found((), start)
    if match.start("open") >= 0:
        opening = match.group("open")
        end = _quoted_end(data, start, opening)
        if end is not None:
            if end == start or data[start] in b" \t\r\n,:}])":
                return Found((), start)
            return _judge(data, start, end, name, place="quoted", rescan=True)
    elif match.start("close") >= 0 and data[match.end("close") : match.end("close") + 1] != b"]":
        return Found(
            (), start
        )  # a quoted key with a bare value: a number or a name, and a placeholder would break the JSON
    run = _bare_value.match(data, start, start + _MAX_BARE_BYTES)
    if run is None:
        return Found((), start)
    end = run.end()
    return _judge(data, start, end, name, place=_place(data, name, match.group("separator"), end), rescan=False)


def _judge(data: bytes, start: int, end: int, name: _Name, *, place: Place, rescan: bool) -> Found:
    if place != "quoted":
        if data.startswith(b"[REDACTED_SECRET", end):
            return Found((), start)  # what is left of a value that was refused as a whole
        while end > start and data[end - 1] in b".,:;?":
            end -= 1
        if place == "bare" and data[end : end + 1] in (b"(", b"[", b"{"):
            return Found((), start)
    refused = Found((), start if rescan or end - start <= MAX_RESCAN_BYTES else end)
    if _NO_SECRETS.search(name.text.encode()) and not (name.kind == "password" and _bare_secret(data[start:end])):
        return refused
    value = data[start:end].decode("utf-8", "replace")
    if not plausible(value, kind=name.kind, place=place):
        return refused
    return Found((Span(start, end, _label(name)),), end)


def _bare_secret(value: bytes) -> bool:
    """`PWD=` is the working directory in every shell, and a password in connection strings."""
    return b"/" not in value and b"\\" not in value


def _place(data: bytes, name: _Name, separator: bytes, end: int) -> Place:
    if separator != b"=":
        return "bare"
    before = data[max(0, name.start - 8) : name.start]
    own_line = before == b"" or before[-1] in b"\n\r\"'`" or before.endswith((b"\\n", b"\\r"))
    if _ENV_NAME.match(name.text) or own_line or before.endswith((b"export ", b";", b"&", b"?", b"--")):
        return "literal"
    return "literal" if data[end : end + 1] in (b";", b"&") else "bare"


def _name(data: bytes, match: re.Match[bytes]) -> _Name:
    start, end = match.start("name"), match.end("name")
    kind: Kind = "weak"
    candidates: tuple[Kind, ...] = ("password", "api_key", "secret", "token")
    for candidate in candidates:
        if match.start(candidate) >= 0:
            kind = candidate
    first = start
    while first > 0 and start - first < _MAX_NAME_BYTES and data[first - 1] in _NAME_CHARS:
        first -= 1
    if 0 < first < start and data[first - 1] == 0x5C and data[first] in b"nrt":
        first += 1  # the letter of a `\\n` that stands before the name in JSON text
    return _Name(data[first:end].decode("utf-8", "replace"), first, kind)


def _label(name: _Name) -> str:
    lowered = name.text.lower().replace("-", "").replace("_", "")
    if "secretaccesskey" in lowered:
        return "aws_secret_key"
    if name.kind == "weak":
        return "token" if lowered == "token" else "key"
    return name.kind


def _quoted_end(data: bytes, start: int, opening: bytes) -> int | None:
    """Where the string that `opening` began ends; None when it is torn, or too long to be a secret.

    A quote with k backslashes stands at the level of the ones at the end of k in binary: 0, 1, 3, 7 for text that was
    escaped never, once, twice, three times. A string ends at its own quote of its own level, or of a lower one.
    """
    quote = opening[-1]
    level = _level(len(opening) - 1)
    limit = min(len(data), start + _MAX_QUOTED_BYTES)
    pos = start
    while (found := _stop.search(data, pos, limit)) is not None:
        text = found.group()
        last = text[-1]
        if last in b"\r\n" or (last in b"nr" and quote != 0x22):
            return None
        if last in b"\"'`":
            here = _level(len(text) - 1)
            if last == quote and here <= level:
                return found.end() - 1 - ((1 << here) - 1)
            if (
                last == 0x22
                and quote != 0x22
                and data[found.end() : found.end() + 1] in (b"", b",", b":", b"}", b"]", b" ", b"\n")
            ):
                return None
        pos = found.end()
    return None


def _level(backslashes: int) -> int:
    level = 0
    while backslashes & 1:
        level += 1
        backslashes >>= 1
    return level


def _flagged(data: bytes, pos: int) -> Found | None:
    match = _flag.match(data, pos, pos + _MAX_HEAD_BYTES)
    if match is None:
        return None
    name = _name(data, match)
    start = match.end()
    if data[pos] == 0x2D and "--" not in name.text:
        return None  # `base-passwd maintainer` is no flag
    if match.start("open") >= 0:
        end = _quoted_end(data, start, match.group("open"))
        if end is not None and end > start:
            return _judge(data, start, end, name, place="quoted", rescan=True)
    run = _bare_value.match(data, start, start + _MAX_BARE_BYTES)
    if run is None:
        return Found((), start)
    return _judge(data, start, run.end(), name, place="literal", rescan=False)


_netrc_whole = _compile(r"(?i:login)[ \t]{1,4}[^\s\"'\\]{1,64}[ \t]{1,4}(?i:password)[ \t]{1,4}")
_curl_whole = _compile(r"(?:-u|--user)[ =](?:\\*[\"'])?[^\s:\"'\\$<]{1,64}:(?P<value>[^\s\"'\\]{4,256})")
_told_whole = _compile(rf"(?:(?P<password>{_PASSWORD})|{_TOLD}){_IS}(?P<value>{_TOLD_VALUE}{{6,256}})")
_beside_whole = _compile(rf"(?:{_TOLD})[ ]{{1,2}}(?:{QUOTE})?(?P<value>[A-Za-z0-9+/_-]{{20,256}}=*)")
_option_whole = _compile(
    r"(?:sshpass(?: [^\n|;&\"]{0,80}?)? -p ?|redis-cli(?: [^\n|;&\"]{0,120}?)? -a "
    r"|docker login(?: [^\n|;&\"]{0,160}?)? -p |mysql(?:dump|admin)?(?: [^\n|;&\"]{0,120}?)? -p)"
    r"(?:\\*[\"'])?(?P<value>[^\s\"'\\$<-][^\s\"'\\]{5,128})"
)
_element_whole = _compile(r"[A-Za-z_-]{5,9}>(?P<value>[^\s<>\"'\\]{6,512})<")
_braced_whole = _compile(r"[A-Za-z]{3,8}[ ]{0,2}=[ ]{0,2}\{(?P<value>[^\s{}\"'\\]{4,128})\}")


def _netrc(data: bytes, pos: int) -> Found | None:
    head = _netrc_whole.match(data, pos, pos + _MAX_HEAD_BYTES)
    run = None if head is None else _bare_value.match(data, head.end(), head.end() + _MAX_BARE_BYTES)
    if head is None or run is None:
        return None
    return _judge(data, head.end(), run.end(), _Name("password", pos, "password"), place="literal", rescan=False)


def _curl(data: bytes, pos: int) -> Found | None:
    line = data[max(0, pos - 200) : pos].rpartition(b"\n")[2]
    match = _curl_whole.match(data, pos, pos + _MAX_HEAD_BYTES)
    if match is None or b"curl" not in line:
        return None
    start, end = match.start("value"), match.end("value")
    return _judge(data, start, end, _Name("password", pos, "password"), place="literal", rescan=True)


def _told(data: bytes, pos: int) -> Found | None:
    match = _told_whole.match(data, pos, pos + _MAX_HEAD_BYTES)
    if match is None:
        return None
    kind: Kind = "password" if match.start("password") >= 0 else "token"
    return _judge(data, match.start("value"), match.end("value"), _Name(kind, pos, kind), place="bare", rescan=True)


def _beside(data: bytes, pos: int) -> Found | None:
    """`use token X`: only what is random without doubt."""
    match = _beside_whole.match(data, pos, pos + _MAX_HEAD_BYTES)
    if match is None:
        return None
    return _judge(data, *match.span("value"), _Name("token", pos, "weak"), place="bare", rescan=True)


def _option(data: bytes, pos: int) -> Found | None:
    match = _option_whole.match(data, pos, pos + _MAX_HEAD_BYTES)
    if match is None:
        return None
    return _judge(data, *match.span("value"), _Name("password", pos, "password"), place="literal", rescan=True)


def _element(data: bytes, pos: int) -> Found | None:
    match = _element_whole.match(data, pos, pos + _MAX_HEAD_BYTES)
    if match is None:
        return None
    kind: Kind = "password" if match.group()[:4].lower() == b"pass" else "api_key"
    return _judge(data, match.start("value"), match.end("value"), _Name(kind, pos, kind), place="literal", rescan=True)


def _braced(data: bytes, pos: int) -> Found | None:
    """ODBC writes `PWD={…}`."""
    match = _braced_whole.match(data, pos, pos + _MAX_HEAD_BYTES)
    if match is None:
        return None
    start, end = match.start("value"), match.end("value")
    return _judge(data, start, end, _Name("password", pos, "password"), place="bare", rescan=True)
