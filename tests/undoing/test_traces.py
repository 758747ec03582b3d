"""By what a line is known to speak of something forgotten."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stillroom.undoing.traces import GONE, PHRASE_CHARS, Finder, Traces, phrases_of, shared_phrases

SAID = 'the user asked: "always run make verify before a push" -> default in shop'


@pytest.mark.parametrize(
    "line",
    [
        f"- {SAID}",
        f"  * {SAID} [Task 1][Task 3]",
        f"> {SAID}",
        "- always run make verify before a push (in shop)",
        "  - learnings: always run make verify before a push; other",
        "- “always run make verify before a push”",
        "### Task 2: always run make verify before a push",
        "- the user asked:  always run\tmake verify before a push",
    ],
)
def test_a_phrase_is_found_however_a_file_repeats_it(line: str) -> None:
    finder = Finder(Traces(phrases=frozenset(phrases_of(f"- {SAID}"))))
    assert finder.is_traced(line)
    assert finder.may_be_in(line.encode())


def test_a_shortened_phrase_is_found_by_its_beginning() -> None:
    long = "the deploy fails with exit 3 because the staging bucket has another region than the one in settings"
    finder = Finder(Traces(phrases=frozenset(phrases_of(f"- {long}"))))
    assert finder.is_traced(f"- {long[:80]}… (in ops)")
    assert all(len(phrase) <= PHRASE_CHARS for phrase in finder.traces.phrases)


@pytest.mark.parametrize("line", ["## User preferences", "### keywords", "- make, test", "task_outcome: success", ""])
def test_what_everybody_says_is_no_phrase(line: str) -> None:
    assert list(phrases_of(line)) == []


def test_scripts_without_blanks_have_phrases_too() -> None:
    finder = Finder(Traces(phrases=frozenset(phrases_of("- 提交之前一定要先运行所有测试"))))
    assert finder.is_traced("- 提交之前一定要先运行所有测试 [Task 1]")


def test_a_name_is_found_as_a_whole_and_a_word_anywhere() -> None:
    finder = Finder(Traces(names=frozenset({"/sessions/a1", "t-1"}), words=frozenset({"Project Fälcon"})))
    assert finder.names_in("see /sessions/a1.jsonl") and finder.names_in("(t-1)")
    assert not finder.names_in("see /sessions/a12.jsonl") and not finder.names_in("at-10")
    assert finder.names_in("the PROJECT FÄLCON2 plan")
    assert finder.names_in('{"said": "Project F\\u00e4lcon"}')
    assert finder.without("see t-1, and t-12") == f"see {GONE}, and t-12"
    assert finder.without("about project fälcon") == GONE
    assert Finder(Traces(names=frozenset({"/odd/\udcff"}))).names_in("at /odd/\udcff now")


def test_a_phrase_that_stands_elsewhere_is_shared_also_over_the_end_of_a_line() -> None:
    one, two = "run the linter before you commit", "never push to the main branch"
    assert shared_phrases({one, two}, ["we said: run the\n  linter before you commit. fine"]) == {one}


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), max_size=80)


@pytest.mark.slow  # two seconds
@given(st.lists(LINES, max_size=8), st.lists(LINES, max_size=8))
@example(["run the linter\x1fbefore you commit"], [])
def test_whatever_the_quick_look_passes_over_holds_nothing(said: list[str], others: list[str]) -> None:
    phrases = frozenset(phrase for line in said for phrase in phrases_of(line))
    finder = Finder(Traces(phrases=phrases, names=frozenset({"thread-7"})))
    for line in (*said, *others):
        if finder.is_traced(line):
            assert finder.may_be_in(line.encode())
