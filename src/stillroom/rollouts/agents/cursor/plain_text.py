"""Cursor's older transcripts, which are plain text, as the lines of the newer ones.

A line `user:` or `assistant:` begins a message; `[Thinking]`, `[Tool call] NAME` and `[Tool result] NAME` begin its
parts. An answer and a tool's output may hold such lines too: behind a tool's output, and in a session of which a prompt
was marked by the client, only what it marks is a person's.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.batches import read_batches
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.stats import ReadStats

_USER = re.compile(r"user:[ \t]*(.*)")
_ASSISTANT = re.compile(r"(?:assistant|A):[ \t]*(.*)")
_PART = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*(.*)")
_ARGUMENT = re.compile(r"[ \t]{0,8}(\w{1,60}): ?(.*)")
_MARK = "<"
# Calls whose result may still come.
_OPEN_CALLS = 100
# Of one part; what is over it is left out.
_MAX_PART_CHARS = 1024 * 1024
_encode = msgspec.json.Encoder().encode


def as_lines(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Generator[bytes, None, None]:
    """One line for each part of each message, without thoughts. Raises `OSError` or `RolloutError`."""
    parts = _Parts()
    with open_stored(path, reading=reading) as file:
        for lines in read_batches(file, ReadStats(), max_line_bytes=max_line_bytes, reading=reading):
            for line in lines:
                yield from parts.take(line.decode("utf-8", "replace").rstrip("\r\n"))
    yield from parts.end()


class _Parts:
    """The part that the lines at hand belong to."""

    def __init__(self) -> None:
        self._kind = ""
        self._name = ""
        self._text: list[str] = []
        self._chars = 0
        self._calls = 0
        #: The calls without a result: names and ids.
        self._open: list[tuple[str, str]] = []
        self._blank = False
        #: Whether the client marks prompts.
        self._marked = False
        #: What may be the beginning of a prompt: the next line tells.
        self._held: str | None = None
        #: Inside of what a person typed nothing begins.
        self._typed = False

    def take(self, line: str) -> Iterator[bytes]:
        if self._held is not None:
            held, self._held = self._held, None
            self._marked = self._marked or line.startswith(_MARK)
            if line.startswith(_MARK) or self._may_speak():
                yield from self._begin("user")
            else:
                self._add(held)
        blank, self._blank = self._blank, not line.strip()
        user, assistant, part = _USER.fullmatch(line), _ASSISTANT.fullmatch(line), _PART.match(line)
        if self._typed:
            self._add(line)
        elif user is not None and not user[1]:
            self._held = line
        elif user is not None and self._may_speak():
            yield from self._begin("user")
            self._add(user[1])
        elif assistant is not None and (blank or self._kind != "Tool result"):
            yield from self._begin("assistant")
            self._add(assistant[1])
        elif part is not None and self._kind != "user":
            yield from self._begin(part[1], part[2].strip())
            if part[1] != "Tool call":
                self._add("" if part[1] == "Tool result" else part[2])
        else:
            self._add(line)

    def _may_speak(self) -> bool:
        """Whether a person may speak here without a mark."""
        return not self._marked and self._kind != "Tool result"

    def end(self) -> Iterator[bytes]:
        """The last part."""
        if self._held is not None:
            self._add(self._held)
        yield from self._begin("")

    def _begin(self, kind: str, name: str = "") -> Iterator[bytes]:
        text = "\n".join(self._text).strip()
        match self._kind:
            case "user" | "assistant" if text:
                yield _line(self._kind, {"type": "text", "text": text})
            case "Tool call":
                block = {"type": "tool_use", "id": self._called(), "name": self._name, "input": _arguments(self._text)}
                yield _line("assistant", block)
            case "Tool result":
                yield _line("user", {"type": "tool_result", "tool_use_id": self._answered(), "content": text})
        self._kind, self._name, self._text, self._chars, self._typed = kind, name, [], 0, False

    def _add(self, line: str) -> None:
        if self._kind == "user":
            opened, closed = line.rfind("<user_query>"), line.rfind("</user_query>")
            self._typed = opened > closed if opened >= 0 or closed >= 0 else self._typed
        self._chars += len(line) + 1
        if self._chars <= _MAX_PART_CHARS:
            self._text.append(line)

    def _called(self) -> str:
        self._calls += 1
        self._open.append((self._name, f"call-{self._calls}"))
        del self._open[:-_OPEN_CALLS]
        return self._open[-1][1]

    def _answered(self) -> str:
        """Results come in the order of their calls, with the same names."""
        place = next((place for place, (name, _) in enumerate(self._open) if name == self._name), 0)
        return self._open.pop(place)[1] if self._open else ""


def _arguments(lines: list[str]) -> dict[str, str]:
    """The fields of a call; a line that begins none goes on with the last one."""
    given: dict[str, list[str]] = {}
    values: list[str] = []
    for line in lines:
        if (match := _ARGUMENT.fullmatch(line)) is not None:
            values = given.setdefault(match[1], [])
            line = match[2]
        values.append(line)
    return {name: "\n".join(value).strip() for name, value in given.items()}


def _line(role: str, block: dict[str, Any]) -> bytes:
    return _encode({"role": role, "message": {"content": [block]}}) + b"\n"
