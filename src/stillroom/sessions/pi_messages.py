"""Messages as the library of the pi agent stores them, which other clients use too: texts, calls, results."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from stillroom.sessions.conversation import ConversationDecoder, number_of, text_of
from stillroom.sessions.normalize import (
    NormalizedItem,
    output,
    run_by_user,
    said_by_agent,
    said_by_assistant,
    stopped_by_user,
)
from stillroom.sessions.scaffolding import finding_of, is_notification, steers_client, without_blocks
from stillroom.sessions.tools import is_shell, read_call, read_result

_SUMMARIES = frozenset({"branchSummary", "compactionSummary"})
_OF_THE_CLIENT = frozenset({"custom", "developer", "fileMention", "hookMessage", "system"})


class Block(msgspec.Struct):
    """A part of a message, of any kind."""

    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class Message(msgspec.Struct, rename="camel"):
    """A message, of any role."""

    role: Any = None
    content: list[Block] | str | None = None
    timestamp: Any = None
    stop_reason: Any = None
    tool_call_id: Any = None
    tool_name: Any = None
    is_error: Any = None
    #: Of a command that the user ran in the client's shell.
    command: Any = None
    code: Any = None
    output: Any = None


class Shell(NamedTuple):
    """What a command's result tells."""

    output: str
    exit_code: int | None


class MessageDecoder(ConversationDecoder):
    """Decodes lines that hold such messages. A client says what it puts around a prompt and around an output."""

    #: The pattern of the tags that the client puts into prompts.
    scaffolding: str

    @abstractmethod
    def shell(self, text: str, *, failed: bool) -> Shell:
        """A command's output without the client's words, and its exit code as far as these tell."""

    def of_message(self, message: Message, key: str) -> Iterator[NormalizedItem]:
        """The items of a message, whose record has this key."""
        match text_of(message.role):
            case "user":
                yield from self._user(message, key)
            case "assistant":
                yield from self._answer(message)
            case "toolResult":
                yield from self._result(message)
            case "bashExecution" | "pythonExecution":
                yield run_by_user(text_of(message.command) or text_of(message.code), text_of(message.output))
            case role if role in _SUMMARIES:
                self.stats.drop("compaction summary")
            case role if role in _OF_THE_CLIENT:
                self.stats.drop("written by the client")
            case role:
                self.stats.count_unknown(f"message/{role}")

    def words(self, message: Message) -> list[str]:
        """What is said in a prompt, without what the client put beside it."""
        texts = (without_blocks(text, self.scaffolding) for text in texts_of(message))
        return [text for text in texts if text.strip()]

    def _user(self, message: Message, key: str) -> Iterator[NormalizedItem]:
        self.stats.images += sum(block.type == "image" for block in _blocks(message))
        words = self.words(message)
        joined = "\n".join(words)
        if is_notification(joined):
            yield from map(said_by_agent, filter(None, [finding_of(joined)]))
        elif not words:
            self.stats.drop("nothing said")
        elif steers_client(joined):
            self.stats.drop("command to the client")
        else:
            yield from self.prompt(key, *words)

    def _answer(self, message: Message) -> Iterator[NormalizedItem]:
        if isinstance(message.content, str):
            yield from map(said_by_assistant, filter(str.strip, [message.content]))
        for block in _blocks(message):
            if block.type == "text" and (text := text_of(block.text)).strip():
                yield said_by_assistant(text)
            elif block.type == "toolCall":
                call_id = text_of(block.id)
                if call_id and self.is_new(f"call {call_id}"):
                    call = read_call(text_of(block.name), bytes(block.arguments), call_id=call_id, cwd=self.cwd)
                    yield self.called(call_id, call)
        if message.stop_reason == "aborted":
            yield stopped_by_user()

    def _result(self, message: Message) -> Iterator[NormalizedItem]:
        call_id = text_of(message.tool_call_id)
        if not call_id or not self.is_new(f"result {call_id}"):
            return
        self.stats.images += sum(block.type == "image" for block in _blocks(message))
        call, text, failed = self.call_of(call_id), "\n".join(texts_of(message)), message.is_error is True
        if is_shell(message.tool_name):
            told = self.shell(text, failed=failed)
            yield output(call, call_id, told.output, exit_code=told.exit_code, ok=False if failed else None)
        else:
            yield read_result(call, text, call_id=call_id, failed=failed)


def texts_of(message: Message) -> Iterable[str]:
    """The texts of a message, in whichever form they are stored."""
    if isinstance(message.content, str):
        return [message.content]
    return [text_of(block.text) for block in _blocks(message) if block.type == "text"]


def sent_at(message: Message) -> int | None:
    """When a message was sent, in milliseconds."""
    return number_of(message.timestamp)


def _blocks(message: Message) -> list[Block]:
    return message.content if isinstance(message.content, list) else []
