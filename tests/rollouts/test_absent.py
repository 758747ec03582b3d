"""A no about a word is certain, however the session writes it."""

from __future__ import annotations

import json
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.rollouts.absent import Record
from stillroom.rollouts.keys import tokens_of

_WORDS = st.sampled_from(
    ["seed", "Straße", "\u212aelvin", "naïve", "C:\\Users\\me", "a/b", "x\nnew", "\x1b[1mred", "“q”"]
)


@given(st.lists(st.one_of(_WORDS, st.text(max_size=5)), max_size=6).map(" ".join), st.booleans(), st.integers(0, 2))
def test_every_word_that_is_said_may_be_said(text: str, is_ascii: bool, depth: int) -> None:
    record = text
    for _ in range(depth + 1):  # arguments are JSON in JSON
        record = json.dumps(record, ensure_ascii=is_ascii).replace("/", "\\/")
    if not any(0xD800 <= ord(character) < 0xE000 for character in text):
        assert all(map(Record(record).may_say, tokens_of(text)))


def test_a_word_that_stands_nowhere_is_not_said() -> None:
    record = Record(msgspec.json.encode(["run `make seed`\n\x1b[1mfirst"]).decode())
    assert record.may_say("seed") and record.may_say("first") and not record.may_say("deploy")


@pytest.mark.slow
def test_all_letters_that_fold_to_ascii_are_known() -> None:
    """Asks every character there is."""
    for character in map(chr, range(128, sys.maxunicode + 1)):
        if not character.isprintable() or not any(map(str.isascii, character.casefold())):
            continue
        assert Record(character).may_say("certainly not said"), character
