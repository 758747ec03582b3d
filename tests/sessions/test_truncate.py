from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.sessions.truncate import ceil_boundary, floor_boundary, middle_truncate


def test_a_boundary_inside_a_character_moves_before_it() -> None:
    assert floor_boundary("aé".encode(), 2) == 1
    assert ceil_boundary("aé".encode(), 2) == 3


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abcdefgh", 2, "abcdefgh"),
        ("abcdefghi", 2, "abcd…1 tokens truncated…fghi"),
        ("abcdefgh", 0, "…2 tokens truncated…"),
        ("", 0, ""),
        ("ééééé", 2, "éé…1 tokens truncated…éé"),
        ("aééééa", 2, "aé…1 tokens truncated…éa"),
    ],
)
def test_the_middle_goes_and_the_marker_tells_how_much(text: str, limit: int, expected: str) -> None:
    assert middle_truncate(text, limit) == expected


def test_a_large_rollout_keeps_its_head_and_tail() -> None:
    """Spec §10.2 item 11."""
    limit = math.floor(math.floor(123_000 * 95 / 100) * 70 / 100)
    text = "HEAD" + "x" * 1_400_000 + "TAIL"
    cut = middle_truncate(text, limit)
    assert cut.startswith("HEADxxx") and cut.endswith("xxxTAIL")
    removed = math.ceil((len(text) - 4 * limit) / 4)
    assert f"…{removed} tokens truncated…" in cut
    assert len(cut.encode()) == 4 * limit + len(f"…{removed} tokens truncated…".encode())


@given(st.text(), st.integers(0, 40))
def test_what_is_kept_fits_and_is_text_of_both_ends(text: str, limit: int) -> None:
    cut = middle_truncate(text, limit)
    if len(text.encode()) <= 4 * limit:
        assert cut == text
        return
    head, _, rest = cut.partition("…")
    if "…" not in text:
        _, _, tail = rest.partition("…")
        assert text.startswith(head) and text.endswith(tail)
        assert 4 * limit - 6 <= len((head + tail).encode()) <= 4 * limit
