"""The citation block that an agent puts at the end of an answer: read, and kept from a person's eyes (spec §2.2).

    <oai-mem-citation>
    <citation_entries>
    MEMORY.md:234-236|note=[why it was of use]
    </citation_entries>
    <rollout_ids>
    01a2273c-0036-7133-90f0-7698c74b216a
    </rollout_ids>
    </oai-mem-citation>

Everything here takes time in proportion to the text, whatever the text is, and imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

_OPEN = "<oai-mem-citation>"
_CLOSE = "</oai-mem-citation>"
_NOTE = "|note=["
#: Line numbers are unsigned 32-bit integers.
_MAX_LINE = 2**32 - 1
_MAX_DIGITS = len(str(_MAX_LINE))


class CitationEntry(NamedTuple):
    """Lines of one file of the memory folder, and what they were good for. Nothing about it is checked."""

    path: str
    line_start: int
    line_end: int
    note: str


class MemoryCitation(NamedTuple):
    """What a message cites: all its blocks taken together, in their order."""

    entries: tuple[CitationEntry, ...]
    #: The threads that the memory came from, each once; word for word, even where they are no ids.
    rollout_ids: tuple[str, ...]


def parse_memory_citation(text: str) -> MemoryCitation | None:
    """What a message cites; None if it cites nothing. A block without an end goes to the end of the text."""
    stream = CitationStream()
    stream.feed(text)
    return citation_of(stream.finish()[1])


def strip_memory_citation(text: str) -> str:
    """The message as a person is shown it: without its citation blocks. The spaces around them stay."""
    stream = CitationStream()
    shown = stream.feed(text)
    return shown + stream.finish()[0]


def citation_of(bodies: Iterable[str]) -> MemoryCitation | None:
    """The same from what stands inside of the blocks, as `CitationStream.finish` gives it."""
    entries: list[CitationEntry] = []
    ids: dict[str, None] = {}
    for body in bodies:
        entries += _entries(_between(body, "citation_entries") or "")
        block = _between(body, "rollout_ids")
        if block is None:  # as older versions wrote it
            block = _between(body, "thread_ids") or ""
        ids.update(dict.fromkeys(map(str.strip, filter(None, block.split("\n")))))
    ids.pop("", None)
    return MemoryCitation(tuple(entries), tuple(ids)) if entries or ids else None


class CitationStream:
    """Takes citation blocks out of an answer that arrives in pieces; no part of a tag is ever shown.

    However the text is cut into pieces, what is shown and what is found stay the same.
    """

    def __init__(self) -> None:
        #: The end of what arrived, while it may be the beginning of a tag.
        self._held = ""
        #: The body of the block that is open.
        self._body: list[str] | None = None
        self._bodies: list[str] = []

    def feed(self, chunk: str) -> str:
        """Take the next piece; what of the text may be shown now."""
        if not self._held and "<" not in chunk:
            if self._body is None:
                return chunk
            self._body.append(chunk)
            return ""
        text = self._held + chunk
        shown: list[str] = []
        at = 0
        while True:
            tag = _OPEN if self._body is None else _CLOSE
            found = text.find(tag, at)
            if found < 0:
                break
            if self._body is None:
                shown.append(text[at:found])
                self._body = []
            else:
                self._body.append(text[at:found])
                self._bodies.append("".join(self._body))
                self._body = None
            at = found + len(tag)
        # A tag begins with its only `<`.
        end = text.rfind("<", max(at, len(text) - len(tag) + 1))
        if end < 0 or not tag.startswith(text[end:]):
            end = len(text)
        (shown if self._body is None else self._body).append(text[at:end])
        self._held = text[end:]
        return "".join(shown)

    def finish(self) -> tuple[str, list[str]]:
        """The text is at its end: what is still to be shown, and the bodies of all blocks. Ready for another text."""
        shown = self._held if self._body is None else ""
        if self._body is not None:
            self._bodies.append("".join([*self._body, self._held]))
        bodies = self._bodies
        self._held, self._body, self._bodies = "", None, []
        return shown, bodies


def _between(body: str, name: str) -> str | None:
    """What stands between the first opening tag and the next closing one."""
    _, opened, rest = body.partition(f"<{name}>")
    inside, closed, _ = rest.partition(f"</{name}>")
    return inside if opened and closed else None


def _entries(block: str) -> Iterator[CitationEntry]:
    for line in block.split("\n"):
        if _NOTE not in line:
            continue
        location, _, note = line.rpartition(_NOTE)
        note = note.rstrip()
        if not note.endswith("]"):
            continue
        path, colon, lines = location.rpartition(":")
        first, _, last = lines.partition("-")
        start, end = _line_number(first), _line_number(last)
        if colon and start is not None and end is not None:
            yield CitationEntry(path.strip(), start, end, note[:-1].strip())


def _line_number(text: str) -> int | None:
    if len(text) < _MAX_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    digits = text.strip().removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    # Python refuses to read a number of thousands of digits.
    if len(digits) > _MAX_DIGITS:
        return None
    return number if (number := int(digits)) <= _MAX_LINE else None
