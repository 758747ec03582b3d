"""What counts as the same statement, and what is taken out with it."""

from __future__ import annotations

import pytest

from stillroom.tombstones import REMOVED, counted_forms, forms, says, without

RULE = '- the user said: "Please always use pnpm in this repository, not npm."'


@pytest.mark.parametrize(
    "same",
    [
        RULE,
        f"{RULE} -> default in shop [Task 1][Task 2]",
        f"{RULE} (in shop, blog)",
        "* the user asked: “always use PNPM in this repository; not npm!”",
        "- Use pnpm in this repository, not npm",
        '- From now on use pnpm in this repository, not npm. (replaces: "use yarn")',
        '- after the assistant said "npm or pnpm?", the user said: "always use pnpm in this repository, not npm"',
    ],
)
def test_the_same_words_are_one_statement(same: str) -> None:
    assert says(same, counted_forms(RULE))


@pytest.mark.parametrize(
    "other",
    [
        '- the user said: "Please never use pnpm in this repository, not npm."',
        '- the user said: "Please always use npm in this repository, not pnpm."',
        '- the user said: "Please always use pnpm in this repository, not npm, but for the docs."',
        "- pnpm",
        "",
        "- ",
        "- releases go out on Tuesdays",
    ],
)
def test_other_words_or_another_order_are_another_statement(other: str) -> None:
    assert not says(other, counted_forms(RULE))


def test_a_statement_goes_with_what_is_indented_below_it_and_other_lines_stay() -> None:
    text = f"## User preferences\n\n{RULE}\n  more of it\n\n- other\n"
    assert without(text, counted_forms(RULE)) == ("## User preferences\n\n\n- other\n", [RULE, "  more of it"])
    assert without(text, {}) == (text, [])


def test_in_titles_and_among_others_only_its_words_go() -> None:
    buried = counted_forms('- the user said: "From now on never commit to main directly; open a pull request."')
    text = (
        "### Task 1: From now on never commit to main directly; open a pull request (uncertain)\n"
        "task: From now on never commit to main directly; open a pull request\n"
        "- From now on never commit to main directly; open a pull request: commit, main\n"
        "  - learnings: use tabs; never commit to main directly; open a pull request; make test passes\n"
        "  - learnings: never commit to main directly; open a pull request\n"
        "- unless it is urgent never commit to main directly; open a pull request and wait\n"
    )
    left, _ = without(text, buried)
    assert left.splitlines() == [
        f"### Task 1: From now on {REMOVED} (uncertain)",
        f"task: {REMOVED}",
        f"- From now on {REMOVED}: commit, main",
        "  - learnings: use tabs; make test passes",
        f"  - learnings: {REMOVED}",
        "- unless it is urgent never commit to main directly; open a pull request and wait",
    ]


def test_text_of_any_script_is_known_again() -> None:
    for said in ("请始终使用中文回答", "всегда отвечай по-русски", "हमेशा हिन्दी में उत्तर दें", "Antworte immer auf Deutsch"):
        assert says(f"* “{said}” [Task 3]", counted_forms(f'- the user said: "{said}"')), said
        assert len(forms(f"- {said}")) == 1


def test_a_line_of_any_size_ends_soon() -> None:
    line = f'- the user said: "{"(a " * 20_000}" {"[x] " * 5_000}' + "(in " * 20_000
    assert says(line, counted_forms(line))
    assert without(line, counted_forms(RULE)) == (line, [])
