"""JSON by the C half of the standard library's `json` alone, for a session that waits.

`import json` brings `re` and `enum`, and costs as much as starting Python. Where the C half is missing, or of another
shape than today's, `json` does the work.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_BLANK = " \t\r\n"


class _Settings:
    """What a scanner asks its owner for: the values of `json.loads` without arguments."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def loads(data: bytes) -> Any:
    """The value of a JSON text in UTF-8. Raises `ValueError` when it is none, `RecursionError` when it is too deep."""
    text = data.decode("utf-8", "surrogatepass").strip(_BLANK)
    if _scan is None:
        import json

        return json.loads(text)
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("no JSON") from None
    except SystemError:  # its own error is in `json`: it fails at raising that while `json` is not loaded
        raise ValueError("no JSON") from None
    if end != len(text):
        raise ValueError(f"no JSON: something follows the value, at {end}")
    return value


def dumps(entry: Mapping[str, str | int | float | None]) -> str:
    """One flat object on one line, in ASCII."""
    return "{" + ",".join(f"{quote(key)}:{_scalar(value)}" for key, value in entry.items()) + "}"


def _scalar(value: str | int | float | None) -> str:
    if value is None:
        return "null"
    return quote(value) if isinstance(value, str) else repr(value)


def _c_half() -> tuple[Callable[[str, int], tuple[Any, int]] | None, Callable[[str], str]]:
    try:
        from _json import encode_basestring_ascii, make_scanner

        settings: Any = _Settings
        return make_scanner(settings), encode_basestring_ascii
    except (ImportError, AttributeError):
        from json import dumps

        return None, dumps


_scan, quote = _c_half()
"""`quote` writes one string, in ASCII."""

__all__ = ["dumps", "loads", "quote"]
