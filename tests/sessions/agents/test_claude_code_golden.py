from __future__ import annotations

import pytest
from claude_code_golden import LAYOUTS, SAMPLES
from golden import LIMIT, describe

from stillroom.sessions.agents.claude_code import reader as claude_code
from stillroom.sessions.agents.claude_code.reader import discover
from stillroom.sessions.discovery import Found, Unchanged


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sessions_of_every_layout_are_read_as_expected(layout: str):
    """Real files of the client; after a change on purpose run `claude_code_golden.py` and read the difference."""
    expected = (SAMPLES / layout / "expected.txt").read_text(encoding="utf-8")
    assert describe(claude_code, SAMPLES / layout) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_is_new_when_a_home_is_looked_at_again(layout: str):
    first = list(discover(SAMPLES / layout, {}, max_line_bytes=LIMIT))
    known = {found.thread.rollout_path: found.stamp for found in first if isinstance(found, Found)}
    assert len(known) == len(first)
    assert {type(again) for again in discover(SAMPLES / layout, known, max_line_bytes=LIMIT)} == {Unchanged}
