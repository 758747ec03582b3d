"""Which session a person means by the beginning of an id."""

from __future__ import annotations

import pytest

from stillroom.thread import meant_by

KNOWN = ["1a9c", "1a9c:agent-1", "1a9c:agent-2", "1b00", "1b00-2", "77:agent-1", "77:agent-2"]


@pytest.mark.parametrize(
    ("beginning", "meant"),
    [
        ("1a", ["1a9c"]),  # and not the sub-agents whose ids begin with its own
        ("1a9c:", ["1a9c:agent-1", "1a9c:agent-2"]),
        ("1a9c:agent-2", ["1a9c:agent-2"]),
        ("1b00", ["1b00"]),  # typed in full
        ("1b", ["1b00", "1b00-2"]),
        ("1", ["1a9c", "1a9c:agent-1", "1a9c:agent-2", "1b00", "1b00-2"]),
        ("77", ["77:agent-1", "77:agent-2"]),  # the session that began them is not known
        ("9", []),
    ],
)
def test_a_session_is_meant_and_not_its_sub_agents(beginning: str, meant: list[str]) -> None:
    assert meant_by(beginning, KNOWN) == meant
