"""The records of Kimi Code's wire as the items that memory keeps.

The wire tells everything twice: as what was put into the context (`context.…`), and as events for whoever watches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.sessions.conversation import NOTHING, ConversationDecoder, Past, number_of, text_of
from stillroom.sessions.normalize import (
    NormalizedItem,
    output,
    run_by_user,
    said_by_agent,
    said_by_assistant,
    said_by_user,
    stopped_by_user,
)
from stillroom.sessions.scaffolding import steers_client, without_blocks
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.tools import calls_shell, read_call, read_result

# --- What Kimi Code stores, and its predecessor stored: messages, who is behind them, and results.

_EXITED = re.compile(r"\n?Command failed with exit code: (-?\d{1,10})\.\s*\Z")
_IN_BACKGROUND = "task_id: "
_END_CHARS = 200


class Part(msgspec.Struct):
    """A part of a message, of any kind."""

    type: Any = None
    text: Any = None


class Origin(msgspec.Struct, rename="camel"):
    """Who is behind a message in the user's place."""

    kind: Any = None
    trigger: Any = None
    phase: Any = None
    skill_name: Any = None
    skill_args: Any = None
    command_name: Any = None
    command_args: Any = None


class Function(msgspec.Struct):
    """What is called, where a call names it apart."""

    name: Any = None
    arguments: Any = None


class Call(msgspec.Struct):
    """A call, in the message that asks for it."""

    id: Any = None
    name: Any = None
    arguments: Any = None
    function: Function | None = None


class Message(msgspec.Struct):
    """A message, of any role."""

    role: Any = None
    content: list[Part] | str | None = None
    id: Any = None
    origin: Origin | None = None
    calls: list[Call] | None = msgspec.field(default=None, name="toolCalls")
    call_id: Any = msgspec.field(default=None, name="toolCallId")
    is_error: Any = msgspec.field(default=None, name="isError")


class Ended(NamedTuple):
    """What a command's result tells."""

    output: str
    exit_code: int | None


def texts_of(content: Any) -> list[str]:
    """The texts of a message or of a result, in whichever form they are stored."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [text for part in parts if isinstance(part, Part) and part.type == "text" and (text := text_of(part.text))]


def is_prompt(origin: Origin | None) -> bool:
    """Whether a person typed it, or a command that stands for it."""
    if origin is None or origin.kind in (None, "user"):
        return True
    return origin.kind in ("skill_activation", "plugin_command") and origin.trigger in (None, "user-slash")


def command_of(origin: Origin) -> str:
    """The slash command that a person typed; "" if they typed none."""
    name = text_of(origin.skill_name) or text_of(origin.command_name)
    given = text_of(origin.skill_args) or text_of(origin.command_args)
    return f"/{name} {given}".rstrip() if name else ""


def called_of(call: Call) -> tuple[str, bytes]:
    """The tool and the JSON text of its arguments."""
    named = call.function or Function(call.name, call.arguments)
    return text_of(named.name), text_of(named.arguments).encode("utf-8", "replace") or b"{}"


def ended(text: str, *, failed: bool) -> Ended:
    """The exit code stands behind the output of a command that failed; of one that was stopped there is none."""
    if not failed:
        return Ended(text, None if text.startswith(_IN_BACKGROUND) else 0)
    match = _EXITED.search(text, max(len(text) - _END_CHARS, 0))
    return Ended(text[: match.start()], int(match[1])) if match else Ended(text, None)


# --- The records of Kimi Code's wire, as far as they are read.


class Result(msgspec.Struct):
    """How a call ended."""

    output: list[Part] | str | None = None
    is_error: Any = msgspec.field(default=None, name="isError")


class Event(msgspec.Struct, rename="camel"):
    """What happened in a turn, of any kind."""

    type: Any = None
    uuid: Any = None
    tool_call_id: Any = None
    name: Any = None
    args: msgspec.Raw = msgspec.Raw(b"{}")
    part: Part | None = None
    result: Result | None = None


class Decision(msgspec.Struct):
    """What a person decided of a call."""

    decision: Any = None
    feedback: Any = None


class Head(msgspec.Struct):
    """What every record has."""

    type: Any = None
    kind: Any = None
    time: Any = None


class Appended(msgspec.Struct):
    """A `context.append_message`."""

    message: Message = msgspec.field(default_factory=Message)


class LoopEvent(msgspec.Struct):
    """A `context.append_loop_event`."""

    event: Event = msgspec.field(default_factory=Event)


class Approval(msgspec.Struct, rename="camel"):
    """A `permission.record_approval_result`."""

    tool_call_id: Any = None
    result: Decision = msgspec.field(default_factory=Decision)


class Cancel(msgspec.Struct):
    """A `turn.cancel`."""

    target: Any = None
    reason: Any = None


head_of = msgspec.json.Decoder(Head).decode
appended_of = msgspec.json.Decoder(Appended).decode
loop_event_of = msgspec.json.Decoder(LoopEvent).decode
approval_of = msgspec.json.Decoder(Approval).decode
cancel_of = msgspec.json.Decoder(Cancel).decode


# --- Sessions

_SCAFFOLDING = "system-reminder|hook_result|kimi-skill-loaded"
# What was taken over from the client's predecessor has no origins, and its words to the model have this tag.
_OLD_SCAFFOLDING = f"{_SCAFFOLDING}|system"
_OF_THE_CLIENT = frozenset({"cron_job", "cron_missed", "hook_result", "injection", "retry", "system_trigger"})
_SKILLS = frozenset({"skill_activation", "plugin_command"})
_TASKS = frozenset({"background_task", "task"})
_TASK_TAGS = re.compile(r"</?(?:task-)?notification\b[^>]{0,1000}>")
_SHELL_TAGS = re.compile(r"</?bash-[a-z]{1,20}>")
# Nothing in these records was said or done. More with these beginnings come with every version.
_NOISE_NAMES = """
    agent. background. config. context.clear context.undo file_history. full_compaction. goal. interaction. llm. mcp.
    metadata micro_compaction. permission. plan plugin. profile. prompt. runtime. skill. step. subagent. swarm_mode.
    task. todo token_counting. tools. tower_mode. turn. usage.
"""
_NOISE = tuple(_NOISE_NAMES.split())
_MATTER = ("permission.record_approval_result", "turn.cancel")
_START = re.compile(rb'\{"type": ?"([\w.]{1,80})"')


class Records(ConversationDecoder):
    """Decodes the lines of one agent's wire. Prompts that were undone are known by the keys of their messages; what
    stands ahead of the last of `forks` marks is another session's."""

    def __init__(
        self,
        stats: ReadStats,
        *,
        of_agent: bool = False,
        cwd: str | None = None,
        past: Past = NOTHING,
        forks: int = 0,
        reading: Reading = READING,
    ) -> None:
        super().__init__(stats, of_agent=of_agent, cwd=cwd, past=past, reading=reading)
        self._forks = forks
        self._command = ""

    def may_matter(self, beginning: bytes) -> bool:
        """False of records that say with their first field that they don't."""
        start = _START.match(beginning)
        return start is None or _may_matter(start[1].decode())

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a record."""
        head = head_of(line)
        kind = text_of(head.type)
        if head.kind == "event" or not _may_matter(kind):
            return None, ()
        if kind == "forked":
            self._forks -= 1
            return None, ()
        if self._forks > 0:
            self.stats.drop("seen before")
            return None, ()
        return number_of(head.time), self._made(kind, line)

    def _made(self, kind: str, line: bytes) -> Iterator[NormalizedItem]:
        match kind:
            case "context.append_message":
                message = appended_of(line).message
                if self.is_new(key_of(message, line)):
                    yield from self._message(message, line)
            case "context.append_loop_event":
                yield from self._event(loop_event_of(line).event)
            case "context.apply_compaction":
                self.stats.drop("compaction summary")
            case "permission.record_approval_result":
                yield from self._approval(approval_of(line))
            case "turn.cancel":
                cancel = cancel_of(line)
                if cancel.target in (None, "active") and cancel.reason in (None, "user_cancelled"):
                    yield stopped_by_user()
            case _:
                self.stats.count_unknown(kind or "line")

    def _message(self, message: Message, line: bytes) -> Iterator[NormalizedItem]:
        match message.role:
            case "user":
                yield from self._user(message, line)
            case "assistant":
                for text in texts_of(message.content):
                    if text.strip():
                        yield said_by_assistant(text)
                for call in message.calls or ():
                    yield from self._call(call)
            case "tool":
                yield from self._ended(message.call_id, message.content, failed=message.is_error is True)
            case role:
                self.stats.count_unknown(f"message/{role}")

    def _user(self, message: Message, line: bytes) -> Iterator[NormalizedItem]:
        origin = message.origin
        kind = text_of(origin.kind) if origin is not None else ""
        joined = "\n".join(words_of(message))
        if origin is not None and kind in _SKILLS:
            joined = command_of(origin)
        elif steers_client(joined):
            self.stats.drop("command to the client")
            return
        if is_prompt(origin) or (self.of_agent and kind == "system_trigger"):
            if joined.strip():
                yield from self.prompt(key_of(message, line), joined)
            else:
                self.stats.drop("nothing said")
        elif kind in _TASKS:
            yield from map(said_by_agent, filter(None, [_TASK_TAGS.sub("", joined).strip()]))
        elif origin is not None and kind == "shell_command":
            yield from self._shell(_SHELL_TAGS.sub("", joined), is_output=origin.phase == "output")
        elif kind == "compaction_summary":
            self.stats.drop("compaction summary")
        elif kind in _OF_THE_CLIENT or kind in _SKILLS:
            self.stats.drop("written by the client")
        else:
            self.stats.count_unknown(f"origin/{kind}")

    def _shell(self, text: str, *, is_output: bool) -> Iterator[NormalizedItem]:
        """What a person ran in the client's shell: the command comes first, in a message of its own."""
        if is_output:
            yield run_by_user(self._command, text)
        self._command = "" if is_output else text

    def _event(self, event: Event) -> Iterator[NormalizedItem]:
        match event.type:
            case "content.part":
                text = text_of(event.part.text) if event.part is not None and event.part.type == "text" else ""
                if text.strip() and self.is_new(f"part {event.uuid}"):
                    yield said_by_assistant(text)
            case "tool.call":
                call_id = text_of(event.tool_call_id)
                if call_id and self.is_new(f"call {call_id}"):
                    call = read_call(text_of(event.name), bytes(event.args), call_id=call_id, cwd=self.cwd)
                    yield self.called(call_id, call)
            case "tool.result":
                result = event.result or Result()
                yield from self._ended(event.tool_call_id, result.output, failed=result.is_error is True)
            case "step.begin" | "step.end":
                pass
            case kind:
                self.stats.count_unknown(f"event/{kind}")

    def _call(self, call: Call) -> Iterator[NormalizedItem]:
        call_id = text_of(call.id)
        if call_id and self.is_new(f"call {call_id}"):
            name, given = called_of(call)
            yield self.called(call_id, read_call(name, given, call_id=call_id, cwd=self.cwd))

    def _ended(self, call_id: Any, content: Any, *, failed: bool) -> Iterator[NormalizedItem]:
        call_id = text_of(call_id)
        if not call_id or not self.is_new(f"result {call_id}"):
            return
        call, text = self.call_of(call_id), "\n".join(texts_of(content))
        if calls_shell(call):
            told = ended(text, failed=failed)
            yield output(call, call_id, told.output, exit_code=told.exit_code, ok=False if failed else None)
        else:
            yield read_result(call, text, call_id=call_id, failed=failed)

    def _approval(self, told: Approval) -> Iterator[NormalizedItem]:
        """Why a person refused a call, in their words."""
        feedback = text_of(told.result.feedback)
        if feedback.strip() and told.result.decision == "rejected" and self.is_new(f"refusal {told.tool_call_id}"):
            yield said_by_agent(feedback) if self.of_agent else said_by_user(feedback)


def key_of(message: Message, line: bytes) -> str:
    """What tells a message from all others: its id, or its whole record, which has its time."""
    return f"message {message.id}" if isinstance(message.id, str) else str(hash(line.rstrip()))


def words_of(message: Message) -> list[str]:
    """What is said in a message, without what the client put beside it."""
    tags = _SCAFFOLDING if message.origin is not None else _OLD_SCAFFOLDING
    return [text for part in texts_of(message.content) if (text := without_blocks(part, tags)).strip()]


def _may_matter(kind: str) -> bool:
    return kind in _MATTER or not kind.startswith(_NOISE)
