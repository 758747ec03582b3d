"""Aider's messages as the items that memory keeps. The client stores no output of a command, and names no calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.aider.blocks import Kind
from stillroom.rollouts.agents.aider.inputs import Inputs
from stillroom.rollouts.agents.decoder import LineDecoder
from stillroom.rollouts.agents.made import (
    Made,
    function_call,
    output,
    patch_call,
    run_by_user,
    said_by_assistant,
    said_by_user,
    update_patch,
)
from stillroom.rollouts.agents.scaffolding import without_blocks
from stillroom.rollouts.stats import ReadStats

# With these a person talks to the model; all other commands steer the client.
_SPOKEN = frozenset({"ask", "architect", "chat-mode", "code", "context"})
_SHELLS = frozenset({"run", "test", "git"})
_COMMAND = re.compile(r"(?:/([a-z][a-z-]{0,30})|(!))(?:\s+|(?<=!)|\Z)(.*)", re.DOTALL)
_CONFIRMED = re.compile(r".{0,2000}\(Y\)es/\(N\)o.{0,80}\]: ?[\w']{0,20}", re.DOTALL)
_DONE = re.compile(r"(Applied edit to|Commit|Running|Removed:) (.+)", re.DOTALL)
_VERSION = re.compile(r"Aider v(\S{1,40})")
_SCRIPTED = re.compile(r"\s(?:--message|--msg|-m|--message-file|-f)[\s=]")
_NOT_STORED = "(the client stores no output)"
_THINKING = r"thinking-content-[0-9a-f]{1,64}|think"


class _Message(msgspec.Struct):
    kind: Kind
    text: str


_message = msgspec.json.Decoder(_Message)


class Records(LineDecoder):
    """Decodes the lines that `blocks.lines` makes of a chat, which began at `started_ms`; `inputs` were typed in it."""

    def __init__(
        self, stats: ReadStats, *, started_ms: int | None, cwd: str, inputs: Inputs, reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._at = started_ms
        self._cwd = cwd
        self.inputs = inputs
        self._sent = ""  # what the client may send by itself next, without blanks
        self._number = 0
        #: What the client says of itself ahead of the talk.
        self.version: str | None = None
        self.scripted = False

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a message."""
        read = _message.decode(line)
        self._number += 1
        made = list(self._made(read.kind, read.text.strip()))
        return self._at, made

    def _made(self, kind: Kind, text: str) -> Iterator[Made]:
        if kind == "user":
            yield from self._prompt(text)
        elif kind == "client":
            yield from self._told(text)
        elif answer := without_blocks(text, _THINKING).strip():
            self._sent = _squeezed(answer)
            yield said_by_assistant(answer)

    def _prompt(self, text: str) -> Iterator[Made]:
        if text == "<blank>" or _CONFIRMED.fullmatch(text):
            self.stats.drop("written by the client")
            return
        sent, self._sent = self._sent, ""
        typed = self.inputs.typed_at(text)
        if (self.inputs and typed is None) or _squeezed(text) == sent:
            self.stats.drop("sent by the client")
            return
        self._at = typed or self._at
        command = _COMMAND.fullmatch(text)
        name, words = (command[1] or "run", command[3].strip()) if command else ("", text)
        if name in _SHELLS and words:
            yield run_by_user(f"git {words}" if name == "git" else words, _NOT_STORED)
        elif words and (not name or name in _SPOKEN):
            self._sent = _squeezed(words) if name else ""
            yield said_by_user(words)
        else:
            self.stats.drop("command of the client")

    def _told(self, text: str) -> Iterator[Made]:
        if self._number == 1:
            # The command line, which may hold a key.
            self.scripted = _SCRIPTED.search(text) is not None
        elif (done := _DONE.fullmatch(text)) is not None:
            yield from self._done(done[1], done[2])
            return
        elif version := _VERSION.fullmatch(text):
            self.version = version[1]
        self.stats.drop("written by the client")

    def _done(self, what: str, of: str) -> Iterator[Made]:
        """What the client did, as the calls that it was: to all of them its word is the only witness."""
        call_id = str(self._number)
        match what:
            case "Applied edit to":
                call = patch_call(update_patch(of, [], cwd=self._cwd), call_id)
                yield call
                yield output(call, call_id, "", ok=True)
            case "Commit":
                call = function_call("commit", msgspec.json.encode({"message": of.partition(" ")[2]}), call_id)
                yield call
                yield output(call, call_id, of, ok=True)
            case "Running":
                call = function_call("shell", msgspec.json.encode({"command": of}), call_id)
                yield call
                yield output(call, call_id, _NOT_STORED, ok=None)
            case _:
                yield run_by_user("/undo", f"{what} {of}")


def _squeezed(text: str) -> str:
    return "".join(text.split())
