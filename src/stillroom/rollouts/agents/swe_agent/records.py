"""Messages of SWE-agent and mini-swe-agent as the items that memory keeps.

Both call nearly all that they send to the model the user's: the task, what commands printed, and complaints about the
form of an answer. Only in mini-swe-agent's interactive agent a person may have typed something.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.chat_parts import ChatDecoder, Message, role_of, when
from stillroom.rollouts.agents.decoder import number_of, text_of
from stillroom.rollouts.agents.made import Made, said_by_agent, said_by_assistant
from stillroom.rollouts.stats import ReadStats

_BY_USER = re.compile(
    r"\s*(?:Command not executed\. The user rejected your command with the following message:|Interrupted by user:"
    r"|The user added a new task:)\s*"
)
# What was asked for in place of a call, ahead of version 2.
_FENCED = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_OBSERVED = ("<returncode>", "OBSERVATION:", "Observation:")
_TASK = re.compile(r"\{\{-?\s*(?:task|problem_statement)\s*-?\}\}")
_MARKS = re.compile(r"\{\{|\}\}|\{%|%\}|…")
# As much of a template's words beside the task finds the place.
_BESIDE_CHARS = 60


class _Action(msgspec.Struct):
    command: Any = None


class _Extra(msgspec.Struct):
    interrupt_type: Any = None
    actions: list[_Action] = []
    returncode: Any = None
    raw_output: Any = None
    timestamp: Any = None


class _Entry(Message):
    extra: _Extra | None = None
    message_type: Any = None
    is_demo: Any = None
    thought: Any = None
    action: Any = None
    tool_call_ids: list[Any] | None = None
    #: Ours: how the run ended, put behind its messages.
    outcome: Any = None


_entry = msgspec.json.Decoder(_Entry)


class Records(ChatDecoder):
    """Decodes messages, one a line. `template` is what the task was put into, `of_person` whether a person typed it."""

    def __init__(
        self, stats: ReadStats, *, of_person: bool, template: str, cwd: str | None, reading: Reading = READING
    ) -> None:
        super().__init__(stats, of_agent=not of_person, cwd=cwd, reading=reading)
        self._template = template
        self._asked = False

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a message."""
        entry = _entry.decode(line)
        return when(entry.extra.timestamp) if entry.extra is not None else None, self._made(entry)

    def _made(self, entry: _Entry) -> Iterator[Made]:
        if entry.is_demo is True:
            self.stats.drop("demonstration")
        elif entry.outcome is not None:
            yield said_by_agent(text_of(entry.outcome))
        elif entry.role == "exit":
            self.stats.drop("written by the client")
        else:
            match role_of(entry):
                case "user":
                    yield from self._user(entry)
                case "assistant":
                    yield from self._assistant(entry)
                case "tool":
                    yield from self._observation(entry)
                case _:
                    yield from self.message(entry)

    def _user(self, entry: _Entry) -> Iterator[Made]:
        text = "\n".join(self.texts(entry))
        told = entry.extra or _Extra()
        if told.interrupt_type is None and not self._asked:
            self._asked = True
            yield from self.prompt(task_in(text, self._template), of_agent=self._of_agent)
        elif entry.message_type == "observation" or told.raw_output is not None or text.startswith(_OBSERVED):
            yield from self._observation(entry)
        elif not self._of_agent and (typed := _BY_USER.match(text)):
            yield from self.prompt(text[typed.end() :], of_agent=False)
        else:
            self.stats.drop("written by the client")

    def _assistant(self, entry: _Entry) -> Iterator[Made]:
        if entry.tool_calls:
            yield from self.answer(entry)
            return
        text = text_of(entry.thought) or "\n".join(self.texts(entry))
        if text.strip():
            yield said_by_assistant(text)
        commands = [text_of(action.command) for action in entry.extra.actions] if entry.extra is not None else []
        for command in commands or [text_of(entry.action)] if commands or entry.action else _FENCED.findall(text)[:1]:
            if command.strip():
                yield from self.call("", "bash", msgspec.json.encode({"command": command}))

    def _observation(self, entry: _Entry) -> Iterator[Made]:
        ids = entry.tool_call_ids or [entry.tool_call_id]
        told = entry.extra or _Extra()
        text = text_of(told.raw_output) or "\n".join(self.texts(entry)).removeprefix("OBSERVATION:\n")
        yield from self.result(text_of(ids[0]), text, failed=None, exit_code=number_of(told.returncode))


def task_in(text: str, template: str) -> str:
    """The task in a first message that was made of a template; all of the message where the template does not fit."""
    place = _TASK.search(template)
    if place is None:
        return text
    before = _MARKS.split(template[: place.start()])[-1][-_BESIDE_CHARS:].strip()
    behind = _MARKS.split(template[place.end() :])[0].strip()[:_BESIDE_CHARS].strip()
    start = text.find(before)
    if start < 0:
        return text
    start += len(before)
    end = text.find(behind, start) if behind else len(text)
    return text[start : end if end >= 0 else len(text)].strip()
