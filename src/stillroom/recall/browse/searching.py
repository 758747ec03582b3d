"""Searches the files of the memory folder for exact words (spec §3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from stillroom.config import LOOKUP, Lookup
from stillroom.errors import RecallError
from stillroom.recall.browse.lines import LineReader
from stillroom.recall.browse.matching import AnyQuery, Matcher, MatchMode
from stillroom.recall.browse.paging import page_length, take_page
from stillroom.recall.browse.paths import read_text, readable
from stillroom.recall.browse.walk import Skipped, Walk
from stillroom.sessions.truncate import BYTES_PER_TOKEN, middle_truncate

#: What a match costs beside its texts when it is sent as JSON.
_MATCH_BYTES = 120


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file that match, with the lines around them."""

    path: str
    #: The first line that matches.
    match_line_number: int
    content_start_line_number: int
    content: str
    matched_queries: tuple[str, ...]


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """One page of matches, by path, then by line."""

    queries: tuple[str, ...]
    match_mode: MatchMode
    path: str | None
    matches: tuple[Match, ...]
    #: Where the next page begins; none: this is the last.
    next_cursor: str | None
    #: Whether there is a next page.
    truncated: bool
    #: The first few that could not be searched.
    skipped: tuple[Skipped, ...] = ()


def search_memories(
    root: Path,
    queries: Sequence[str],
    *,
    match_mode: MatchMode = AnyQuery(),  # noqa: B008 - frozen
    path: str | None = None,
    cursor: str | None = None,
    context_lines: int = 0,
    case_sensitive: bool = True,
    normalized: bool = False,
    max_results: int | None = None,
    limits: Lookup = LOOKUP,
) -> SearchResult:
    """Every place at or below `path` that matches. `normalized` looks at letters and digits only.

    Links, special files and hidden names are passed over; a file that is no UTF-8 is told of in `skipped`.
    """
    matcher = Matcher(queries, mode=match_mode, case_sensitive=case_sensitive, normalized=normalized, limits=limits)
    walk = Walk(limits=limits)
    page = take_page(
        _matches(
            _texts(walk, root, path, limits), matcher, min(max(context_lines, 0), limits.max_context_lines), limits
        ),
        cursor=cursor,
        max_results=page_length(max_results, limits.max_search_results),
        max_bytes=limits.max_answer_tokens * BYTES_PER_TOKEN,
        size=lambda match: len(match.path) + len(match.content.encode()) + _MATCH_BYTES,
    )
    return SearchResult(
        queries=matcher.queries,
        match_mode=match_mode,
        path=path and readable(path),
        matches=page.results,
        next_cursor=page.next_cursor,
        truncated=page.next_cursor is not None,
        skipped=tuple(walk.skipped),
    )


def _matches(texts: Iterator[tuple[str, str]], matcher: Matcher, context_lines: int, limits: Lookup) -> Iterator[Match]:
    for path, text in texts:
        lines = LineReader(text)
        for span in matcher.spans(text):
            first = max(span.first - context_lines, 0)
            content = lines.between(first, span.last + context_lines)
            yield Match(
                path=path,
                match_line_number=span.first + 1,
                content_start_line_number=first + 1,
                content=middle_truncate(content, limits.max_match_tokens),
                matched_queries=span.queries,
            )


def _texts(walk: Walk, root: Path, path: str | None, limits: Lookup) -> Iterator[tuple[str, str]]:
    """Every file at or below `path` with its text."""
    for met in walk.files(root, path):
        try:
            text = read_text(met.node, met.path, max_bytes=limits.max_file_bytes)
        except RecallError as error:
            walk.skip(met.path, str(error))
        else:
            yield readable(met.path), text
