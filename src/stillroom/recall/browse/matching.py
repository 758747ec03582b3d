"""Finds the places of a text that match a search's queries, line by line (spec §3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby, repeat
from operator import itemgetter
from typing import Annotated, NamedTuple

import msgspec

from stillroom.config import Lookup
from stillroom.errors import InvalidRequest
from stillroom.recall.browse.lines import lines_with

_NOT_ALPHANUMERIC = re.compile(r"[^\w\n]+|_+")
#: The same for ASCII, which `str.translate` does ten times as fast.
_ASCII = {code: None for code in range(128) if not chr(code).isalnum() and chr(code) != "\n"}


class AnyQuery(msgspec.Struct, frozen=True, tag_field="type", tag="any"):
    """A line matches when it holds one of the queries."""


class AllOnSameLine(msgspec.Struct, frozen=True, tag_field="type", tag="all_on_same_line"):
    """A line matches when it holds every query."""


class AllWithinLines(msgspec.Struct, frozen=True, tag_field="type", tag="all_within_lines"):
    """So many lines in a row match when they hold every query, and no fewer of them do."""

    line_count: Annotated[int, msgspec.Meta(ge=1)]


MatchMode = AnyQuery | AllOnSameLine | AllWithinLines


class Span(NamedTuple):
    """Lines that match, counted from 0, the last one included."""

    first: int
    last: int
    #: Which queries it holds.
    queries: tuple[str, ...]


class Matcher:
    """The queries of one search, ready to be looked for."""

    def __init__(
        self, queries: Sequence[str], *, mode: MatchMode, case_sensitive: bool, normalized: bool, limits: Lookup
    ) -> None:
        self._case_sensitive = case_sensitive
        self._normalized = normalized
        self._mode = mode
        if isinstance(mode, AllWithinLines) and mode.line_count < 1:
            raise InvalidRequest("`line_count` must be 1 or more")
        #: Without the blanks around them.
        self.queries = tuple(query.encode("utf-8", "replace").decode().strip() for query in queries)
        if not self.queries or not all(self.queries):
            raise InvalidRequest("there must be queries, and none of them empty")
        if len(self.queries) > limits.max_queries:
            raise InvalidRequest(f"{len(self.queries):,} queries are too many: at most {limits.max_queries}")
        if any(len(query) > limits.max_query_bytes for query in self.queries):
            raise InvalidRequest(f"a query is longer than {limits.max_query_bytes:,} characters")
        self._needles = tuple((query, self._prepare(query)) for query in self.queries)
        if any(not needle for _, needle in self._needles):
            raise InvalidRequest("a query without letters or digits can't be normalized")

    def spans(self, text: str) -> Iterator[Span]:
        """Where the text matches, in the order of the lines."""
        hay = self._prepare(text)
        is_in = [needle in hay for _, needle in self._needles]
        if not any(is_in) if isinstance(self._mode, AnyQuery) else not all(is_in):
            return  # most files of a search end here, before they are split into lines
        hits = self._hits(hay)
        match self._mode:
            case AnyQuery():
                yield from (Span(line, line, found) for line, found in hits)
            case AllOnSameLine():
                yield from (Span(line, line, found) for line, found in hits if len(found) == len(self.queries))
            case AllWithinLines(line_count):
                yield from self._windows(hits, line_count)

    def _hits(self, hay: str) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The lines that hold a query, with those that each holds."""
        numbered = (zip(lines_with(hay, needle), repeat(n)) for n, (_, needle) in enumerate(self._needles))
        for line, found in groupby(merge(*numbered), key=itemgetter(0)):
            yield line, tuple(self.queries[number] for _, number in found)

    def _windows(self, hits: Iterator[tuple[int, tuple[str, ...]]], line_count: int) -> Iterator[Span]:
        """Every stretch that holds all queries and has no shorter one inside."""
        last_seen: dict[str, int] = {}
        previous = -1
        for line, found in hits:
            last_seen.update(dict.fromkeys(found, line))
            first = min(last_seen.values())
            if len(last_seen) < len(set(self.queries)) or first == previous:
                continue
            # A longer stretch from a line on holds this one, whether it was short enough or not.
            previous = first
            if line - first < line_count:
                yield Span(first, line, self.queries)

    def _prepare(self, text: str) -> str:
        if not self._case_sensitive:
            text = text.lower()
        if not self._normalized:
            return text
        return text.translate(_ASCII) if text.isascii() else _NOT_ALPHANUMERIC.sub("", text)
