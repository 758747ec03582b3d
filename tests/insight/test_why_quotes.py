"""Which lines of a session are decoded when somebody asks why: all that may say it."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stillroom.insight.why.claims import claim_of, weights
from stillroom.insight.why.quotes import Search
from stillroom.sessions.item import Item

WORDS = (
    "deploy",
    "Deploy",
    "zone/seven",
    "Straße",
    "STRASSE",
    "tests",
    "green",
    '"quoted"',
    "back\\slash",
    "wait",
    "\n",
    "  ",
    "é",
)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)


@given(
    claim=texts,
    quoted=st.sampled_from(("- the user asked: “{}”", '- "{}"', "- {}", "- `{}` works")),
    said=texts,
    other=texts,
    escaped=st.booleans(),
)
def test_a_line_that_says_it_is_never_passed_by(claim: str, quoted: str, said: str, other: str, escaped: bool):
    asked = claim_of(quoted.format(claim))
    search = Search(asked, weights(asked.words, {}))
    raw = msgspec.json.encode({"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]})
    if escaped:
        raw = raw.decode().encode("ascii", "backslashreplace").replace(b"\\x", b"\\u00").replace(b"/", b"\\/")
    if search.best(Item("message", "user", raw, None, 1)):
        assert search.wants(raw)
        assert search.wants(msgspec.json.encode(other) + b"\n" + raw)


def test_a_line_with_one_word_of_many_is_passed_by():
    asked = claim_of("- never deploy before the migrations of the ledger are reviewed")
    search = Search(asked, weights(asked.words, {}))
    assert not search.wants(b'{"type":"message","text":"we deploy on Mondays"}')
    assert search.wants(b'{"type":"message","text":"deploy when migrations of the ledger are reviewed"}')
