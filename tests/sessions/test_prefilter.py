"""A quicker `in`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.sessions.prefilter import holder

WORD = b"tillroom"
holds = holder(WORD, by=b"llroom")


@given(
    st.lists(st.sampled_from([b"till", b"room", b"llroom", WORD, b"\xff", b"\n", b"\0", b"x" * 5000]), max_size=8).map(
        b"".join
    )
)
def test_a_word_is_found_wherever_in_does(text):
    assert holds(text) == (WORD in text)


@pytest.mark.parametrize("word", [b".*", b"[/", b"a|b", "Räume".encode(), b"\xfe\xff"])
def test_a_word_is_no_pattern(word):
    assert not holder(word)(b"a /." * 5000)
    assert holder(word)(b"a /." * 5000 + word)
