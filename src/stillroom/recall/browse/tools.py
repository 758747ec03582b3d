"""The four tools of the memory folder as a program calls them: one request, one answer, one count (spec §3.2)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from stillroom.clock import Clock
from stillroom.config import RedactionStyle
from stillroom.recall.browse.counting import counted
from stillroom.recall.browse.listing import Listing, list_memories
from stillroom.recall.browse.matching import AnyQuery, MatchMode
from stillroom.recall.browse.note_names import NAME_FORM, NOTES
from stillroom.recall.browse.reading import Reading, read_memory
from stillroom.recall.browse.searching import SearchResult, search_memories

if TYPE_CHECKING:
    from stillroom.recall.browse.notes import Note

_Path = Annotated[str, Meta(description="Relative to the memory folder, without `..`.")]
_Cursor = Annotated[str, Meta(description="`next_cursor` of the page before.")]


class ListRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """List a folder of the memory: its files and folders, not what is below them."""

    path: Annotated[_Path, Meta(description="A folder; none: the memory folder itself.")] | None = None
    cursor: _Cursor | None = None
    max_results: Annotated[int, Meta(ge=0, description="1 to 2,000; default 2,000.")] | None = None


class ReadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Read a file of the memory, or some of its lines. A long answer is cut in the middle and says so."""

    path: _Path
    line_offset: Annotated[int, Meta(description="The first line, counted from 1; default 1.")] = 1
    max_lines: Annotated[int, Meta(description="At most so many lines; default: all.")] | None = None


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Search the files of the memory for texts; matches come by path and line."""

    queries: Annotated[list[str], Meta(description="What to look for; each is looked for as it is.")]
    match_mode: Annotated[
        MatchMode,
        Meta(description="`any` on a line (default), `all_on_same_line`, or `all_within_lines` with `line_count`."),
    ] = AnyQuery()
    path: Annotated[_Path, Meta(description="Search only this file or folder.")] | None = None
    cursor: _Cursor | None = None
    context_lines: Annotated[int, Meta(ge=0, description="Lines shown before and after a match; default 0.")] = 0
    case_sensitive: Annotated[bool, Meta(description="Default true.")] = True
    normalized: Annotated[bool, Meta(description="Look at letters and digits only.")] = False
    max_results: Annotated[int, Meta(ge=0, description="1 to 200; default 200.")] | None = None


class NoteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Add a note that the next consolidation takes into the memory. Only when the user asks to remember something."""

    filename: Annotated[
        str,
        # Told, not enforced: `check_name` says better what is wrong, and takes what Codex takes.
        Meta(
            description=f"`{NAME_FORM}`, the moment in UTC.",
            extra_json_schema={
                "minLength": 24,
                "maxLength": 128,
                "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-[a-z0-9][a-z0-9-]{0,79}\.md$",
            },
        ),
    ]
    note: Annotated[str, Meta(description="What to remember, in Markdown.")]


def call_list(root: Path, request: ListRequest) -> Listing:
    """`list_memories`, counted."""
    return counted(
        "list",
        request.path,
        lambda: list_memories(root, path=request.path, cursor=request.cursor, max_results=request.max_results),
    )


def call_read(root: Path, request: ReadRequest) -> Reading:
    """`read_memory`, counted."""
    return counted(
        "read",
        request.path,
        lambda: read_memory(root, request.path, line_offset=request.line_offset, max_lines=request.max_lines),
    )


def call_search(root: Path, request: SearchRequest) -> SearchResult:
    """`search_memories`, counted."""
    return counted(
        "search",
        request.path,
        lambda: search_memories(
            root,
            request.queries,
            match_mode=request.match_mode,
            path=request.path,
            cursor=request.cursor,
            context_lines=request.context_lines,
            case_sensitive=request.case_sensitive,
            normalized=request.normalized,
            max_results=request.max_results,
        ),
    )


def call_note(
    root: Path, text: str, *, name: str | None, clock: Clock, redaction: RedactionStyle, cwd: Path | None = None
) -> Note:
    """`add_note`, counted."""
    from stillroom.recall.browse.notes import add_note  # the rules of redaction take a tenth of a second to load

    def add() -> Note:
        return add_note(root, text, name=name, cwd=cwd, clock=clock, redaction=redaction)

    return counted("add_ad_hoc_note", NOTES, add)
