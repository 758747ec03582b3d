"""Searches the files of the memory folder for exact words (spec §3.2)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from stillroom.config import LOOKUP, Lookup
from stillroom.errors import NotFound, RecallError
from stillroom.recall.matching import AnyQuery, Matcher, MatchMode, Span
from stillroom.recall.paging import page_length, take_page
from stillroom.recall.paths import Node, components, open_step, opened_path, read_text, readable
from stillroom.rollouts.truncate import BYTES_PER_TOKEN, middle_truncate

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


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder that could not be searched."""

    path: str
    reason: str


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
    skipped: list[Skipped] = []
    page = take_page(
        _matches(root, path, matcher, max(context_lines, 0), skipped, limits),
        cursor=cursor,
        max_results=page_length(max_results, limits.max_search_results),
        max_bytes=limits.max_answer_tokens * BYTES_PER_TOKEN,
        size=lambda match: len(match.path) + len(match.content.encode()) + _MATCH_BYTES,
    )
    return SearchResult(
        queries=matcher.queries,
        match_mode=match_mode,
        path=path,
        matches=page.results,
        next_cursor=page.next_cursor,
        truncated=page.next_cursor is not None,
        skipped=tuple(skipped[: limits.skipped_told]),
    )


def _matches(
    root: Path, path: str | None, matcher: Matcher, context_lines: int, skipped: list[Skipped], limits: Lookup
) -> Iterator[Match]:
    for name, text in _texts(root, path, skipped, limits):
        lines: list[str] | None = None
        for span in matcher.spans(text):
            if lines is None:
                lines = text.split("\n")
                if not lines[-1]:
                    lines.pop()
            yield _match(name, lines, span, context_lines, limits)


def _match(path: str, lines: Sequence[str], span: Span, context_lines: int, limits: Lookup) -> Match:
    first = max(span.first - context_lines, 0)
    content = "\n".join(line.removesuffix("\r") for line in lines[first : span.last + 1 + context_lines])
    return Match(
        path=path,
        match_line_number=span.first + 1,
        content_start_line_number=first + 1,
        content=middle_truncate(content, limits.max_match_tokens),
        matched_queries=span.queries,
    )


def _texts(root: Path, path: str | None, skipped: list[Skipped], limits: Lookup) -> Iterator[tuple[str, str]]:
    """Every file at or below `path` with its text, in the order of the paths."""
    at = "/".join(components(path))
    with opened_path(root, path) as node:
        if node.is_folder:
            yield from _Walk(skipped, limits).folder(node.descriptor, f"{at}/" if at else "", 0)
        else:
            yield from _Walk(skipped, limits).file(node, at)


class _Walk:
    def __init__(self, skipped: list[Skipped], limits: Lookup) -> None:
        self.skipped = skipped
        self.limits = limits

    def folder(self, descriptor: int, prefix: str, depth: int) -> Iterator[tuple[str, str]]:
        try:
            with os.scandir(descriptor) as listing:
                seen = [entry for entry in listing if not entry.name.startswith(".")]
        except OSError as error:
            self.skip(prefix.rstrip("/") or ".", f"can't be listed: {error.strerror}")
            return
        # With the slash a folder stands where the paths of its files do.
        names = [entry.name for entry in seen if entry.is_file(follow_symlinks=False)]
        names += [f"{entry.name}/" for entry in seen if entry.is_dir(follow_symlinks=False)]
        for name in sorted(names):
            path = prefix + name
            if name.endswith("/") and depth >= self.limits.max_folder_depth:
                self.skip(path, "lies too deep")
                continue
            try:
                node = open_step(descriptor, name.rstrip("/"), path)
            except NotFound:
                continue  # gone since it was listed
            except RecallError as error:
                self.skip(path, str(error))
                continue
            try:
                if node.is_folder:
                    yield from self.folder(node.descriptor, f"{path.rstrip('/')}/", depth + 1)
                else:
                    yield from self.file(node, path.rstrip("/"))
            finally:
                os.close(node.descriptor)

    def file(self, node: Node, path: str) -> Iterator[tuple[str, str]]:
        try:
            text = read_text(node, path, max_bytes=self.limits.max_file_bytes)
        except RecallError as error:
            self.skip(path, str(error))
        else:
            yield readable(path), text

    def skip(self, path: str, reason: str) -> None:
        if len(self.skipped) < self.limits.skipped_told:
            self.skipped.append(Skipped(path=readable(path), reason=reason))
