"""Codex's patch format, as the worker reads and applies it."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.sandbox.worker import Patched, Refused, apply_hunks, parse_patch


def patched(content: str, body: str) -> str:
    [change] = parse_patch(f"*** Begin Patch\n*** Update File: a.md\n{body}\n*** End Patch")
    return apply_hunks("a.md", content, change.hunks)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("@@\n-two\n+2", "one\n2\nthree\ntwo\n"),
        ("-two\n+2", "one\n2\nthree\ntwo\n"),
        ("@@ three\n-two\n+2", "one\ntwo\nthree\n2\n"),
        ("@@\n three\n-two\n+2\n*** End of File", "one\ntwo\nthree\n2\n"),
        ("@@\n-two\n+2\n*** End of File", "one\ntwo\nthree\n2\n"),
        ("@@\n+four", "one\ntwo\nthree\ntwo\nfour\n"),
        ("@@ one\n+1.5", "one\n1.5\ntwo\nthree\ntwo\n"),
        ("@@\n-one\n@@\n three\n-two", "two\nthree\n"),
        ("@@\n two   \n-three", "one\ntwo   \ntwo\n"),
    ],
)
def test_hunks_are_applied_in_order(body: str, expected: str) -> None:
    assert patched("one\ntwo\nthree\ntwo\n", body) == expected


def test_typographic_signs_match_their_plain_ones() -> None:
    assert patched("it’s – fine\n", "@@\n-it's - fine\n+ok") == "ok\n"


def test_a_blank_line_before_the_next_header_is_layout() -> None:
    assert patched("one\ntwo\n", "@@\n one\n-two\n+2\n") == "one\n2\n"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("", "begins with"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\nhello\n*** End Patch", "line 2"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Update File: a\n@@\nhello\n*** End Patch", "line 4"),
        ("*** Begin Patch\n*** Add File: a\nhello\n*** End Patch", "line 3"),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", "line 3"),
        ("*** Begin Patch\n*** Update File: a\n*** End of File\n*** End Patch", "without a hunk"),
    ],
)
def test_what_is_no_patch_is_told_with_its_line(patch: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        parse_patch(patch)


def test_lines_that_are_not_there_are_told() -> None:
    with pytest.raises(Refused, match="read the file again:\nfour"):
        patched("one\n", "@@\n-four\n+4")
    with pytest.raises(Refused, match="no line `nine`"):
        patched("one\n", "@@ nine\n-one\n+1")


def test_a_shell_wrapper_around_a_patch_is_taken_off() -> None:
    text = "<<'EOF'\n*** Begin Patch\n*** Add File: a b.md\n+x\n+\n*** End Patch\nEOF\n"
    assert parse_patch(text) == [Patched("add", "a b.md", None, ["x", ""], [])]


_LINES = st.lists(st.text(alphabet="ab ’\t@*+-", max_size=4).map(lambda line: f"|{line}|"), max_size=12)


@given(_LINES, _LINES)
def test_a_patch_made_of_a_difference_gives_the_other_text(before: list[str], after: list[str]) -> None:
    if not before or before == after:
        return
    body = [f"{line[0]}{line[2:]}" for line in difflib.ndiff(before, after) if line[0] != "?"]
    expected = "".join(f"{line}\n" for line in after)
    assert patched("".join(f"{line}\n" for line in before), "@@\n" + "\n".join(body)) == expected


@given(st.text(), st.text())
def test_any_text_is_a_patch_or_refused(content: str, body: str) -> None:
    try:
        patched(content, body)
    except Refused:
        pass
