"""What stands in a file of spans: of each conversation, the span with the longest input, which repeats all before it.

While the file is scanned only lengths and places are kept.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents import documents
from stillroom.rollouts.agents.chunks import open_chunks
from stillroom.rollouts.agents.ends import read_small
from stillroom.rollouts.agents.lists import document
from stillroom.rollouts.agents.otel.records import Records
from stillroom.rollouts.agents.otel.spans import INPUTS, Span, messages_of, spans_of, weight
from stillroom.rollouts.agents.otel.texts import attribute as text_of_attribute
from stillroom.rollouts.batches import read_batches
from stillroom.rollouts.item import UNREADABLE
from stillroom.rollouts.lines import BOM, open_stored
from stillroom.rollouts.speech import first_words
from stillroom.rollouts.stats import ReadStats

# Conversations of one file, and calls of tools in it, that are told apart: at less than 100 MB.
_MAX_CONVERSATIONS = 50_000
_MAX_TOOL_SPANS = 500_000
# A line without any of these is of another kind of span.
_MARKS = (b"gen_ai.", b"llm.", b"all_messages")


@dataclass(slots=True)
class Conversation:
    """One conversation of a file. Places are bytes in a file of lines, and numbers of elements in a document."""

    place: int = -1
    #: Of the spans on that line.
    number: int = 0
    #: The line is too long to be held.
    long: bool = False
    weight: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    preview: str = ""
    agent: str = ""
    provider: str = ""
    #: The span in which the agent was called; then the conversation that this span is of.
    caller: str = ""
    parent: str = ""


class _Entry(NamedTuple):
    place: int
    line: bytes
    #: Bytes that were cut out of it.
    cut: int = 0


class Conversations(dict[str, Conversation]):
    """By name; with what was left out."""

    untold: int = 0


def conversations(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Conversations:
    """All conversations of a file. Raises `OSError` or `RolloutError`."""
    status = os.stat(path)  # noqa: PTH116
    return _scanned(path, status.st_size, status.st_mtime_ns, max_line_bytes, reading)


def lines(path: Path, name: str, *, max_line_bytes: int, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The messages of a conversation, as lines. Raises `OSError` or `RolloutError`."""
    found = conversations(path, max_line_bytes=max_line_bytes, reading=reading).get(name)
    if found is None or found.place < 0:
        raise RolloutError(f"`{path}` has no conversation {name[:80]!r} any more")
    if found.long:
        for attribute in INPUTS:
            yield from documents.lines(open_chunks(_text(path, found.place, attribute, reading)), (), reading=reading)
        return
    for entry in _entries(path, max_line_bytes, reading, start=found.place):
        try:
            for number, span in enumerate(spans_of(entry.line)):
                if number == found.number:
                    yield from _lines(span)
        except UNREADABLE as error:
            raise RolloutError(f"`{path}` was written anew while it was read") from error
        return


@lru_cache(maxsize=2)  # whoever reads a conversation of a file reads others of it
def _scanned(path: Path, size: int, mtime_ns: int, max_line_bytes: int, reading: Reading) -> Conversations:
    del size, mtime_ns  # a file that looks otherwise is another one
    found = Conversations()
    tools: dict[int, str] = {}
    for entry in _entries(path, max_line_bytes, reading):
        if not any(mark in entry.line for mark in _MARKS):
            continue
        try:
            for number, span in enumerate(spans_of(entry.line)):
                if span.told("gen_ai.operation.name") == "execute_tool" and len(tools) < _MAX_TOOL_SPANS:
                    tools[hash(span.span_id)] = span.conversation
                _learn(found, span, entry, number)
        except UNREADABLE:
            continue
    for name, each in found.items():
        parent = tools.get(hash(each.caller), "") if each.caller else ""
        each.parent = parent if parent != name else ""
    return found


def _learn(found: Conversations, span: Span, entry: _Entry, number: int) -> None:
    if not (name := span.conversation):
        return
    if (each := found.get(name)) is None:
        if len(found) >= _MAX_CONVERSATIONS:
            found.untold += 1
            return
        each = found[name] = Conversation()
    each.first_ms = min(filter(None, (each.first_ms, span.start_ms)), default=None)
    each.last_ms = max(filter(None, (each.last_ms, span.end_ms)), default=None)
    if span.told("gen_ai.operation.name") == "invoke_agent":
        each.caller = span.parent_id
        each.agent = span.told("gen_ai.agent.name") or each.agent
    size = weight(span)
    if size and size + entry.cut >= each.weight:
        each.place, each.number, each.weight = entry.place, number, size + entry.cut
        each.long = entry.cut > 0 and INPUTS[0] in span.attributes
        each.provider = span.told("gen_ai.provider.name", "gen_ai.system", "llm.provider") or each.provider
        each.preview = each.preview or _preview(span)


def _preview(span: Span) -> str:
    items = Records(ReadStats()).items(list(_lines(span)), 1)
    words = (first_words(item, max_chars=READING.preview_chars) for item in items)
    return next(filter(None, words), "")


def _lines(span: Span) -> Iterator[bytes]:
    for message in messages_of(span):
        yield msgspec.json.encode(message) + b"\n"


def _entries(path: Path, max_line_bytes: int, reading: Reading, *, start: int = 0) -> Iterator[_Entry]:
    """Each line of the file from `start` on, with its place; of a document, each element of its list."""
    where, stats = _list_in(path), ReadStats()
    if where is not None:
        with open_chunks(document(path, where, reading), reading=reading) as text:
            lines = (
                line
                for batch in read_batches(text, stats, max_line_bytes=max_line_bytes, reading=reading)
                for line in batch
            )
            yield from (_Entry(number, line) for number, line in enumerate(lines) if number >= start)
        return
    with open_stored(path, reading=reading) as file:
        file.seek(start)
        end, cut = start, 0
        for batch in read_batches(file, stats, max_line_bytes=max_line_bytes, reading=reading):
            # What was squeezed was longer in the file, and comes alone.
            place = end if len(batch) == 1 else start + stats.bytes - sum(map(len, batch))
            for line in batch:
                yield _Entry(place, line, stats.cut_bytes - cut)
                place += len(line)
            end, cut = start + stats.bytes, stats.cut_bytes


def _text(path: Path, place: int, name: str, reading: Reading) -> Generator[bytes, None, None]:
    with open_stored(path, reading=reading) as file:
        file.seek(place)
        yield from text_of_attribute(file, name, reading=reading)


def _list_in(path: Path) -> documents.Path | None:
    """Where the list of a document is; None for a file whose lines are objects."""
    first, newline, _ = read_small(path).removeprefix(BOM).lstrip().partition(b"\n")
    if first.startswith(b"["):
        return ()
    whole = not newline or first.rstrip().endswith(b"}") or path.suffix.lower() != ".json"
    return None if whole else ("resourceSpans",)
