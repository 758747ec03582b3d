"""Finds the items of a session that say what a line claims. Lines that can't say it are not decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest

import msgspec
import re2

from stillroom.errors import RolloutError
from stillroom.insight.why.claims import Claim, folded, least_share, share, telling
from stillroom.insight.why.quote import Quote, Reach
from stillroom.sessions.calls import Call, Output, read_call, read_output
from stillroom.sessions.item import UNREADABLE, Item
from stillroom.sessions.provenance import Provenance, provenance_of
from stillroom.sessions.readers import open_thread
from stillroom.sessions.speech import said_in
from stillroom.thread import Thread

#: A piece of an item with less of the claim's words does not say it.
_LEAST_SHARE = 0.5
_PIECE_CHARS = 600
_QUOTED_CHARS = 320
#: What is shown ahead of the first word, so that it can be understood.
_LEAD_CHARS = 80
#: Of an item so much is looked at: a tool prints megabytes.
_MOST_ITEM_CHARS = 400_000
#: More words would make the search no finer.
_MOST_NEEDLES = 16
#: An automaton of a few words needs little room; RE2's default is for one thread of many.
_MAX_MEMORY_BYTES = 32 * 1024 * 1024
_WEIGHT: dict[Provenance, float] = {"user": 0.4, "assistant": 0.2, "agent": 0.1, "tool": 0.1, "harness": 0.0}

_call = msgspec.json.Decoder(Call)
_output = msgspec.json.Decoder(Output)


def read_quotes(
    thread: Thread,
    claim: Claim,
    weighed: Mapping[str, float],
    *,
    most: int,
    max_bytes: int | None,
    max_line_bytes: int,
    redact: Callable[[str], str],
) -> tuple[list[Quote], Reach]:
    """The items that say it best, best first, out of the first `max_bytes` of the session."""
    search = Search(claim, weighed)
    found: list[tuple[float, Item, _Piece]] = []
    try:
        with open_thread(thread, max_line_bytes=max_line_bytes, stop_after_bytes=max_bytes) as items:
            for item in items.only(search.wants):
                if piece := search.best(item):
                    found.append((piece.share + piece.verbatim + _WEIGHT[provenance_of(item)], item, piece))
                    found = found if len(found) < 4 * most else nlargest(most, found, key=lambda each: each[0])
        reach: Reach = "cut" if max_bytes is not None and items.stats.bytes >= max_bytes else "whole"
    except RolloutError:
        return [], "gone"
    best = nlargest(most, found, key=lambda each: each[0])
    return [_quote(thread.thread_id, item, piece, redact) for _, item, piece in best], reach


class _Piece(msgspec.Struct, frozen=True):
    text: str
    first: int  #: where the first of the words stands in it
    share: float
    verbatim: bool


class Search:
    """What a line claims, to be looked for in the items of sessions."""

    def __init__(self, claim: Claim, weighed: Mapping[str, float]) -> None:
        self._quotes, self._weighed = claim.quotes, weighed
        self._least = least_share(weighed, _LEAST_SHARE)
        asked = "".join((*weighed, *claim.quotes))
        #: Its words stand in JSON as they are.
        self._is_plain = asked.isascii() and not any(mark in asked for mark in '"\\')
        options = re2.Options()
        options.max_mem = _MAX_MEMORY_BYTES
        options.case_sensitive = False
        options.encoding = re2.Options.Encoding.LATIN1  # bytes as they are
        options.log_errors = False
        needles = telling(weighed, self._least)[:_MOST_NEEDLES]
        spelled = dict.fromkeys(each for needle in needles for each in _spellings(needle))
        self._needles = re2.compile(b"|".join(map(re2.escape, spelled)), options) if spelled else None

    def wants(self, lines: bytes) -> bool:
        """Whether one of these lines of JSON may say it. A line that `best` finds something in is always wanted."""
        return self._needles is not None and self._needles.search(lines) is not None and self._may_hold(lines)

    def _may_hold(self, lines: bytes) -> bool:
        """Whether lines of JSON together say so much that one might; True where words may be written otherwise."""
        if not (self._is_plain and lines.isascii()) or b"\\u" in lines or b"\\/" in lines:
            return True
        return self._says_enough(lines.decode().lower())

    def best(self, item: Item) -> _Piece | None:
        """The piece of the item that says most of it, if it says enough."""
        try:
            text = _text_of(item)
        except UNREADABLE:
            return None
        if not self._may_say(text):
            return None
        found = None
        for piece in _pieces(text[:_MOST_ITEM_CHARS]):
            plain = folded(piece)
            # A quote is cut at ends that the piece may not have.
            verbatim = any(quote in plain for quote in self._quotes)
            has = share(self._weighed, plain)
            if (verbatim or has >= self._least) and (found is None or has + verbatim > found.share + found.verbatim):
                lower = piece.casefold()
                first = min((at for word in self._weighed if (at := lower.find(word)) >= 0), default=0)
                found = _Piece(piece, first, has, verbatim)
        return found

    def _may_say(self, text: str) -> bool:
        """Whether all of an item says so much that a piece of it might: of most that hold a word none does."""
        return self._says_enough(text.casefold() if text.isascii() else folded(text))

    def _says_enough(self, plain: str) -> bool:
        return share(self._weighed, plain) >= self._least or any(
            all(word in plain for word in quote.split()) for quote in self._quotes
        )


def _spellings(word: str) -> Iterator[bytes]:
    """As a file of JSON may have it."""
    for form in dict.fromkeys((word, word.replace("ss", "ß"))):
        if form.isascii():
            yield form.encode()
            yield form.replace("/", "\\/").encode()
            continue
        import json  # plain words need it not

        for cased in (form, form.upper(), form.title()):
            yield cased.encode("utf-8", "replace")
            yield json.dumps(cased)[1:-1].encode()  # non-ASCII letters as escapes


def _text_of(item: Item) -> str:
    """What a person would read of it."""
    if (said := said_in(item)) is not None:
        return "\n".join(text for _, text in said)
    if item.type.endswith("_output"):
        return read_output(_output.decode(item.raw)).text
    asked = read_call(_call.decode(item.raw))
    return f"{asked.tool}: {asked.command or asked.arguments}"


def _pieces(text: str) -> Iterator[str]:
    """Stretches of whole lines, each short enough to say one thing; a longer line is cut, with an overlap."""
    held = ""
    for line in text.splitlines():
        if held and len(held) + len(line) > _PIECE_CHARS:
            yield held
            held = ""
        held = f"{held}\n{line}" if held else line
        while len(held) > 2 * _PIECE_CHARS:
            yield held[: 2 * _PIECE_CHARS]
            held = held[_PIECE_CHARS:]
    if held:
        yield held


def _quote(thread_id: str, item: Item, piece: _Piece, redact: Callable[[str], str]) -> Quote:
    # Redacted ahead of the cut: half a secret is not recognised.
    text = " ".join(redact(piece.text).split())
    start = 0
    if len(text) > _QUOTED_CHARS:
        start = min(max(piece.first - _LEAD_CHARS, 0), len(text) - _QUOTED_CHARS)
    end = start + _QUOTED_CHARS
    return Quote(
        thread_id=thread_id,
        who=provenance_of(item),
        at_ms=item.timestamp_ms,
        line=item.line_no,
        item=item.type,
        text=("…" if start else "") + text[start:end] + ("…" if end < len(text) else ""),
        verbatim=piece.verbatim,
        share=round(piece.share, 2),
    )


def best_first(quotes: Sequence[Quote]) -> list[Quote]:
    """What people said word for word comes first."""
    return sorted(quotes, key=lambda quote: -(quote.share + quote.verbatim + _WEIGHT[quote.who]))
