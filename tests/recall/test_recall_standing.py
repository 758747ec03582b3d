"""After an edit by hand a session is told what still stands, and never a line that was just taken out."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Settings
from stillroom.recall.telling.instructions import Instructions, Stale, fast_instructions, standing_instructions
from stillroom.recall.telling.packing import HEADING
from stillroom.recall.telling.prepared import PLACEHOLDERS
from stillroom.recall.telling.preparing import make_ready, save_if_possible
from stillroom.recall.telling.standing import untouched
from stillroom.recall.telling.summary import parse

TEXT = """v1

## User Profile
A developer.

## User preferences
- answers in English
- one commit a change
- tests first
- names in full
- small files
- no comments that repeat the code
- run `make verify`
- never push
- use biome (in shop)

## What's in Memory

### shop
- cart: totals
  - desc: sums; cwd=/src/shop

### api
- auth: tokens
  - desc: keys; cwd=/src/api
"""
ROWS = st.sampled_from(
    [
        "",
        "- a",
        "- b",
        "- a (in shop)",
        "  more of it",
        "  more (in api)",
        "words",
        "## Rules",
        "### shop",
        "```",
        "# x",
    ]
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "memories").mkdir(parents=True)
    return edited(home, TEXT)


def edited(home: Path, text: str) -> Path:
    (home / "memories" / "memory_summary.md").write_text(text, encoding="utf-8")
    return home


def prepared(home: Path) -> Path:
    save_if_possible(settings := Settings(home=home), make_ready(settings, []))
    return home


def told(home: Path, cwd: str = "/src/shop") -> str | None:
    """None: a session has to wait for a new copy."""
    assert isinstance(fast_instructions(str(home), None, cwd), Stale)
    found = standing_instructions(str(home), cwd)
    return found.text if found else None


def test_what_stands_is_told_and_what_was_taken_out_is_not(home: Path) -> None:
    prepared(home)
    edited(home, TEXT.replace("- run `make verify`\n", ""))
    text = told(home)
    assert text and "answers in English" in text and "never push" in text and "use biome" in text
    assert "make verify" not in text
    assert "Left out of the index of the memory: what was edited a moment ago" in text


def test_what_was_written_is_told_with_the_next_copy(home: Path) -> None:
    prepared(home)
    edited(home, TEXT.replace("- never push", "- always push"))
    text = told(home)
    assert text and "push" not in text.partition("BEGINS")[2] and "use biome" in text
    prepared(home)
    found = fast_instructions(str(home), None, "/src/shop")
    assert isinstance(found, Instructions) and "always push" in found.text


@pytest.mark.parametrize(
    ("old", "new", "gone"),
    [
        ("(in shop)", "(in api)", "use biome"),
        ("- never push\n", "- never push\n  or so it is (in api)\n", "never push"),
        ("cwd=/src/shop", "cwd=/src/elsewhere", "cart: totals"),
        ("- use biome", "### api\n- use biome", "use biome"),
    ],
)
def test_what_an_edit_may_have_given_another_project_is_not_told(home: Path, old: str, new: str, gone: str) -> None:
    prepared(home)
    assert gone in TEXT
    text = told(edited(home, TEXT.replace(old, new)))
    assert text and gone not in text and "answers in English" in text


def test_what_is_mostly_new_is_not_told_from_the_old_copy(home: Path) -> None:
    prepared(home)
    for edit in (
        "v1\n\n## User Profile\nAnother one.\n",
        TEXT.replace("v1", "v2", 1),
        "",
        TEXT * 3,
    ):
        assert told(edited(home, edit)) is None, edit
    path = home / "memories" / "memory_summary.md"
    path.write_bytes(TEXT.encode() + b"\xff")
    assert told(home) is None
    path.rename(home / "elsewhere.md")
    path.symlink_to(home / "elsewhere.md")
    assert told(home) is None
    path.unlink()
    os.mkfifo(path)
    assert told(home) is None


def test_blank_lines_line_ends_and_a_mark_change_nothing(home: Path) -> None:
    prepared(home)
    whole = "\ufeff" + TEXT.replace("\n", "  \r\n").replace("- never", "\r\n- never")
    text = told(edited(home, whole))
    ours = [row for row in TEXT.partition("### api")[0].splitlines() if row.startswith("- ")]
    assert text and all(row in text for row in ours)


def test_settings_that_the_copy_does_not_rest_on_leave_it_as_it_is(home: Path) -> None:
    config = home / "config.toml"
    prepared(home)
    config.write_text('[memories]\nextract_model = "offline"\n[[sources]]\nformat = "codex"\nroot = "/x"\n')
    text = told(home)
    assert text and "make verify" in text and "edited a moment ago" not in text
    for rests in (
        "enabled = false",
        "use_memories = false",
        'scope = "all"',
        'root = "/x"',
        "summary_token_limit = 900",
    ):
        config.write_text(f"[memories]\n{rests}\n")
        assert told(home) is None, rests
    for damaged in ("[memories", "memories = 3", "[memories]\nenabled = 2020-01-01"):
        config.write_text(damaged)
        assert told(home) is None, damaged


@given(st.lists(ROWS, max_size=14), st.lists(ROWS, max_size=4), st.integers(0, 14), st.integers(0, 6))
def test_nothing_is_told_that_does_not_stand_in_the_file(
    rows: list[str], written: list[str], start: int, removed: int
) -> None:
    lines = parse("v1\n" + "\n".join(rows)).lines
    after = rows[:start] + written + rows[start + removed :]
    now = [row.rstrip() for row in after if row.strip() and row not in PLACEHOLDERS]
    kept = untouched(lines, now)
    stands = Counter(now)
    assert not Counter(row for line in kept for row in line.text.split("\n") if row) - stands
    assert all(line.up < number for number, line in enumerate(kept))
    if after == rows and any(line.kind != HEADING for line in lines):
        assert [line.text for line in kept] == [line.text for line in lines]
