"""Marks at the ends of lines: written, read, and never a way in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stillroom.lanes import Lane, Quarantined, Witnesses, admit, line_id, marked, quarantined

MEMORY = "---\ndescription: d\n---\n\n### Task 1: t\n\nReusable knowledge:\n- one fact\n  in two lines\n- another\n"


def judge_as(lane: Lane, *, instruction: bool = False):
    return lambda line: (lane, instruction)


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


def test_a_second_session_is_a_witness_of_a_fact_and_a_person_of_an_order() -> None:
    fact = quarantined("- the export needs column `ean` in row one [lane: tool]")[0]
    order = quarantined("- always run `make seed` before the tests [lane: tool; instruction]")[0]
    printed = "- the export needs the column `ean` in row one [lane: web]\n- always run `make seed` before the tests"
    assert Witnesses([("b", printed + " [lane: web; instruction]")]).support(fact, tree="a")
    assert not Witnesses([("a", printed)]).support(fact, tree="a")  # a fork, or the session itself
    assert not Witnesses([("b", printed + " [lane: web; instruction]")]).support(order, tree="a")
    assert Witnesses([("b", printed)]).support(order, tree="a")


@given(st.text(max_size=300), st.sampled_from(["file", "tool", "web", "none"]), st.booleans())
def test_no_text_gets_out_of_the_quarantine(text: str, lane: Lane, instruction: bool) -> None:
    memory = "- " + " ".join(text.split())
    done = marked(memory, judge_as(lane, instruction=instruction))
    out = lane != "file" or instruction
    if memory.strip() != "-" and out:
        assert admit(done, nobody) == ""
