"""What a person calls a password and then types is no memory, whatever it looks like."""

from __future__ import annotations

import pytest

from stillroom.offline.text.secrets import gives_secret, without_secrets


@pytest.mark.parametrize(
    "text",
    [
        "the password is hunter2",
        "pw: Kaffee!7",
        "DB_PASSWORD = 'swordfish'",
        "der PIN ist 4711",
        "密码是 abc123",
        "la contraseña es perro-99",
        "пароль: лето2024",
    ],
)
def test_a_secret_that_is_named_and_given_is_seen(text: str) -> None:
    assert gives_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "api tokens must never be logged",
        "the token is read from env",
        "secrets go in vault, group_vars/all/vault.yml",
        "max_tokens = 4096",
        "the token expires after 15 minutes",
    ],
)
def test_what_is_only_said_of_secrets_is_not_taken_for_one(text: str) -> None:
    assert not gives_secret(text)


def test_the_value_goes_and_the_sentence_stays() -> None:
    line = '- the user said: "staging login is admin, password hunter2-x is fine" and pw: Kaffee17'
    assert without_secrets(line).endswith("pw: [REDACTED_SECRET]")
    assert without_secrets("max_tokens = 4096") == "max_tokens = 4096"
