"""Marks at the ends of lines: written, read, and never a way in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stillroom.lanes import Lane, Quarantined, Verdict, Witnesses, admit, is_shown_of, line_id, marked, quarantined

MEMORY = "---\ndescription: d\n---\n\n### Task 1: t\n\nReusable knowledge:\n- one fact\n  in two lines\n- another\n"


def judge_as(lane: Lane, *, instruction: bool = False, sources: tuple[str, ...] = ()):
    return lambda _line, _has_room: Verdict(lane, instruction, sources)


def nobody(_: Quarantined) -> bool:
    return False


def test_only_what_is_below_the_assistant_is_marked() -> None:
    assert marked(MEMORY, judge_as("user")) == marked(MEMORY, judge_as("agent")) == MEMORY
    assert "- one fact in two lines [lane: tool]\n- another [lane: tool]\n" in marked(MEMORY, judge_as("tool"))


def test_a_heading_or_field_has_no_room_for_a_mark() -> None:
    text = marked(MEMORY, judge_as("web", instruction=True))
    assert "description: (left out" in text
    assert "### Task 1: (left out" in text
    assert "- another [lane: web; instruction]" in text


def test_a_file_states_facts_and_gives_no_orders() -> None:
    assert quarantined("- a fact of the readme [lane: file]") == []
    (found,) = quarantined("- always run it [lane: file; instruction]")
    assert found == Quarantined(line_id=line_id("always run it"), lane="file", instruction=True, text="always run it")


def test_what_is_admitted_loses_its_mark_and_the_rest_goes() -> None:
    text = "- kept\n- let in [lane: tool]\n- out [lane: web]\n"
    assert admit(text, lambda line: line.text == "let in") == "- kept\n- let in\n"
    assert admit("- no mark\n", nobody) == "- no mark\n"
    assert admit("- of the readme [lane: file; from 11111111,22222222]", nobody) == "- of the readme [lane: file]"


FACT = "- the export needs the column `ean` in row one"


def is_admitted(*others: tuple[str, str], line: str = f"{FACT} [lane: web; from 11111111,22222222]") -> bool:
    """Whether a line of a session of the tree `a` is."""
    return Witnesses(others).support(quarantined(line)[0], tree="a")


def test_a_session_with_another_source_is_a_witness_of_a_fact() -> None:
    assert is_admitted(("b", f"{FACT} [lane: tool; from 33333333]"))
    assert is_admitted(("a", FACT))  # somebody who is trusted, in any session
    assert not is_admitted(("a", f"{FACT} [lane: tool; from 33333333]"))  # a fork, or the session itself


def test_the_same_page_read_twice_is_one_witness() -> None:
    assert not is_admitted(("b", f"{FACT} [lane: web; from 22222222,44444444]"))
    assert not is_admitted(("b", f"{FACT} [lane: tool]"))  # from where is not known
    assert not is_admitted(("b", f"{FACT} [lane: none]"), line=f"{FACT} [lane: none]")  # models alone say it


def test_an_order_needs_a_person_or_the_assistant() -> None:
    order = "- always run `make seed` before the tests"
    withheld = f"{order} [lane: tool; instruction]"
    assert not is_admitted(("b", f"{order} [lane: web; instruction; from 33333333]"), line=withheld)
    assert is_admitted(("b", order), line=withheld)


def test_a_gap_names_the_line_and_has_none_of_its_words() -> None:
    whole = (
        "# Session\n- of a file [lane: file; from 33333333]\n- kept\n- a page said this [lane: web; from 11111111]\n"
    )
    shown = admit(whole, nobody, with_gaps=True)
    assert "- kept" in shown and line_id("a page said this") in shown and "page" not in shown
    for text in (shown, admit(whole, nobody), admit(whole, lambda _: True), whole):
        assert is_shown_of(text, whole)
    assert not is_shown_of(shown.replace("kept", "changed"), whole)


@given(st.text(max_size=300), st.sampled_from(["file", "tool", "web", "none"]), st.booleans())
def test_no_text_gets_out_of_the_quarantine(text: str, lane: Lane, instruction: bool) -> None:
    memory = "- " + " ".join(text.split())
    done = marked(memory, judge_as(lane, instruction=instruction))
    out = lane != "file" or instruction
    if memory.strip() != "-" and out:
        assert admit(done, nobody) == ""
