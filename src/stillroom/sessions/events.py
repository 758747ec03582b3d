"""What happened in a session, whichever agent recorded it: what was said, and what was run with its outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec

from stillroom.sessions.calls import Call, Output, read_call, read_output
from stillroom.sessions.item import UNREADABLE, Item
from stillroom.sessions.speech import Message, Speaker, speeches

# --- The edits that an `apply_patch` text asks for.

Action = Literal["add", "update", "delete"]
BEGIN = "*** Begin Patch"
_ACTIONS: dict[str, Action] = {
    "*** Add File: ": "add",
    "*** Update File: ": "update",
    "*** Delete File: ": "delete",
}
_MOVE = "*** Move to: "


class Edit(msgspec.Struct, frozen=True):
    """A change of one file."""

    #: As the patch names it; of a moved file the new one.
    path: str
    action: Action
    diff: str


def parse_patch(text: str) -> tuple[Edit, ...]:
    """Read a patch leniently: what stands before its first file or after its end is passed over."""
    edits: list[Edit] = []
    path: str | None = None
    action: Action = "update"
    body: list[str] = []
    for line in text[text.find(BEGIN) :].splitlines():
        named = next((mark for mark in _ACTIONS if line.startswith(mark)), None)
        if named is not None or line.startswith("*** End Patch"):
            if path is not None:
                edits.append(Edit(path, action, "\n".join(body)))
            if named is None:
                return tuple(edits)
            path, action, body = line[len(named) :].strip(), _ACTIONS[named], []
        elif path is not None and line.startswith(_MOVE):
            path = line[len(_MOVE) :].strip()
        elif path is not None:
            body.append(line)
    if path is not None:
        edits.append(Edit(path, action, "\n".join(body)))
    return tuple(edits)


# Calls whose output may still come; a client has a handful at a time.
_PENDING_CALLS = 1000
# What an event costs beside its texts.
_EVENT_BYTES = 500


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message."""

    who: Speaker
    text: str
    #: The assistant's last word of a turn.
    final: bool = False
    line_no: int = 0
    at_ms: int | None = None


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call with its output."""

    tool: str
    #: The shell command, for tools that run one.
    command: str | None = None
    workdir: str | None = None
    arguments: str = ""
    output: str = ""
    #: As recorded; a pipeline hides the codes of all but its last command.
    exit_code: int | None = None
    #: None: the record does not tell.
    ok: bool | None = None
    #: What the call asked for; it was done only if `ok`.
    edits: tuple[Edit, ...] = ()
    line_no: int = 0
    at_ms: int | None = None


@dataclass(slots=True)
class _Slot:
    event: Said | Ran
    #: Assistants of older clients don't mark their last word.
    unmarked: bool = False
    session: str | None = None


_message = msgspec.json.Decoder(Message)
_call = msgspec.json.Decoder(Call)
_output = msgspec.json.Decoder(Output)


def read_events(
    items: Iterable[Item], *, max_output_chars: int = 16_000, max_total_bytes: int = 32 * 1024 * 1024
) -> list[Said | Ran]:
    """The events of a thread in order, each call paired with its output.

    Every text is cut in the middle to `max_output_chars`. Where the whole is over `max_total_bytes`, events in the
    middle of the session are left out. An item that can't be understood is passed over.
    """
    reader = _Reader(max_output_chars, max_total_bytes)
    for item in items:
        try:
            reader.read(item)
        except UNREADABLE:
            continue
    return reader.events()


class _Reader:
    def __init__(self, max_chars: int, max_bytes: int) -> None:
        self._max_chars = max_chars
        self._half = max_bytes // 2
        self._first: list[_Slot] = []
        self._last: deque[tuple[_Slot, int]] = deque()
        self._first_bytes = 0
        self._last_bytes = 0
        self._pending: dict[str, _Slot] = {}
        self._sessions: dict[str, str] = {}

    def read(self, item: Item) -> None:
        match item.type:
            case "message":
                self._said(_message.decode(item.raw), item)
            case "agent_message":
                for _, text in speeches(Message("user", _message.decode(item.raw).content)):
                    self._add(
                        _Slot(Said(who="agent", text=self._cut(text), line_no=item.line_no, at_ms=item.timestamp_ms))
                    )
            case kind if kind.endswith("_output"):
                self._ended(_output.decode(item.raw), item)
            case _:
                self._asked(_call.decode(item.raw), item)

    def events(self) -> list[Said | Ran]:
        slots = self._first + [slot for slot, _ in self._last]
        last_word = True
        for slot in reversed(slots):
            event = slot.event
            if isinstance(event, Said):
                if event.who == "user":
                    last_word = True
                elif event.who == "assistant":
                    if slot.unmarked and last_word:
                        slot.event = msgspec.structs.replace(event, final=True)
                    last_word = False
        return [slot.event for slot in slots]

    def _said(self, message: Message, item: Item) -> None:
        final = message.phase == "final_answer"
        for who, text in speeches(message):
            said = Said(who=who, text=self._cut(text), final=final, line_no=item.line_no, at_ms=item.timestamp_ms)
            self._add(_Slot(said, unmarked=who == "assistant" and message.phase is None))

    def _asked(self, call: Call, item: Item) -> None:
        asked = read_call(call)
        patch = asked.command if asked.command is not None and BEGIN in asked.command else asked.arguments
        edits: tuple[Edit, ...] = ()
        if BEGIN in patch:
            edits = tuple(Edit(edit.path, edit.action, self._cut(edit.diff)) for edit in parse_patch(patch))
        ran = Ran(
            tool=asked.tool,
            command=self._cut(asked.command) if asked.command is not None else self._sessions.get(asked.session or ""),
            workdir=asked.workdir,
            arguments=self._cut(asked.arguments),
            edits=edits,
            line_no=item.line_no,
            at_ms=item.timestamp_ms,
        )
        slot = _Slot(ran, session=asked.session)
        self._add(slot)
        if call.call_id is not None:
            self._pending[call.call_id] = slot
            if len(self._pending) > _PENDING_CALLS:
                del self._pending[next(iter(self._pending))]

    def _ended(self, output: Output, item: Item) -> None:
        ended = read_output(output)
        slot = self._pending.pop(output.call_id or "", None)
        if slot is None:
            ran = Ran(tool=output.name or "", line_no=item.line_no, at_ms=item.timestamp_ms)
            slot = _Slot(ran)
            self._add(slot)
        event = slot.event
        assert isinstance(event, Ran)
        text = self._cut(ended.text)
        slot.event = msgspec.structs.replace(event, output=text, exit_code=ended.exit_code, ok=ended.ok)
        if ended.session is not None and event.command is not None and len(self._sessions) < _PENDING_CALLS:
            self._sessions[ended.session] = event.command
        self._grow(len(text))

    def _add(self, slot: _Slot) -> None:
        size = _size(slot.event)
        if not self._last and self._first_bytes < self._half:
            self._first.append(slot)
            self._first_bytes += size
            return
        self._last.append((slot, size))
        self._grow(size)

    def _grow(self, size: int) -> None:
        if not self._last:
            self._first_bytes += size
            return
        self._last_bytes += size
        while self._last_bytes > self._half and len(self._last) > 1:
            slot, _ = self._last.popleft()
            # By what it weighs now: its output came later.
            self._last_bytes -= _size(slot.event)

    def _cut(self, text: str) -> str:
        """By characters, not tokens: rules read it, no model."""
        if len(text) <= self._max_chars:
            return text
        half = self._max_chars // 2
        return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"


def _size(event: Said | Ran) -> int:
    if isinstance(event, Said):
        return _EVENT_BYTES + len(event.text)
    diffs = sum(len(edit.diff) for edit in event.edits)
    return _EVENT_BYTES + len(event.command or "") + len(event.arguments) + len(event.output) + diffs
