from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.sessions.item import Item
from stillroom.sessions.render import render_string
from stillroom.sessions.truncate import middle_truncate

SMALL = Reading(seam_guard_bytes=40, seam_margin_bytes=120)
SECRET = re.compile(r"sk-[a-z]{20}")


def item(text: str) -> Item:
    raw = json.dumps({"type": "message", "text": text}, ensure_ascii=False).encode()
    return Item("message", "user", raw, None, 1)


def redact(text: str) -> str:
    return SECRET.sub("[key]", text)


def serialised(items: list[Item]) -> str:
    return "[" + ",".join(entry.raw.decode() for entry in items) + "]"


def test_nothing_renders_as_an_empty_array() -> None:
    rendered = render_string([], token_limit=10, redact=redact)
    assert (rendered.text, rendered.cut, rendered.note) == ("[]", False, "")


def test_what_fits_is_valid_json_on_one_line_with_payloads_as_they_were() -> None:
    items = [item("one"), item("two\nlines"), item("é")]
    rendered = render_string(items, token_limit=1000, redact=redact)
    assert rendered.text == serialised(items)
    assert "\n" not in rendered.text
    assert [entry["text"] for entry in json.loads(rendered.text)] == ["one", "two\nlines", "é"]
    assert rendered.source_bytes == rendered.kept_bytes == len(rendered.text.encode())


@given(st.lists(st.text(max_size=30), max_size=12), st.integers(0, 60))
def test_near_the_limit_it_is_serialise_then_redact_then_cut(texts: list[str], limit: int) -> None:
    items = [item(text) for text in texts]
    rendered = render_string(items, token_limit=limit, redact=redact)
    assert rendered.text == middle_truncate(redact(serialised(items)), limit)
    assert rendered.cut == (rendered.text != redact(serialised(items)))
    assert rendered.kept_bytes == len(rendered.text.encode())


@given(st.lists(st.integers(0, 400), min_size=1, max_size=20), st.integers(0, 60))
def test_far_above_it_both_ends_are_the_ends_of_the_array(sizes: list[int], limit: int) -> None:
    items = [item("é" * size) for size in sizes]
    whole = serialised(items)
    text = render_string(items, token_limit=limit, redact=redact, reading=SMALL).text
    if len(whole.encode()) <= 4 * limit:
        assert text == whole
        return
    head, _, rest = text.partition("…")
    count, _, tail = rest.partition(" tokens truncated…")
    assert whole.startswith(head) and whole.endswith(tail)
    kept = len(head.encode()) + len(tail.encode())
    assert 4 * limit - 2 <= kept <= 4 * limit
    assert abs(int(count) - (len(whole.encode()) - kept) / 4) <= 1


@given(st.integers(0, 700), st.integers(0, 700), st.integers(30, 90))
def test_no_part_of_a_secret_stays_at_a_seam(before: int, after: int, limit: int) -> None:
    secret = "sk-" + "abcdefghijklmnopqrst"
    items = [item("." * before + f" {secret} " + "." * 700), item("." * 700 + f" {secret} " + "." * after)]
    text = render_string(items, token_limit=limit, redact=redact, reading=SMALL).text
    assert not re.search(r"sk-[a-z]|[a-z]{0,20}qrst", text.replace(" tokens truncated", ""))


def test_the_note_says_how_much_there_was() -> None:
    rendered = render_string([item("x" * 1_000_000)], token_limit=10_000, redact=redact)
    assert rendered.cut
    assert "1,000 kB of records" in rendered.note and "40 kB in all" in rendered.note
