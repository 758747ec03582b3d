"""The life of a memory: what no longer holds is not given, nothing leaks, and echoes don't make it grow."""

from __future__ import annotations

import pytest

from stillroom.evaluate.life import measure_life
from stillroom.evaluate.shipped import LIFE

pytestmark = pytest.mark.slow


def test_what_was_replaced_in_a_later_session_is_not_given_any_more() -> None:
    life = measure_life(LIFE, engine="offline")
    assert life.still_told == ()
    assert life.newer_given >= 6
    assert life.leaked == ()
    assert life.growth <= 1.1
    assert (life.residue, life.returned) == (0, 0)
