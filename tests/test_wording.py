"""Numbers as people read them."""

from __future__ import annotations

import pytest

from stillroom.wording import many, size, span


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"), (172_799, "47 h"),
     (172_800, "2 days"), (97_430_428, "1,127 days")],
)  # fmt: skip
def test_a_span_is_told_in_the_unit_that_fits(seconds: int, told: str) -> None:
    assert span(seconds) == told


def test_one_is_singular_and_sizes_are_rounded() -> None:
    assert (many(1, "memory", "memories"), many(0, "memory", "memories"), many(1000, "file")) == (
        "1 memory",
        "0 memories",
        "1,000 files",
    )
    assert (size(999), size(1499), size(60_000_000), size(5 * 10**12)) == ("999 B", "1 kB", "60 MB", "5,000 GB")
