"""`search` as spec §3.2 has it: modes, windows, context, pages, what is passed over."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import LOOKUP, Lookup
from stillroom.errors import InvalidRequest
from stillroom.recall.browse.lines import LineReader, lines_with, skip_lines
from stillroom.recall.browse.listing import list_memories
from stillroom.recall.browse.matching import AllOnSameLine, AllWithinLines, AnyQuery, Matcher, MatchMode
from stillroom.recall.browse.reading import read_memory
from stillroom.recall.browse.searching import Match, search_memories
from stillroom.recall.browse.walk import Skipped

TEXT = "alpha\nbeta gamma\n\nalpha gamma\r\ndelta\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "z.md").write_text(TEXT, encoding="utf-8")
    (tmp_path / "a-b.md").write_text("Alpha\n", encoding="utf-8")
    (tmp_path / ".hidden.md").write_text("alpha\n", encoding="utf-8")
    (tmp_path / "link.md").symlink_to(tmp_path / "a-b.md")
    return tmp_path


def places(root: Path, *queries: str, mode: MatchMode | None = None, **options: bool) -> list[tuple[str, int, str]]:
    found = search_memories(root, queries, match_mode=mode or AnyQuery(), **options).matches
    return [(match.path, match.match_line_number, match.content) for match in found]


def test_any_query_on_a_line_matches_by_path_then_line(root: Path) -> None:
    result = search_memories(root, [" gamma ", "alpha"])
    assert result.queries == ("gamma", "alpha")
    assert result.matches == (
        Match(
            path="a/z.md",
            match_line_number=1,
            content_start_line_number=1,
            content="alpha",
            matched_queries=("alpha",),
        ),
        Match(
            path="a/z.md",
            match_line_number=2,
            content_start_line_number=2,
            content="beta gamma",
            matched_queries=("gamma",),
        ),
        Match(
            path="a/z.md",
            match_line_number=4,
            content_start_line_number=4,
            content="alpha gamma",
            matched_queries=("gamma", "alpha"),
        ),
    )


def test_case_counts_unless_it_is_told_not_to(root: Path) -> None:
    assert places(root, "ALPHA") == []
    found = places(root, "ALPHA", case_sensitive=False)
    assert [path for path, _, _ in found] == ["a-b.md", "a/z.md", "a/z.md"]  # in the order of whole paths


def test_all_queries_on_one_line_or_within_some(root: Path) -> None:
    assert places(root, "alpha", "gamma", mode=AllOnSameLine()) == [("a/z.md", 4, "alpha gamma")]
    assert places(root, "alpha", "gamma", mode=AllWithinLines(2)) == [
        ("a/z.md", 1, "alpha\nbeta gamma"),
        ("a/z.md", 4, "alpha gamma"),
    ]
    assert places(root, "beta", "delta", mode=AllWithinLines(3)) == []
    with pytest.raises(InvalidRequest, match="line_count"):
        search_memories(root, ["x"], match_mode=AllWithinLines(0))


def test_context_comes_with_the_line_it_starts_at(root: Path) -> None:
    (match,) = search_memories(root, ["delta"], context_lines=2).matches
    assert (match.match_line_number, match.content_start_line_number) == (5, 3)
    assert match.content == "\nalpha gamma\ndelta"


def test_normalized_looks_at_letters_and_digits_only(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("the Rollout_Budget is low\n重试-次数 3\n", encoding="utf-8")
    assert places(tmp_path, "rollout-budget", normalized=True) == []
    assert len(places(tmp_path, "rollout-budget", normalized=True, case_sensitive=False)) == 1
    assert len(places(tmp_path, "试次数3", normalized=True)) == 1
    with pytest.raises(InvalidRequest, match="letters or digits"):
        search_memories(tmp_path, ["--"], normalized=True)


@pytest.mark.parametrize("queries", [[], [""], ["a", "  "], ["q"] * 10_000, ["q" * 5000]])
def test_queries_that_can_not_be_looked_for_are_refused(root: Path, queries: list[str]) -> None:
    with pytest.raises(InvalidRequest):
        search_memories(root, queries)


def test_pages_follow_each_other(root: Path) -> None:
    pages, cursor = [], None
    while True:
        page = search_memories(root, ["a"], max_results=2, cursor=cursor, case_sensitive=False)
        pages.append(len(page.matches))
        cursor = page.next_cursor
        assert page.truncated == (cursor is not None)
        if cursor is None:
            break
    assert pages == [2, 2, 1]
    assert search_memories(root, ["a"], cursor="5", case_sensitive=False).matches == ()
    with pytest.raises(InvalidRequest, match="exceeds"):
        search_memories(root, ["a"], cursor="6", case_sensitive=False)


def test_a_page_and_a_match_have_an_end(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"hit {'x' * 100_000}\n" * 50, encoding="utf-8")
    page = search_memories(tmp_path, ["hit"])
    assert page.next_cursor == "9"
    assert all("tokens truncated…" in match.content for match in page.matches)
    assert sum(len(match.content.encode()) for match in page.matches) < LOOKUP.max_answer_tokens * 4


def test_a_file_that_is_no_text_is_passed_over_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_bytes(b"needle \xff")
    (tmp_path / "good.md").write_text("needle", encoding="utf-8")
    with (tmp_path / "huge.md").open("wb") as file:
        os.truncate(file.fileno(), 50_000_000)
    result = search_memories(tmp_path, ["needle"])
    assert [match.path for match in result.matches] == ["good.md"]
    assert result.skipped == (
        Skipped(path="bad.md", reason="`bad.md` is no UTF-8 text (at byte 7)"),
        Skipped(path="huge.md", reason="`huge.md` has 50,000,000 bytes, more than 33,554,432"),
    )


def test_a_path_narrows_the_search_to_a_file_or_folder(root: Path) -> None:
    assert len(search_memories(root, ["alpha"], path="a").matches) == 2
    assert len(search_memories(root, ["Alpha"], path="a-b.md").matches) == 1


@given(
    text=st.text("ab\n\r", max_size=60), spans=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=4)
)
def test_lines_are_found_as_if_the_text_were_split(text: str, spans: list[tuple[int, int]]) -> None:
    lines = text.split("\n")
    assert list(lines_with(text, "ab")) == [number for number, line in enumerate(lines) if "ab" in line]
    for count in range(len(lines) + 2):
        start = skip_lines(text, 0, count)
        assert (None if start is None else text[start:]) == ("\n".join(lines[count:]) if count < len(lines) else None)
    shown = [line.removesuffix("\r") for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    reader = LineReader(text)
    for first, length in sorted(spans):
        assert reader.between(first, first + length) == "\n".join(shown[first : first + length + 1])


def test_very_many_lines_are_searched(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("a\n" * 50_000 + "needle\n", encoding="utf-8")
    queries = ["needle", *(f"q{number}" for number in range(60))]
    (match,) = search_memories(tmp_path, queries, context_lines=10**9).matches
    assert match.match_line_number == 50_001
    assert match.content.startswith("a\na\n")
    page = search_memories(tmp_path, ["a", "needle"], match_mode=AllWithinLines(2**31))
    assert [match.match_line_number for match in page.matches] == [50_000]


@given(
    lines=st.lists(st.text("abc ", max_size=4), max_size=12),
    queries=st.lists(st.sampled_from("abc"), min_size=1, max_size=4),
    line_count=st.integers(1, 5),
)
def test_windows_are_all_the_shortest_stretches_that_hold_every_query(
    lines: list[str], queries: list[str], line_count: int
) -> None:
    def holds(first: int, last: int) -> bool:
        return all(any(query in line for line in lines[first : last + 1]) for query in queries)

    stretches = [
        (first, last)
        for first in range(len(lines))
        for last in range(first, min(first + line_count, len(lines)))
        if holds(first, last)
    ]
    shortest = [
        (first, last)
        for first, last in stretches
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in stretches)
    ]
    mode = AllWithinLines(line_count)
    matcher = Matcher(queries, mode=mode, case_sensitive=True, normalized=False, limits=Lookup())
    assert [(span.first, span.last) for span in matcher.spans("\n".join(lines))] == shortest


def test_names_and_queries_that_are_no_utf8_are_shown_as_they_can_be(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("needle ?", encoding="utf-8")
    result = search_memories(tmp_path, ["needle \udcff"], path=os.fsdecode(b"caf\xe9.md"))
    assert (result.path, result.matches[0].path) == ("caf\ufffd.md", "caf\ufffd.md")
    assert msgspec.json.encode(result)
    assert msgspec.json.encode(read_memory(tmp_path, os.fsdecode(b"caf\xe9.md")))
    assert msgspec.json.encode(list_memories(tmp_path, path=os.fsdecode(b"caf\xe9.md")))
