"""Whatever the text: JSON keeps its shape, planted secrets are gone, once is enough, and time is linear."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rollouts.redaction_corpus import SURROUNDED, TOKENS, pem

from stillroom.rollouts.redact import redact

type_of_json = dict | list | str | int | float | bool | None

_SECRETS = [case.secret for case in TOKENS] + [pem("RSA PRIVATE KEY")]
_STUBS = [
    *[
        '"',
        "'",
        "`",
        "\\",
        "\\\\",
        '\\"',
        "\n",
        "\\n",
        " ",
        ",",
        ":",
        "=",
        "{",
        "}",
        "[",
        "]",
        "a",
        "tail",
        "é",
        "令",
        "<",
        ">",
    ],
    *[
        "token: ",
        "token=",
        'token="',
        "password: '",
        "password=",
        '"password": "',
        "api_key=",
        "Bearer ",
        "Authorization: ",
    ],
    *[
        "Cookie: a=",
        "https://u:",
        "@host",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "--password ",
        "secret",
    ],
    *[
        "eyJ",
        "sk-",
        "[REDACTED_SECRET:token]",
        "[REDACTED_SECRET",
        "hunter2hunter2",
        "a1b2c3d4e5f6g7h8",
        "curl -u a:",
        "_key=",
    ],
    *["\b", "\x1f", "earer abcdefghijklmnopqrst", "pm_" + "a1" * 20, "k_live_" + "a1" * 12, "ab8Q~" + "a1" * 17],
]
_KEYS = ["text", "password", "apiKey", "token", "output", "Cookie", "Authorization", "x"]

_word = st.sampled_from(_STUBS) | st.text(max_size=5)
_text = st.lists(_word, max_size=12).map("".join)
_spaced_secret = st.sampled_from(_SECRETS).map(lambda secret: f" {secret} ")
_planted = st.tuples(_text, _spaced_secret, _text).map("".join)
_case = st.sampled_from(SURROUNDED).map(lambda case: case.text.format(*([case.secret] * case.text.count("{}"))))
_leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _text | _planted | _case
_document = st.recursive(
    _leaf,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS) | _text, inner, max_size=4),
    max_leaves=12,
)


def _shape(value: type_of_json) -> object:
    match value:
        case dict():
            return [_shape(part) for part in value.values()]
        case list():
            return tuple(_shape(part) for part in value)
        case str():
            return "text"
        case _:
            return value


def _gone(text: str) -> bool:
    return not any(secret in text for secret in _SECRETS)


@given(_document, st.booleans(), st.sampled_from([None, 2]))
def test_json_keeps_its_shape(document: type_of_json, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    clean = redact(text)
    assert _shape(json.loads(clean)) == _shape(document)
    assert redact(clean) == clean


@given(_document)
def test_json_in_json_keeps_its_shape(document: type_of_json) -> None:
    inner = json.dumps({"first": document, "after": "kept"}, ensure_ascii=False)
    clean = redact(json.dumps({"arguments": inner, "after": "kept"}, ensure_ascii=False))
    outer = json.loads(clean)
    assert list(outer) == ["arguments", "after"] and outer["after"] == "kept"
    back = json.loads(outer["arguments"])
    assert back["after"] == "kept" and _shape(back["first"]) == _shape(document)
    assert redact(clean) == clean


@given(st.lists(st.sampled_from(_SECRETS), min_size=1, max_size=4), st.integers(0, 3), st.sampled_from(_KEYS))
def test_planted_secrets_are_gone_at_every_depth(secrets: list[str], depth: int, key: str) -> None:
    text = "\n".join(f"line {secret} end" for secret in secrets)
    for _ in range(depth):
        text = json.dumps({key: text, "next": ["kept"]})
    clean = redact(text)
    for _ in range(depth):
        loaded = json.loads(clean)
        assert list(loaded) == [key, "next"] and loaded["next"] == ["kept"]
        clean = loaded[key]
    assert _gone(clean)


@given(_text | _planted)
def test_once_is_enough(text: str) -> None:
    clean = redact(text)
    assert redact(clean) == clean
    assert redact(clean, style="codex") == clean


_HOSTILE = [
    *[
        "a",
        "\\",
        '"',
        "token=",
        'token="',
        "token='\"",
        'password=\\"aaaa',
        "sk-",
        "-eyJaaaaaaaaa",
        "eyJ",
        "://a:b",
        ":\\/",
    ],
    *["://u:ghp_" + "a1" * 18 + ",", "-----BEGIN PRIVATE KEY-----", "AAAA\n-----END PRIVATE KEY-----", "token\\\\\\"],
    *["-----BEGIN PRIVATE KEY-----\n" + "A" * 64 + "\n", "token" + " " * 9, "Bearer a", "bearer aaaa-bbbb-cccc-dddd "],
    *[
        "cookie:a=",
        "authorization:",
        "Cookie: aa=bbbbbbbbb; ",
        "curl -u a:b",
        "authorization:token ",
        "password: abcdefgh-",
        "--token ",
    ],
    *["_key=aaaaaaaaaaaaaaaa", "ENV ENV_TOKEN", "login a password b", "SG.aaaaaaaaaaaaaaaaaaa.", "[REDACTED_SECRET"],
    *['password="ab cd', "MTIzMTIz", "AC" + "a" * 32, "-----BEGIN PRIVATE KEY-----x", "aA1"],
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", _HOSTILE)
def test_hostile_text_takes_time_in_proportion(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        started = time.process_time()
        redact(text)
        return time.process_time() - started

    seconds(1000)
    small, large = seconds(250_000), seconds(1_000_000)
    assert large < 4 * 4 * max(small, 0.02)


@pytest.mark.slow  # two seconds
@pytest.mark.parametrize("piece", _HOSTILE)
def test_short_hostile_text_takes_time_in_proportion(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        started = time.process_time()
        redact(text)
        return time.process_time() - started

    seconds(1000)
    assert seconds(40_000) < 4 * 4 * max(seconds(10_000), 0.01)
