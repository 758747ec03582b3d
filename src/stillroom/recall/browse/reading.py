"""Reads a file of the memory, or some of its lines (spec §3.2)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stillroom.config import LOOKUP, Lookup
from stillroom.errors import InvalidRequest, PathRefused
from stillroom.recall.browse.lines import skip_lines
from stillroom.recall.browse.paths import opened_path, quoted, read_text, readable
from stillroom.sessions.truncate import middle_truncate


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Some or all of a file."""

    path: str
    start_line_number: int
    content: str
    #: Whether the file goes on after the content, or something was cut out of it.
    truncated: bool


def read_memory(
    root: Path, path: str, *, line_offset: int = 1, max_lines: int | None = None, limits: Lookup = LOOKUP
) -> Reading:
    """The lines of a file from `line_offset` on, cut in the middle to `max_answer_tokens`.

    The empty line after a last line feed may be asked for; one further is an `InvalidRequest`.
    """
    if line_offset < 1:
        raise InvalidRequest("`line_offset` must be 1 or more: lines are counted from 1")
    if max_lines is not None and max_lines < 1:
        raise InvalidRequest("`max_lines` must be 1 or more")
    with opened_path(root, path) as node:
        if node.is_folder:
            raise PathRefused(f"{quoted(path or '.')} is a folder", hint="`list` shows what is in it")
        text = read_text(node, path, max_bytes=limits.max_file_bytes)
    start = skip_lines(text, 0, line_offset - 1)
    if start is None:
        raise InvalidRequest(f"{quoted(path)} has no line {line_offset}: it has {text.count(chr(10)) + 1}")
    end = len(text) if max_lines is None else skip_lines(text, start, max_lines)
    chosen = text[start:end]
    content = middle_truncate(chosen, limits.max_answer_tokens)
    truncated = len(content) != len(chosen) or (end is not None and end < len(text))
    return Reading(path=readable(path), start_line_number=line_offset, content=content, truncated=truncated)
