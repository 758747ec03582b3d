"""Items as short rows, the most telling first when not all fit (spec §1.16).

A row begins at the start of a line with its label: `[user 12:04] words`, `[ran] command`, `[exit 1] output`. What it
has beyond that line is indented, so that nothing that somebody said or printed can look like a row.

People's words come before an assistant's conclusions, those before other agents' words, commentary, the client's texts
and tools. Inside a tier newer rows come first. What is taken stands in the order of the session, a line for each gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from enum import IntEnum
from typing import NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.pattern import late
from stillroom.sessions.calls import Call, Output, read_call, read_output
from stillroom.sessions.item import UNREADABLE, Item
from stillroom.sessions.rendered import Rendered
from stillroom.sessions.speech import Message, Speaker, speeches
from stillroom.sessions.truncate import BYTES_PER_TOKEN, ceil_boundary, floor_boundary, marker

OMISSION = b"[... response items omitted ...]\n"
#: Room for the marker of a cut inside a row.
_MARKER_ROOM_BYTES = 96
#: Questions that wait for their answer; more than a client ever has open.
_MAX_OPEN_QUESTIONS = 64
_TOOL_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
#: What the label says already.
_SAID_EXIT = late(r"\A(?:Exit code:|Process exited with code) *-?\d+\n")
_QUESTION_TOOL = "request_user_input"


class Tier(IntEnum):
    """How much a row tells about what to remember, best first."""

    HUMAN = 0
    FINAL = 1
    OTHER_AGENT = 2
    COMMENTARY = 3
    CONTEXT = 4
    TOOL = 5


_SPEAKERS: dict[Speaker, str] = {
    "user": "user",
    "assistant": "assistant",
    "agent": "other agent",
    "harness": "client",
}
#: Whether an assistant's message ended its turn is only known when the turn is over.
_LAST_WORD = b"assistant final"
_WORD = b"assistant"


class Row(NamedTuple):
    """One item, redacted and cut to the size of a row."""

    number: int
    tier: Tier
    text: bytes


def render_evidence(
    items: Iterable[Item], *, token_limit: int, redact: Callable[[str], str], reading: Reading = READING
) -> Rendered:
    """Rows of `items` within four bytes for each token of `token_limit`, markers included.

    Of each tier only as many rows are held as could fit alone.
    """
    budget = BYTES_PER_TOKEN * token_limit
    held = {tier: _Newest(budget) for tier in Tier}
    count = source_bytes = all_bytes = 0
    shortened = False
    reader = _Reader(redact, reading)
    for row, size, whole in reader.rows(items):
        held[row.tier].add(row)
        count += 1
        source_bytes += size
        all_bytes += len(row.text)
        shortened = shortened or not whole
    if all_bytes <= budget:
        chosen = {row.number: row.text for newest in held.values() for row in newest.rows}
    else:
        chosen = _choose(held, count=count, budget=budget)
    chosen = {number: text if number in reader.finals else _unfinished(text) for number, text in chosen.items()}
    text = b"".join(_pieces(chosen, count)).decode()
    left_out = count - len(chosen)
    return Rendered(
        text=text,
        source_bytes=source_bytes,
        kept_bytes=len(text.encode()),
        cut=left_out > 0 or shortened or all_bytes > budget,
        note=_note(count, left_out, source_bytes) if left_out or shortened else "",
    )


class _Newest:
    """The newest rows of a tier: no more than fill the budget, the last of them in part."""

    def __init__(self, budget: int) -> None:
        self.rows: deque[Row] = deque()
        self._budget = budget
        self._bytes = 0

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self._bytes += len(row.text)
        while self._bytes - len(self.rows[0].text) >= self._budget:
            self._bytes -= len(self.rows.popleft().text)
            if not self.rows:
                return


def _choose(held: dict[Tier, _Newest], *, count: int, budget: int) -> dict[int, bytes]:
    """What fits, tier by tier; the gaps that stay are paid for."""
    chosen: dict[int, bytes] = {}
    left = budget - len(OMISSION)
    for tier in Tier:
        for row in reversed(held[tier].rows):
            opens = (row.number > 0 and row.number - 1 not in chosen) + (
                row.number < count - 1 and row.number + 1 not in chosen
            )
            room = left - (opens - 1) * len(OMISSION)
            if len(row.text) <= room:
                text = row.text
            elif room > len(OMISSION) + _MARKER_ROOM_BYTES:
                text = _cut(row.text, room - _MARKER_ROOM_BYTES)
            else:
                continue
            chosen[row.number] = text
            left = room - len(text)
            if left <= len(OMISSION) + _MARKER_ROOM_BYTES:
                return chosen
    return chosen


def _pieces(chosen: dict[int, bytes], count: int) -> Iterator[bytes]:
    following = 0
    for number in sorted(chosen):
        if number > following:
            yield OMISSION
        yield chosen[number]
        following = number + 1
    if chosen and following < count:
        yield OMISSION


def _note(count: int, left_out: int, source_bytes: int) -> str:
    return (
        f"The session has {count:,} records of {source_bytes:,} bytes in all; {left_out:,} of them are left out, the"
        " least telling first, and long ones are cut in the middle. Nothing may be concluded from what is absent."
    )


# --- rows


_call = msgspec.json.Decoder(Call)
_output = msgspec.json.Decoder(Output)
_message = msgspec.json.Decoder(Message)


class _Reader:
    """Makes rows, one after the other."""

    def __init__(self, redact: Callable[[str], str], reading: Reading) -> None:
        self._redact, self._reading = redact, reading
        self._questions: dict[str, str] = {}
        self._workdir: str | None = None
        #: The newest message of the assistant, if it may be the last of its turn.
        self._last_word: int | None = None
        self._finals: set[int] = set()

    @property
    def finals(self) -> set[int]:
        """Rows in which the assistant ended a turn."""
        return self._finals if self._last_word is None else self._finals | {self._last_word}

    def rows(self, items: Iterable[Item]) -> Iterator[tuple[Row, int, bool]]:
        """Each item's row, its size in the session, and whether the row holds all of it."""
        for number, item in enumerate(items):
            tier, parts = self._read(item, number)
            of_tool = item.type in _TOOL_OUTPUTS and tier is Tier.TOOL
            size = self._reading.evidence_tool_row_bytes if of_tool else self._reading.evidence_row_bytes
            limit = size - _MARKER_ROOM_BYTES
            row, complete = b"", True
            for label, text in parts:  # redacted as it was written: no rule knows an indented secret
                clean, whole = _redacted(text.encode("utf-8", "replace"), limit, self._redact, self._reading)
                row += _labelled(self._redact(label), clean.decode())
                complete = complete and whole
            if len(row) > limit:
                row, complete = _cut(row[:-1], limit - 1) + b"\n", False
            yield Row(number, tier, row), len(item.raw), complete

    def _read(self, item: Item, number: int) -> tuple[Tier, list[tuple[str, str]]]:
        try:
            match item.type:
                case "message":
                    return self._said(item, number)
                case "agent_message":
                    found = speeches(Message("user", _message.decode(item.raw).content))
                    return Tier.OTHER_AGENT, [(_timed("other agent", item), text) for _, text in found]
                case kind if kind.endswith("_output"):
                    return self._ended(_output.decode(item.raw), item)
                case _:
                    return Tier.TOOL, [self._asked(_call.decode(item.raw))]
        except UNREADABLE:
            return Tier.TOOL, [(item.type, item.raw.decode("utf-8", "replace"))]

    def _said(self, item: Item, number: int) -> tuple[Tier, list[tuple[str, str]]]:
        message = _message.decode(_without_media(item.raw))
        found = speeches(message)
        if item.role != "user":
            commentary = message.phase == "commentary"
            if not commentary:
                self._last_word = number
            label = "assistant" if commentary else _LAST_WORD.decode()
            parts = [(_timed(label, item), text) for _, text in found]
            return Tier.COMMENTARY if commentary else Tier.FINAL, parts
        speakers = {who for who, _ in found}
        if "user" in speakers and self._last_word is not None:
            self._finals.add(self._last_word)
            self._last_word = None
        parts = [(_timed(_SPEAKERS[who], item), text) for who, text in found]
        if "agent" in speakers:
            return Tier.OTHER_AGENT, parts
        # A message that only shows an image is still a person's.
        return Tier.CONTEXT if speakers == {"harness"} else Tier.HUMAN, parts or [(_timed("user", item), "")]

    def _asked(self, call: Call) -> tuple[str, str]:
        asked = read_call(call)
        if asked.tool == _QUESTION_TOOL and len(self._questions) < _MAX_OPEN_QUESTIONS:
            self._questions[call.call_id or ""] = asked.arguments
        if asked.command is None:
            return f"called {asked.tool}", asked.arguments
        moved = asked.workdir is not None and asked.workdir != self._workdir
        self._workdir = asked.workdir or self._workdir
        return f"ran in {asked.workdir}" if moved else "ran", asked.command

    def _ended(self, output: Output, item: Item) -> tuple[Tier, list[tuple[str, str]]]:
        ended = read_output(output)
        question = self._questions.pop(output.call_id or "", None)
        if question is not None and _answers(bytes(output.output)):
            return Tier.HUMAN, [("assistant asked", question), (_timed("user", item), ended.text)]
        if ended.exit_code is not None:
            return Tier.TOOL, [(f"exit {ended.exit_code}", _SAID_EXIT.sub("", ended.text))]
        return Tier.TOOL, [("failed" if ended.ok is False else "output", ended.text)]


def _timed(label: str, item: Item) -> str:
    if item.timestamp_ms is None:
        return label
    try:
        return f"{label} {datetime.fromtimestamp(item.timestamp_ms / 1000, tz=UTC):%H:%M}"
    except (ValueError, OverflowError, OSError):
        return label


def _labelled(label: str, text: str) -> bytes:
    """A row: no line of `text` but the first begins where rows begin."""
    label = " ".join(label.replace("]", ")").split())
    lines = text.splitlines() or [""]
    return "\n ".join([f"[{label}] {lines[0]}".rstrip(), *lines[1:]]).encode() + b"\n"


def _unfinished(text: bytes) -> bytes:
    """The row of an assistant's message that did not end its turn."""
    begins = b"[" + _LAST_WORD
    return b"[" + _WORD + text[len(begins) :] if text.startswith(begins) else text


def _answers(raw: bytes) -> bool:
    """Whether the output of a question holds an answer that is not blank."""
    try:
        decoded = msgspec.json.decode(raw)
        if isinstance(decoded, str):
            decoded = msgspec.json.decode(decoded)
    except UNREADABLE:
        return False
    return isinstance(decoded, dict) and _has_words(decoded.get("answers"))


def _has_words(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, list):
        return any(_has_words(entry) for entry in value)
    return isinstance(value, dict) and any(_has_words(entry) for entry in value.values())


def _without_media(raw: bytes) -> bytes:
    if b"input_image" not in raw and b"input_audio" not in raw:
        return raw
    message = msgspec.json.decode(raw)
    content = message.get("content")
    if not isinstance(content, list):
        return raw
    message["content"] = [_without_medium(part) for part in content]
    return msgspec.json.encode(message)


def _without_medium(part: object) -> object:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "input_image":
        return {"type": "input_text", "text": "[image omitted]"}
    return {"type": "input_text", "text": "[audio omitted]"} if kind == "input_audio" else part


def _redacted(row: bytes, limit: int, redact: Callable[[str], str], reading: Reading) -> tuple[bytes, bool]:
    """`row`, redacted, then cut to `limit`. Of a huge one only the ends are redacted, and more than is kept of them."""
    reach = limit + reading.seam_margin_bytes
    if len(row) <= 2 * reach:
        clean = redact(row.decode("utf-8", "replace")).encode("utf-8", "replace")
        return (clean, True) if len(clean) <= limit else (_cut(clean, limit), False)
    head = redact(row[: floor_boundary(row, reach)].decode("utf-8", "replace")).encode("utf-8", "replace")
    tail = redact(row[ceil_boundary(row, len(row) - reach) :].decode("utf-8", "replace")).encode("utf-8", "replace")
    guard = reading.seam_guard_bytes
    head = head[: floor_boundary(head, min(limit // 2, max(len(head) - guard, 0)))]
    tail = tail[ceil_boundary(tail, len(tail) - min(limit - limit // 2, max(len(tail) - guard, 0))) :]
    return head + marker(len(row) - len(head) - len(tail)).encode() + tail, False


def _cut(data: bytes, limit: int) -> bytes:
    """Both ends of `data`, `limit` bytes in all, with a marker between; it ends the line that it stands in."""
    limit = max(limit, 2)
    if len(data) <= limit:
        return data
    head = data[: floor_boundary(data, limit // 2)]
    tail = data[ceil_boundary(data, len(data) - (limit - limit // 2)) :]
    return head + marker(len(data) - limit).encode() + tail
