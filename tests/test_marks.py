from __future__ import annotations

import pytest
from tests.marks import may_want


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("", True),
        ("slow", True),
        ("not slow", False),
        ("not slow and not interop", False),
        ("not interop", True),
        ("interop", True),
        ("slow or not slow", True),
        ("not (slow or interop)", False),
        ("not slow or interop", True),
        ("not (not slow)", True),
        ("slow and", True),
    ],
)
def test_a_slow_file_is_left_out_only_where_nothing_of_it_can_be_wanted(expression: str, wanted: bool) -> None:
    assert may_want(expression, always="slow") is wanted
