from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom import parse_memory_citation, strip_memory_citation
from stillroom.recall.usage.citations import CitationEntry, CitationStream, MemoryCitation

ONE = "01a2273c-0036-7133-90f0-7698c74b216a"
TWO = "01a2273c-0761-7c02-b133-ea717e072038"


def block(*entries: str, ids: tuple[str, ...] = (), tag: str = "rollout_ids") -> str:
    lines = ["<oai-mem-citation>", "<citation_entries>", *entries, "</citation_entries>"]
    return "\n".join([*lines, f"<{tag}>", *ids, f"</{tag}>", "</oai-mem-citation>"])


def entries(*lines: str) -> list[tuple[str, int, int, str]]:
    found = parse_memory_citation(block(*lines, ids=("x",)))
    assert found is not None
    return [(entry.path, entry.line_start, entry.line_end, entry.note) for entry in found.entries]


def ids(text: str) -> tuple[str, ...]:
    found = parse_memory_citation(text)
    return found.rollout_ids if found else ()


def test_a_block_is_read_whole_and_not_shown() -> None:
    text = "Done.\n\n" + block(
        "MEMORY.md:234-236|note=[how to test]", "skills/a b/SKILL.md:1-9|note=[]", ids=(ONE, TWO)
    )
    assert parse_memory_citation(text) == MemoryCitation(
        entries=(CitationEntry("MEMORY.md", 234, 236, "how to test"), CitationEntry("skills/a b/SKILL.md", 1, 9, "")),
        rollout_ids=(ONE, TWO),
    )
    assert strip_memory_citation(text) == "Done.\n\n"


def test_an_entry_is_split_at_its_last_note_its_last_colon_and_its_first_dash() -> None:
    assert entries("a|note=[b:1-2|note=[c:3-4|note=[d]") == [("a|note=[b:1-2|note=[c", 3, 4, "d")]
    assert entries("C:/notes/a-b:7-8|note=[x]") == [("C:/notes/a-b", 7, 8, "x")]
    assert entries("  MEMORY.md : 10 - 12 |note=[  spaced ]  ") == [("MEMORY.md", 10, 12, "spaced")]
    assert entries("m:1-2|note=[[a] ]]") == [("m", 1, 2, "[a] ]")]


def test_what_is_read_is_not_judged() -> None:
    assert entries("../../etc/passwd:9-2|note=[]", "m:0-0|note=[]", ":1-1|note=[]") == [
        ("../../etc/passwd", 9, 2, ""),
        ("m", 0, 0, ""),
        ("", 1, 1, ""),
    ]
    assert entries("m:1-1|note=[]", "m:1-1|note=[]") == [("m", 1, 1, "")] * 2
    assert entries("m:0001-4294967295|note=[]", "m:+1-+2|note=[]") == [("m", 1, 2**32 - 1, ""), ("m", 1, 2, "")]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "MEMORY.md:1-2",
        "MEMORY.md:1-2|note=[open",
        "MEMORY.md:1-2|note=x]",
        "MEMORY.md:1|note=[one line]",
        "MEMORY.md:1-2-3|note=[x]",
        "MEMORY.md:-1-2|note=[x]",
        "MEMORY.md:a-b|note=[x]",
        "MEMORY.md:1-|note=[x]",
        "MEMORY.md:1.0-2|note=[x]",
        "MEMORY.md:1_0-2|note=[x]",
        "MEMORY.md:１-２|note=[full width]",
        "1-2|note=[no path]",
        "MEMORY.md:1-4294967296|note=[33 bits]",
        "MEMORY.md:1-" + "9" * 100_000 + "|note=[x]",
    ],
)
def test_a_line_that_is_no_entry_is_dropped(line: str) -> None:
    assert entries(line, "m:1-2|note=[kept]") == [("m", 1, 2, "kept")]


def test_ids_keep_their_order_each_once_over_all_blocks() -> None:
    text = block(ids=(TWO, "", " not an id ", ONE)) + " and " + block(ids=(ONE, "last", TWO))
    assert ids(text) == (TWO, "not an id", ONE, "last")
    assert strip_memory_citation(text) == " and "


def test_thread_ids_count_only_where_rollout_ids_are_not_there() -> None:
    old = "<thread_ids>\nold\n</thread_ids>"
    assert ids(f"<oai-mem-citation>{old}</oai-mem-citation>") == ("old",)
    assert ids(f"<oai-mem-citation>{old}<rollout_ids>\nnew\n</rollout_ids></oai-mem-citation>") == ("new",)
    assert ids(f"<oai-mem-citation><rollout_ids></rollout_ids>{old}</oai-mem-citation>") == ()
    assert ids(f"<oai-mem-citation><rollout_ids>\nnever closed{old}</oai-mem-citation>") == ("old",)
    assert ids(f"<oai-mem-citation>{old}</oai-mem-citation>" + block(ids=("new",))) == ("old", "new")


def test_only_the_first_list_of_a_block_counts_and_it_must_have_an_end() -> None:
    twice = "<rollout_ids>\na\n</rollout_ids><rollout_ids>\nb\n</rollout_ids>"
    assert ids(f"<oai-mem-citation>{twice}</oai-mem-citation>") == ("a",)
    found = parse_memory_citation(
        "<oai-mem-citation><citation_entries>\nm:1-2|note=[x]\n<rollout_ids>\na\n</rollout_ids></oai-mem-citation>"
    )
    assert found == MemoryCitation(entries=(), rollout_ids=("a",))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no block",
        "<oai-mem-citation></oai-mem-citation>",
        block(),
        block("not an entry"),
        block(ids=("",)).upper(),
        "<oai-mem-citation >\n<rollout_ids>\na\n</rollout_ids></oai-mem-citation>",
        "<rollout_ids>\na\n</rollout_ids>",
    ],
)
def test_nothing_cited_is_none(text: str) -> None:
    assert parse_memory_citation(text) is None


def test_a_block_without_an_end_goes_to_the_end_of_the_text() -> None:
    text = "Answer <oai-mem-citation>\n<rollout_ids>\na\n</rollout_ids>\n</oai-mem-cit"
    assert ids(text) == ("a",)
    assert strip_memory_citation(text) == "Answer "


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hello <oai-mem-citation>x</oai-mem-citation> world", "Hello  world"),
        ("a<oai-mem-citation>x<oai-mem-citation>y</oai-mem-citation>b</oai-mem-citation>c", "ab</oai-mem-citation>c"),
        ("a <oai-mem-cit", "a <oai-mem-cit"),
        ("a <<oai-mem-citation>x</oai-mem-citation>>", "a <>"),
        ("a <oai-mem-citation", "a <oai-mem-citation"),
        ("a <OAI-MEM-CITATION>x", "a <OAI-MEM-CITATION>x"),
        ("<oai-mem-citation>x</oai-mem-citation>", ""),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert strip_memory_citation(text) == shown


def test_no_beginning_of_a_tag_is_shown_before_it_is_known_to_be_none() -> None:
    stream = CitationStream()
    assert [stream.feed(piece) for piece in ("a <oai-mem", "-citation", ">b</oai", "-mem-citation> c <oai", "-x")] == [
        "a ",
        "",
        "",
        " c ",
        "<oai-x",
    ]
    assert stream.finish() == ("", ["b"])


PIECES = st.sampled_from(
    ["<oai-mem-citation>", "</oai-mem-citation>", "<oai-mem-", "citation>", "<", "</oai", ">", "text ", "\n", "é", "<<"]
)


@given(st.lists(PIECES, max_size=12), st.data())
def test_any_cut_into_chunks_gives_the_same(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    whole = CitationStream()
    expected = whole.feed(text)
    tail, bodies = whole.finish()
    stream = CitationStream()
    shown, rest = "", text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        shown += stream.feed(rest[:size])
        # All of what is shown early stays shown: nothing is taken back.
        assert (expected + tail).startswith(shown)
        rest = rest[size:]
    end, found = stream.finish()
    assert (shown + end, found) == (expected + tail, bodies)
    # What is around blocks is shown as it is, also where it comes to look like a tag without them.
    assert shown + end == re.sub(r"<oai-mem-citation>.*?(?:</oai-mem-citation>|\Z)", "", text, flags=re.DOTALL)


def test_a_stream_can_be_used_for_the_next_text() -> None:
    stream = CitationStream()
    stream.feed("a<oai-mem-citation>b")
    assert stream.finish() == ("", ["b"])
    assert (stream.feed("c"), stream.finish()) == ("c", ("", []))


# Ends in a fraction of a second, or, where the work grows with the square, not at all.
@pytest.mark.parametrize(
    "text",
    [
        block("MEMORY.md:1-2|note=[x]", ids=(ONE,)) * 10_000,
        "<" * 3_000_000,
        "<oai-mem-citation" * 150_000,
        "<oai-mem-citation>" * 150_000,
        "<oai-mem-citation>" + "</oai-mem-citation" * 150_000,
        "<oai-mem-citation>" + "<citation_entries>" * 150_000,
        block("|note=[" * 300_000 + "]"),
        block("m:1-2" * 300_000 + "|note=[]"),
        block("\n" * 2_000_000, ids=("\n" * 1_000_000,)),
    ],
    ids=["blocks", "brackets", "half tags", "open tags", "half ends", "lists", "notes", "locations", "lines"],
)
def test_hostile_text_takes_time_in_proportion(text: str) -> None:
    start = time.process_time()
    parse_memory_citation(text)
    stream = CitationStream()
    for at in range(0, len(text), 1000):
        stream.feed(text[at : at + 1000])
    stream.finish()
    assert time.process_time() - start < 10
