"""Items as rows, the most telling first when not all fit (spec §1.16).

People's words come before an assistant's conclusions, those before other agents' words, commentary, the client's texts
and tools. Inside a tier newer rows come first. What is taken stands in the order of the session, a line for each gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.item import UNREADABLE, Item
from stillroom.rollouts.rendered import Rendered
from stillroom.rollouts.speech import Message, speeches
from stillroom.rollouts.truncate import BYTES_PER_TOKEN, ceil_boundary, floor_boundary, marker

OMISSION = b"[... response items omitted ...]\n"
#: Room for the marker of a cut inside a row.
_MARKER_ROOM_BYTES = 96
#: Questions that wait for their answer; more than a client ever has open.
_MAX_OPEN_QUESTIONS = 64
_TOOL_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_QUESTION_TOOL = "request_user_input"


class Tier(IntEnum):
    """How much a row tells about what to remember, best first."""

    HUMAN = 0
    FINAL = 1
    OTHER_AGENT = 2
    COMMENTARY = 3
    CONTEXT = 4
    TOOL = 5


_LABELS = {
    Tier.HUMAN: "human user",
    Tier.FINAL: "assistant final",
    Tier.OTHER_AGENT: "other agent",
    Tier.COMMENTARY: "assistant commentary",
    Tier.CONTEXT: "harness context",
    Tier.TOOL: "tool",
}


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
    for row, size, whole in _rows(items, redact, reading):
        held[row.tier].add(row)
        count += 1
        source_bytes += size
        all_bytes += len(row.text)
        shortened = shortened or not whole
    if all_bytes <= budget:
        chosen = {row.number: row.text for newest in held.values() for row in newest.rows}
    else:
        chosen = _choose(held, count=count, budget=budget)
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


class _Call(msgspec.Struct):
    name: str = ""
    namespace: str | None = None
    call_id: str = ""
    arguments: str = ""


class _Output(msgspec.Struct):
    call_id: str = ""
    output: msgspec.Raw = msgspec.Raw(b"null")


_call = msgspec.json.Decoder(_Call)
_output = msgspec.json.Decoder(_Output)
_message = msgspec.json.Decoder(Message)


def _rows(items: Iterable[Item], redact: Callable[[str], str], reading: Reading) -> Iterator[tuple[Row, int, bool]]:
    """Each item's row, its size in the session, and whether the row holds all of it."""
    questions: dict[str, str] = {}
    for number, item in enumerate(items):
        tier, body = _classify(item, questions)
        of_tool = item.type in _TOOL_OUTPUTS and tier is Tier.TOOL
        limit = reading.evidence_tool_row_bytes if of_tool else reading.evidence_row_bytes
        whole = b"[" + _LABELS[tier].encode() + b"]\n" + body + b"\n"
        text, complete = _redacted(whole, limit - _MARKER_ROOM_BYTES, redact, reading)
        yield Row(number, tier, text), len(item.raw), complete


def _classify(item: Item, questions: dict[str, str]) -> tuple[Tier, bytes]:
    try:
        if item.type == "message":
            return _message_tier(item), _without_media(item.raw)
        if item.type == "agent_message":
            return Tier.OTHER_AGENT, item.raw
        if item.type == "function_call" and _QUESTION_TOOL.encode() in item.raw:
            call = _call.decode(item.raw)
            if call.name == _QUESTION_TOOL and not call.namespace and len(questions) < _MAX_OPEN_QUESTIONS:
                questions[call.call_id] = call.arguments
        if item.type == "function_call_output" and questions:
            output = _output.decode(item.raw)
            question = questions.pop(output.call_id, None)
            if question is not None and _answers(bytes(output.output)):
                return Tier.HUMAN, b"Assistant question: " + question.encode() + b"\nHuman reply: " + item.raw
    except UNREADABLE:
        return Tier.TOOL, item.raw
    return Tier.TOOL, item.raw


def _message_tier(item: Item) -> Tier:
    message = _message.decode(item.raw)
    if item.role != "user":
        return Tier.COMMENTARY if message.phase == "commentary" else Tier.FINAL
    speakers = {who for who, _ in speeches(message)}
    if "agent" in speakers:
        return Tier.OTHER_AGENT
    # A message that only shows an image is still a person's.
    return Tier.CONTEXT if speakers == {"harness"} else Tier.HUMAN


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
