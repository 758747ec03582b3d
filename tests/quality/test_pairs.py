"""Two statements of a person: does the later one replace the earlier, say the same, or hold beside it?"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from stillroom.offline.text import conflict

PAIRS = Path(__file__).parent / "pairs"


def relation(old: str, new: str) -> str:
    earlier, later = conflict.claim(old), conflict.claim(new)
    if conflict.same(later, earlier):
        return "same"
    return "replaces" if conflict.supersedes(later, earlier) else "apart"


@pytest.mark.parametrize(("name", "replaced", "wrongly", "joined"), [("dev", 26, 0, 6), ("kept", 23, 0, 11)])
def test_the_later_word_wins_and_what_holds_beside_it_stays(
    name: str, replaced: int, wrongly: int, joined: int
) -> None:
    table = tomllib.loads((PAIRS / f"{name}.toml").read_text(encoding="utf-8"))
    found = Counter((pair["is"], relation(pair["old"], pair["new"])) for pair in table["pairs"])
    assert len(table["pairs"]) == 75
    assert found["replaces", "replaces"] >= replaced
    assert found["apart", "replaces"] + found["same", "replaces"] <= wrongly
    assert found["same", "same"] >= joined
    assert found["apart", "same"] + found["replaces", "same"] == 0


@pytest.mark.parametrize(
    ("said", "command", "ends"),
    [
        ("tox is dead, `just test`", "uvx tox -e quick", True),
        ("we use bun now, not pnpm", "pnpm vitest run", True),
        ("we dropped the client generator", "cargo test client", False),
        ("always use pnpm", "npm test", False),
    ],
)
def test_a_program_that_is_over_ends_its_commands(said: str, command: str, ends: bool) -> None:
    assert conflict.ends_program(conflict.claim(said), command) is ends
