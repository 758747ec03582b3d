"""Rules for private keys in PEM: whole, cut off at either end, or spread over string literals and numbered lines."""

from __future__ import annotations

from stillroom.rollouts.redaction.matching import Found, Pattern, Rule, Span

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


def private_key_rules() -> list[Rule]:
    """A key by its first line, and by its last."""
    return [
        Rule(_PEM_BEGIN, _private_key),
        Rule(_PEM_END, _private_key_tail),
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
