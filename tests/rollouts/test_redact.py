"""Secrets go, everything else stays."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from tests.rollouts.redaction_corpus import (
    BEARER_NEGATIVE,
    BEARER_POSITIVE,
    NEGATIVE,
    SURROUNDED,
    TOKENS,
    Secret,
)

from stillroom.rollouts.redact import redact, redact_counted

_FRAMES = [
    "{}",
    "a {} b",
    "x={}",
    '"{}"',
    "`{}`",
    "({})",
    "a\n{}\nb",
    r'{{"output":"line\n{}\nline"}}',
    r'"{{\"o\":\"{}\",\"n\":\"\\n{}\\n\"}}"',
    "key,{},end",
    "…{}。",
]


def _in(text: str, secret: str) -> str:
    return text.format(*([secret] * text.count("{}")))


@pytest.mark.parametrize("case", TOKENS, ids=lambda case: f"{case.kind}-{case.secret[:8]}")
def test_a_token_goes_wherever_it_stands(case: Secret) -> None:
    for frame in _FRAMES:
        text = _in(frame, case.secret)
        assert redact(text) == text.replace(case.secret, f"[REDACTED_SECRET:{case.kind}]"), frame


@pytest.mark.parametrize("case", SURROUNDED, ids=lambda case: case.text[:40])
def test_a_secret_goes_and_what_names_it_stays(case: Secret) -> None:
    text = _in(case.text, case.secret)
    wanted = text.replace(case.secret, f"[REDACTED_SECRET:{case.kind}]").replace("bearer [", "Bearer [")
    assert redact(text).replace("[REDACTED_SECRET:twilio_account]", "AC" + "9f3a7c1e5b8d2046" * 2) == wanted


@pytest.mark.parametrize("case", [case for case in SURROUNDED if "private" not in case.kind], ids=lambda c: c.text[:40])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_secret_goes_from_json_text_of_any_depth(case: Secret, depth: int) -> None:
    text = plain = _in(case.text, case.secret)
    for _ in range(depth):
        text = json.dumps({"output": text, "then": "it's fine"}, ensure_ascii=False)
    back = redact(text)
    for _ in range(depth):
        loaded = json.loads(back)
        assert list(loaded) == ["output", "then"]
        assert loaded["then"] == "it's fine"
        back = loaded["output"]
    assert case.secret not in back
    assert back == redact(plain)


@pytest.mark.parametrize("text", NEGATIVE)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text
    as_json = json.dumps({"text": text})
    assert redact(as_json) == as_json


@pytest.mark.parametrize("text", BEARER_POSITIVE)
def test_a_bearer_token_goes_as_in_codex(text: str) -> None:
    assert redact(f"x {text} y", style="codex") == "x Bearer [REDACTED_SECRET] y"


@pytest.mark.parametrize("text", BEARER_NEGATIVE)
def test_what_codex_takes_for_no_bearer_token_stays(text: str) -> None:
    assert redact(text, style="codex") == text


def test_codex_style_has_untyped_placeholders() -> None:
    assert redact("token: " + "ab12" * 6, style="codex") == "token: [REDACTED_SECRET]"


def test_secrets_are_counted_by_kind() -> None:
    text = "ghp_" + "a1" * 18 + " ghp_" + "b2" * 18 + " password: hunter2hunter2"
    assert redact_counted(text)[1] == Counter({"github_token": 2, "password": 1})
    assert redact_counted("nothing")[1] == Counter()


@pytest.mark.parametrize(
    "case", [*TOKENS, *SURROUNDED], ids=lambda case: f"{case.kind}-{case.text[:20]}-{case.secret[:6]}"
)
def test_redacting_again_changes_nothing(case: Secret) -> None:
    once = redact(_in(case.text, case.secret))
    assert redact(once) == once


def test_a_table_of_aws_keys_loses_both_columns() -> None:
    text = "Access key ID,Secret access key\n" + "AK" + "IA" + "Z7Q2M4X9T1P5K8B3," + "aZ4kQ9xT2m" * 4 + "\n"
    assert redact(text).endswith("\n[REDACTED_SECRET:aws_access_key_id],[REDACTED_SECRET:aws_secret_key]\n")


def test_lone_surrogates_survive() -> None:
    text = "a\ud800b ghp_" + "a1" * 18
    assert redact(text) == "a\ud800b [REDACTED_SECRET:github_token]"


def test_a_provider_s_prefix_under_a_secret_s_name_is_enough() -> None:
    pasted = "DEPLOY_TOKEN=ghp_MADE-UP-TOKEN api_key=sk-proj-MADE-UP-KEY"
    assert redact(pasted, style="codex") == "DEPLOY_TOKEN=[REDACTED_SECRET] api_key=[REDACTED_SECRET]"
    assert redact("api_key=sk-your-key-here") == "api_key=sk-your-key-here"
