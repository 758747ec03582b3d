"""Messages as the APIs of models take them, which many programs store: OpenAI's, Anthropic's blocks, and ShareGPT's."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.sessions.calls import Call
from stillroom.sessions.calls import read_call as read_asked
from stillroom.sessions.conversation import LineDecoder, text_of, time_of
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.normalize import (
    NormalizedItem,
    add_patch,
    function_call,
    output,
    patch_call,
    said_by_agent,
    said_by_assistant,
    said_by_user,
    update_patch,
    web_call,
)
from stillroom.sessions.scaffolding import typed
from stillroom.sessions.stats import ReadStats

Role = Literal["user", "assistant", "system", "tool", "call"]
_NAMES: Mapping[str, Role] = MappingProxyType(
    {
        **dict.fromkeys(("user", "human"), "user"),
        **dict.fromkeys(("assistant", "gpt", "chatgpt", "bot", "model", "ai"), "assistant"),
        **dict.fromkeys(("system", "developer"), "system"),
        **dict.fromkeys(("tool", "function", "observation", "function_response", "tool_response"), "tool"),
        **dict.fromkeys(("function_call", "tool_call"), "call"),
    }
)
_TEXTS = frozenset({"text", "input_text", "output_text"})
_IMAGES = frozenset({"image", "image_url", "input_image"})
_PASSED_OVER = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "refusal", "audio", "video", "document", "file"}
)
_PASSED_OVER_TOO = frozenset({"input_audio", "input_file", "data", "server_tool_use", "web_search_tool_result"})
_WEB = frozenset({"websearch", "webfetch", "searchweb", "fetchurl", "browse", "openurl"})
_EDITORS = ("edit", "replace", "write", "create", "patch")
# Where programs write how a command ended: ahead of its output, or behind it.
_CODE_AHEAD = re.compile(r"\s*(?:<returncode>(-?\d{1,10})</returncode>|Exit code:? (-?\d{1,10})(?![^\n]))\s*")
_CODE_BEHIND = re.compile(
    r"\s*\[?(?:The command completed|Command exited|Command finished|Process exited) with (?:exit )?code:? (-?\d{1,10})"
    r"[.\]]{0,2}[^\n]{0,200}\s*\Z"
)
_BEHIND_CHARS = 300
_OUTPUT = re.compile(r"<output>\n?(.*)</output>\s*", re.DOTALL)
# Programs that give calls no ids make one at a time.
_WAITING_CALLS = 1000
# Seconds since 1970 stay below it for millennia, milliseconds have been above it since 1973.
_FIRST_MILLISECOND = 100_000_000_000


class Function(msgspec.Struct):
    """What a call names."""

    name: Any = None
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class ToolCall(msgspec.Struct):
    """A call, in OpenAI's form or, with a name instead of a function, in that of others."""

    id: Any = None
    function: Function | str | None = None
    name: Any = None
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class Block(msgspec.Struct):
    """A part of a message, of any kind."""

    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: Any = None
    content: Any = None
    is_error: Any = None


Content = str | list[Block | str] | None


class Message(msgspec.Struct):
    """A message in any of the forms."""

    role: Any = None
    content: Content = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    tool_call_id: Any = None
    sender: Any = msgspec.field(default=None, name="from")
    value: Any = None
    timestamp: Any = None
    created_at: Any = None


class Shell(NamedTuple):
    """What a command's result tells."""

    output: str
    exit_code: int | None


_message = msgspec.json.Decoder(Message)
_called = msgspec.json.Decoder(Call)


class ChatDecoder(LineDecoder):
    """Decodes messages, one a line. `of_agent`: who is called the user is no person. `names_failures`: of a command
    that did not fail no exit code is written down."""

    def __init__(
        self,
        stats: ReadStats,
        *,
        of_agent: bool = False,
        names_failures: bool = False,
        cwd: str | None = None,
        reading: Reading = READING,
    ) -> None:
        super().__init__(stats, reading=reading)
        self._of_agent = of_agent
        self._names_failures = names_failures
        self._cwd = cwd
        self._unnamed = 0
        self._waiting: deque[str] = deque(maxlen=_WAITING_CALLS)  # calls that the program gave no id

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message."""
        message = _message.decode(line)
        return when(message.timestamp if message.timestamp is not None else message.created_at), self.message(message)

    def message(self, message: Message) -> Iterator[NormalizedItem]:
        """The items of a message, whoever it is from."""
        match role_of(message):
            case "user":
                yield from self.results(message)
                yield from self.prompt(*self.texts(message), of_agent=self._of_agent)
            case "assistant":
                yield from self.answer(message)
            case "tool":
                yield from self._result(message)
            case "call":
                yield from self._calls_in_text(message)
            case "system":
                self.stats.drop("system prompt")
            case None:
                self.stats.count_unknown(f"message/{message.role if message.role is not None else message.sender}")

    def prompt(self, *texts: str, of_agent: bool) -> Iterator[NormalizedItem]:
        """What was asked for, without what clients put beside it."""
        words = [words for text in texts if (words := typed(text))]
        if not words:
            if texts:
                self.stats.drop("nothing said")
        elif of_agent:
            yield said_by_agent("\n".join(words))
        else:
            yield said_by_user(*words)

    def answer(self, message: Message) -> Iterator[NormalizedItem]:
        """What the assistant said, and its calls."""
        if text := "\n".join(text for text in self.texts(message) if text.strip()):
            yield said_by_assistant(text)
        for block in blocks(message.content):
            if block.type == "tool_use":
                yield from self.call(text_of(block.id), text_of(block.name), bytes(block.input))
        for call in message.tool_calls or ():
            if isinstance(call.function, Function):
                yield from self.call(text_of(call.id), text_of(call.function.name), bytes(call.function.arguments))
            else:
                yield from self.call(text_of(call.id), call.function or text_of(call.name), bytes(call.arguments))
        if message.function_call is not None:
            asked = message.function_call
            yield from self.call("", text_of(asked.name), bytes(asked.arguments))

    def call(self, call_id: str, name: str, arguments: bytes) -> Iterator[NormalizedItem]:
        """A call, once. One without an id gets one, by which the next result without an id finds it."""
        if not call_id:
            self._unnamed += 1
            call_id = f"call-{self._unnamed}"
            self._waiting.append(call_id)
        if name and self.is_new(f"call {call_id}"):
            yield self.called(call_id, read_call(name, plain_arguments(arguments), call_id=call_id, cwd=self._cwd))

    def result(
        self, call_id: str, text: str, *, failed: bool | None, exit_code: int | None = None
    ) -> Iterator[NormalizedItem]:
        """How a call ended, once. `failed` and `exit_code` as the program says it, None where it does not."""
        if not call_id:
            self._unnamed += not self._waiting
            call_id = self._waiting.popleft() if self._waiting else f"call-{self._unnamed}"
        if self.is_new(f"result {call_id}"):
            call = self.call_of(call_id)
            if exit_code is not None:
                yield output(call, call_id, text, exit_code=exit_code, ok=None)
            else:
                yield read_result(call, text, call_id=call_id, failed=failed, names_failures=self._names_failures)

    def results(self, message: Message) -> Iterator[NormalizedItem]:
        """The results that stand in a message of Anthropic's form."""
        for block in blocks(message.content):
            if block.type == "tool_result":
                failed = block.is_error is True
                yield from self.result(text_of(block.tool_use_id), inner_text(block.content), failed=failed)

    def texts(self, message: Message) -> list[str]:
        """What is said in a message; what else there is of it is counted."""
        if message.content is None and message.value is not None:
            return [text_of(message.value)]
        texts: list[str] = []
        for block in blocks(message.content):
            if block.type in _TEXTS:
                texts.append(text_of(block.text))
            elif block.type in _IMAGES:
                self.stats.images += 1
            elif block.type not in ("tool_use", "tool_result") and block.type not in _PASSED_OVER | _PASSED_OVER_TOO:
                self.stats.count_unknown(f"block/{block.type}")
        return texts

    def _result(self, message: Message) -> Iterator[NormalizedItem]:
        yield from self.result(text_of(message.tool_call_id), "\n".join(self.texts(message)), failed=None)

    def _calls_in_text(self, message: Message) -> Iterator[NormalizedItem]:
        try:
            asked = msgspec.json.decode("\n".join(self.texts(message)), type=Function)
        except UNREADABLE:
            self.stats.count_unknown("call")
            return
        yield from self.call("", text_of(asked.name), bytes(asked.arguments))


def role_of(message: Message) -> Role | None:
    """Who a message is from; None: nobody that is known."""
    return _NAMES.get(text_of(message.role) or text_of(message.sender))


def is_message(line: bytes) -> bool:
    """Whether a line is a message of any of the forms."""
    try:
        return role_of(_message.decode(line)) is not None
    except UNREADABLE:
        return False


def blocks(content: Content) -> Iterator[Block]:
    """The parts of a message's content, in whichever form."""
    for block in [content] if isinstance(content, str) else content or ():
        yield Block(type="text", text=block) if isinstance(block, str) else block


def inner_text(content: Any) -> str:
    """The text of a result: one, or parts."""
    if isinstance(content, str):
        return content
    parts: list[Any] = content if isinstance(content, list) else []
    return "\n".join(text_of(part.get("text")) if isinstance(part, dict) else text_of(part) for part in parts)


def when(value: Any) -> int | None:
    """A time in milliseconds, from a text, or from seconds or milliseconds since 1970."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _FIRST_MILLISECOND * 1000:
        return round(value * 1000 if value < _FIRST_MILLISECOND else value)
    return time_of(value)


def plain_arguments(raw: bytes) -> bytes:
    """A call's arguments as JSON: some programs store them as a text with JSON in it."""
    try:
        if raw.startswith(b'"'):
            return msgspec.json.decode(raw, type=str).encode()
        return msgspec.json.format(raw, indent=-1)
    except UNREADABLE:
        return raw


# --- calls


class _Arguments(msgspec.Struct):
    path: str | None = None
    file_path: str | None = None
    filename: str | None = None
    old_string: str | None = None
    old_str: str | None = None
    new_string: str | None = None
    new_str: str | None = None
    content: str | None = None
    file_text: str | None = None
    input: str | None = None
    patch: str | None = None
    url: str | None = None
    query: str | None = None
    keystrokes: str | None = None
    command: Any = None


_arguments = msgspec.json.Decoder(_Arguments)


def read_call(name: str, arguments: bytes, *, call_id: str, cwd: str | None) -> NormalizedItem:
    """The item that asks for what was asked for, by the names that tools commonly have; nothing in it raises."""
    try:
        read = _arguments.decode(arguments)
    except UNREADABLE:
        return function_call(name, arguments, call_id)
    plain = name.replace("_", "").replace("-", "").lower()
    path = read.file_path or read.path or read.filename
    if any(word in plain for word in _EDITORS):
        patch = read.patch if read.patch is not None else read.input
        old = read.old_string if read.old_string is not None else read.old_str
        content = read.content if read.content is not None else read.file_text
        if patch is not None and "*** Begin Patch" in patch:
            return patch_call(patch, call_id)
        if path and old is not None:
            new = read.new_string if read.new_string is not None else read.new_str
            return patch_call(update_patch(path, [(old, new or "")], cwd=cwd), call_id)
        if path and content is not None:
            return patch_call(add_patch(path, content, cwd=cwd), call_id)
        if path and isinstance(read.command, str):  # an editor's command is none of the shell's
            looked = msgspec.json.encode({"action": read.command, "path": path})
            return function_call(name, looked, call_id)
    if plain in _WEB and (read.query or read.url):
        return web_call(call_id, query=read.query, url=read.url)
    if read.keystrokes is not None and read.command is None:
        return function_call(name, msgspec.json.encode({"command": read.keystrokes.rstrip("\n")}), call_id)
    return function_call(name, arguments, call_id)


def read_result(
    call: NormalizedItem | None, text: str, *, call_id: str, failed: bool | None, names_failures: bool = False
) -> NormalizedItem:
    """How a call ended: a command by the exit code in its text, whatever the program calls its end."""
    ok = None if failed is None else not failed
    is_command = call is not None and _command_of(call) is not None
    if is_command or call is None:
        shell = read_shell(text)
        code = 0 if shell.exit_code is None and is_command and names_failures else shell.exit_code
        return output(call, call_id, shell.output, exit_code=code, ok=ok)
    return output(call, call_id, text, ok=ok)


class _Returned(msgspec.Struct):
    returncode: int
    output: str | None = None
    output_head: str = ""
    output_tail: str = ""


def read_shell(text: str) -> Shell:
    """A command's output without what programs put around it, and its exit code, if that is there."""
    if text.lstrip()[:1] == "{" and '"returncode"' in text:
        try:
            returned = msgspec.json.decode(text, type=_Returned)
        except UNREADABLE:
            return Shell(text, None)
        cut = f"{returned.output_head}\n[…]\n{returned.output_tail}"
        return Shell(returned.output if returned.output is not None else cut, returned.returncode)
    if (ahead := _CODE_AHEAD.match(text)) is not None:
        rest = text[ahead.end() :]
        if ahead[1] is not None and (wrapped := _OUTPUT.fullmatch(rest)):
            rest = wrapped[1]
        return Shell(rest, int(ahead[1] or ahead[2]))
    end = text[-_BEHIND_CHARS:]
    if " code" in end and (behind := _CODE_BEHIND.search(end)) is not None:
        return Shell(text[: len(text) - len(end) + behind.start()], int(behind[1]))
    return Shell(text, None)


def _command_of(call: NormalizedItem) -> str | None:
    try:
        return read_asked(_called.decode(call.raw)).command
    except UNREADABLE:
        return None
