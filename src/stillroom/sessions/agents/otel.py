"""Find conversations in files of OpenTelemetry's GenAI spans; a file has as many as the program had.

The `rollout_path` is the file's with the conversation's id as a fragment: `…/spans.jsonl#ID`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions import documents
from stillroom.sessions.conversation import LineDecoder, number_of, text_of, time_of
from stillroom.sessions.discovery import Broken, Discovery, Found, Unchanged
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import BOM, open_stored, read_batches
from stillroom.sessions.lists import document, list_files
from stillroom.sessions.metadata import preview_of, read_small
from stillroom.sessions.names import MAX_NAME_CHARS, place_of, rollout_path, thread_id
from stillroom.sessions.normalize import NormalizedItem, function_call, said_by_agent, said_by_assistant, said_by_user
from stillroom.sessions.programs import Content, prompt_of, returned
from stillroom.sessions.speech import first_words
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_chunks, stream_chunks
from stillroom.thread import FileStamp, Thread

# --- A text of any length that is an attribute of a span, read out of its line at constant memory.
#
# Messages are JSON in a text in JSON. Where the line is too long to be held, its escapes are taken out as it passes by.

# Whole characters and escapes; a pair of surrogates stays together. A repetition costs memory until the match is made.
_TEXT_WHOLE = re.compile(
    rb'(?:[^"\\]++|\\[^u]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}){0,1000}'
)
_QUOTE, _NEWLINE = b'"\n'
# Between a name and its text there is a handful of bytes.
_BEFORE_BYTES = 400


def attribute(file: BinaryIO, name: str, *, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The text of an attribute of the line at which the file stands, in pieces; nothing where it is not in the line.

    Quotes in texts are escaped, so that no text can pose as the attribute. Raises `OSError`.
    """
    start = re.compile(
        rb'"%s"\s{0,9}(?::|,\s{0,9}"value"\s{0,9}:\s{0,9}\{\s{0,9}"stringValue"\s{0,9}:)\s{0,9}"'
        % re.escape(name).encode()
    )
    held = b""
    while piece := file.readline(reading.chunk_bytes):
        held += piece
        if (match := start.search(held)) is not None:
            yield from _unescaped(file, held[match.end() :], reading.chunk_bytes)
            return
        if piece[-1] == _NEWLINE:
            return
        held = held[-_BEFORE_BYTES:]


def _unescaped(file: BinaryIO, held: bytes, size: int) -> Generator[bytes, None, None]:
    while True:
        end = _whole_end(held)
        done = end < len(held) and held[end] == _QUOTE
        if not done:
            end = _character_end(held, end)
        try:
            yield msgspec.json.decode(b'"' + held[:end] + b'"', type=str).encode()
        except UNREADABLE:
            return
        held = held[end:]
        if done or not (piece := file.readline(size)):
            return
        held += piece


def _whole_end(text: bytes) -> int:
    """Ahead of the quote that ends the text, or of an escape that is not whole."""
    end = -1
    at = 0
    while end < at:
        match = _TEXT_WHOLE.match(text, at)
        assert match is not None
        end, at = at, match.end()
    return at


def _character_end(text: bytes, end: int) -> int:
    """Ahead of a character whose last bytes may be missing."""
    start = end
    while start > max(end - 4, 0) and text[start - 1] & 0xC0 == 0x80:
        start -= 1
    return start - 1 if start and text[start - 1] >= 0xC0 else end


# --- Messages of GenAI spans as the items that memory keeps.

_CALLS = frozenset({"tool_call", "server_tool_call"})
_RETURNS = frozenset({"tool_call_response", "server_tool_call_response"})
_WORDS = frozenset({"text", "input_text", "output_text"})
_MEDIA = frozenset({"blob", "file", "uri", "image", "image_url", "image-url", "binary", "document", "audio"})
_THOUGHTS = frozenset({"reasoning", "thinking", "compaction"})


class _Part(msgspec.Struct):
    type: Any = None
    content: Any = None
    text: Any = None
    modality: Any = None
    id: Any = None
    name: Any = None
    arguments: Any = None
    response: Any = None
    result: Any = None


class _Message(msgspec.Struct):
    role: Any = None
    parts: list[_Part] = []


_message = msgspec.json.Decoder(_Message)


class Records(LineDecoder):
    """Decodes the messages of one conversation, a line each. In a talk `of_agent` the prompts are another agent's."""

    def __init__(
        self, stats: ReadStats, *, at_ms: int | None = None, of_agent: bool = False, reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._of_agent = of_agent
        # Messages have no times: that of their span.
        self._at_ms = at_ms

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message."""
        return self._at_ms, self._made(_message.decode(line))

    def _made(self, message: _Message) -> Iterator[NormalizedItem]:
        if message.role in ("system", "developer"):
            self.stats.drop("instructions")
            return
        texts: list[str] = []
        images = 0
        for part in message.parts:
            kind = text_of(part.type)
            text = text_of(part.content) or text_of(part.text)
            if kind in _CALLS:
                yield from self._call(part)
            elif kind in _RETURNS:
                yield from self._result(part)
            elif kind in _MEDIA:
                images += "image" in kind or part.modality == "image"
            elif kind not in _WORDS:
                if kind not in _THOUGHTS:
                    self.stats.count_unknown(f"part/{kind}")
            elif message.role == "assistant" and text.strip():
                yield said_by_assistant(text)
            elif text.strip():
                texts.append(text)
        if message.role == "user":
            yield from self._prompt(Content(texts, images))
        elif message.role not in ("assistant", "tool"):
            self.stats.count_unknown(f"message/{message.role}")

    def _prompt(self, content: Content) -> Iterator[NormalizedItem]:
        self.stats.images += content.images
        if words := prompt_of(content):
            yield said_by_agent("\n".join(words)) if self._of_agent else said_by_user(*words)
        elif content.texts or content.images:
            self.stats.drop("nothing said")

    def _call(self, part: _Part) -> Iterator[NormalizedItem]:
        call_id = text_of(part.id)
        raw = part.arguments.encode() if isinstance(part.arguments, str) else msgspec.json.encode(part.arguments)
        if not call_id or self.is_new(f"call {call_id}"):
            yield self.called(call_id, function_call(text_of(part.name), raw, call_id))

    def _result(self, part: _Part) -> Iterator[NormalizedItem]:
        call_id = text_of(part.id)
        value = part.response if part.response is not None else part.result
        if not call_id or self.is_new(f"result {call_id}"):
            yield returned(self.call_of(call_id), call_id, value if value is not None else part.content, ok=None)


# --- Spans of either envelope, the SDK's `to_json` and OTLP's JSON, and the messages in them, in the newest form.
#
# The newest form is `{"role", "parts": [{"type", …}]}` in `gen_ai.input.messages`. Older ones are brought into it:
# events `gen_ai.user.message` and the like, OpenLLMetry's `gen_ai.prompt.N.…`, and OpenInference's
# `llm.input_messages.N.…`.

Fields = dict[str, Any]

#: What a span was given, and what came of it.
INPUTS = ("gen_ai.input.messages", "gen_ai.output.messages")
# Pydantic AI's of a whole run: inputs and outputs. Before, its lists of events.
_SPAN_WHOLE = ("pydantic_ai.all_messages", "all_messages_events", "events")
_FLAT = (("gen_ai.prompt.", "gen_ai.completion."), ("llm.input_messages.", "llm.output_messages."))
_CONVERSATIONS = (
    *("gen_ai.conversation.id", "session.id", "langfuse.session.id", "traceloop.association.properties.session_id"),
)
_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message|gen_ai\.choice")
# Numbers of messages, and of calls in them, in a flat form; and the depth of names.
_MAX_DIGITS = 6
_MAX_DEPTH = 12
# Of nanoseconds since the epoch.
_TIME_DIGITS = 19


class Span(NamedTuple):
    """One span, or one log record that stands for one."""

    conversation: str
    span_id: str
    parent_id: str
    start_ms: int | None
    end_ms: int | None
    attributes: Fields
    events: list[Fields]

    def told(self, *names: str) -> str:
        """The first of these attributes that is a text."""
        return next(filter(None, (text_of(self.attributes.get(name)) for name in names)), "")


class _Span(msgspec.Struct, rename="camel"):
    """Of both envelopes; OTLP's names are in camel case."""

    trace_id: Any = None
    span_id: Any = None
    parent_span_id: Any = None
    start_time_unix_nano: Any = None
    end_time_unix_nano: Any = None
    time_unix_nano: Any = None
    event_name: Any = None
    context: Any = None
    attributes: Any = None
    events: Any = None
    resource_spans: Any = None
    resource_logs: Any = None
    scope_spans: Any = None
    scope_logs: Any = None
    parent_id: Any = msgspec.field(default=None, name="parent_id")
    start_time: Any = msgspec.field(default=None, name="start_time")
    end_time: Any = msgspec.field(default=None, name="end_time")


_span = msgspec.json.Decoder(_Span)


def spans_of(line: bytes) -> Iterator[Span]:
    """Every span of a line of either envelope. Raises one of `UNREADABLE` for what is no JSON object."""
    read = _span.decode(line)
    for resource in (*_list(read.resource_spans), *_list(read.resource_logs)):
        yield from _of_resource(resource)
    if read.scope_spans is not None or read.scope_logs is not None:
        yield from _of_resource({"scopeSpans": read.scope_spans, "scopeLogs": read.scope_logs})
    if read.attributes is not None:
        yield _read(read)


def weight(span: Span) -> int:
    """How long the input is, in characters; 0 for a span without messages."""
    for names in (INPUTS[:1], *((name,) for name in _SPAN_WHOLE)):
        if size := sum(_size(span.attributes.get(name)) for name in names):
            return size
    if size := sum(_size(event) for event in span.events):
        return size
    return sum(_size(value) for key, value in span.attributes.items() if key.startswith((_FLAT[0][0], _FLAT[1][0])))


def messages_of(span: Span) -> list[Fields]:
    """Input and output of a span, in the newest form."""
    told = span.attributes
    if any(name in told for name in INPUTS):
        return [message for name in INPUTS for message in _decoded(told.get(name))]
    for name in _SPAN_WHOLE:
        if found := _decoded(told.get(name)):
            return [message if "parts" in message else _of_event(message) for message in found]
    if span.events:
        return [_of_event(event) for event in span.events]
    return [_in_parts(_of_flat(message)) for names in _FLAT for name in names for message in _unflattened(told, name)]


def _of_resource(resource: Any) -> Iterator[Span]:
    fields = resource if isinstance(resource, dict) else {}
    for scope in (*_list(fields.get("scopeSpans")), *_list(fields.get("scopeLogs"))):
        inner = scope if isinstance(scope, dict) else {}
        for each in (*_list(inner.get("spans")), *_list(inner.get("logRecords"))):
            try:
                yield _read(msgspec.convert(each, _Span))
            except msgspec.ValidationError:
                continue


def _read(read: _Span) -> Span:
    context = read.context if isinstance(read.context, dict) else {}
    attributes = _attributes(read.attributes)
    events = [_event(event) for event in _list(read.events) if isinstance(event, dict)]
    for details in (event for event in events if not _EVENT.fullmatch(text_of(event.get("event.name")))):
        attributes.update((name, details[name]) for name in INPUTS if name in details and name not in attributes)
    trace = text_of(read.trace_id) or text_of(context.get("trace_id"))
    start = _nanoseconds(read.start_time_unix_nano) or _nanoseconds(read.time_unix_nano) or time_of(read.start_time)
    if _EVENT.fullmatch(text_of(read.event_name)):
        attributes.setdefault("event.name", read.event_name)
    return Span(
        conversation=next(filter(None, (text_of(attributes.get(name)) for name in _CONVERSATIONS)), trace),
        span_id=text_of(read.span_id) or text_of(context.get("span_id")),
        parent_id=text_of(read.parent_span_id) or text_of(read.parent_id),
        start_ms=start,
        end_ms=_nanoseconds(read.end_time_unix_nano) or time_of(read.end_time) or start,
        attributes=attributes,
        events=[event for event in events if _EVENT.fullmatch(text_of(event.get("event.name")))],
    )


def _event(event: Fields) -> Fields:
    return {**_attributes(event.get("attributes")), "event.name": event.get("name")}


def _attributes(value: Any) -> Fields:
    """An object, or OTLP's list of keys and values."""
    if isinstance(value, dict):
        return value
    pairs = (each for each in _list(value) if isinstance(each, dict) and isinstance(each.get("key"), str))
    return {each["key"]: _value(each.get("value"), 0) for each in pairs}


def _value(value: Any, depth: int) -> Any:
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return None
    if "arrayValue" in value:
        inner = value["arrayValue"]
        return [_value(each, depth + 1) for each in _list(inner.get("values") if isinstance(inner, dict) else None)]
    if "kvlistValue" in value:
        inner = value["kvlistValue"]
        pairs = _list(inner.get("values") if isinstance(inner, dict) else None)
        return {
            text_of(each.get("key")): _value(each.get("value"), depth + 1) for each in pairs if isinstance(each, dict)
        }
    return next((each for name, each in value.items() if name.endswith("Value")), None)


def _decoded(value: Any) -> list[Fields]:
    """Messages, which most write as JSON in a text."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except UNREADABLE:
            return []
    return [each for each in _list(value) if isinstance(each, dict)]


def _of_event(event: Fields) -> Fields:
    """A message of the form that has an event each; a choice holds its message."""
    inner = event.get("message")
    if isinstance(inner, str) and (decoded := _decoded(f"[{inner}]")):
        inner = decoded[0]
    fields = {**event, **inner} if isinstance(inner, dict) else dict(event)
    if not fields.get("role") and (match := _EVENT.fullmatch(text_of(event.get("event.name")))):
        fields["role"] = match[1] or "assistant"
    return _in_parts(fields)


def _of_flat(message: Fields) -> Fields:
    """OpenInference has `message` around a message, and `message_content` around a part."""
    inner = message.get("message")
    fields = inner if isinstance(inner, dict) else message
    if "content" not in fields and isinstance(fields.get("contents"), list):
        parts = (part.get("message_content") for part in fields["contents"] if isinstance(part, dict))
        return {**fields, "content": [part for part in parts if isinstance(part, dict)]}
    return fields


def _in_parts(fields: Fields) -> Fields:
    """A message as chat completions have it, in parts."""
    role, content = text_of(fields.get("role")), fields.get("content")
    if isinstance(content, str) and content.lstrip().startswith("[{"):
        content = _decoded(content) or content
    if role == "tool":
        call_id = fields.get("tool_call_id") or fields.get("id")
        return {"role": role, "parts": [{"type": "tool_call_response", "id": call_id, "response": content}]}
    parts: list[Fields] = [{"type": "text", "content": content}] if isinstance(content, str) else _decoded(content)
    for call in _decoded(fields.get("tool_calls")):
        outer = call.get("tool_call")
        outer = outer if isinstance(outer, dict) else call
        inner = outer.get("function")
        inner = inner if isinstance(inner, dict) else outer
        name, arguments = inner.get("name"), inner.get("arguments")
        parts.append({"type": "tool_call", "id": outer.get("id"), "name": name, "arguments": arguments})
    if fields.get("tool_call_id") and role != "assistant":
        parts = [{"type": "tool_call_response", "id": fields["tool_call_id"], "response": content}]
    return {"role": role, "parts": parts}


def _unflattened(attributes: Fields, prefix: str) -> list[Fields]:
    """The messages whose fields are attributes of their own, `PREFIX0.role` and so on, by their numbers."""
    tree: Fields = {}
    for name, value in attributes.items():
        if not name.startswith(prefix):
            continue
        *path, last = name.removeprefix(prefix).split(".", _MAX_DEPTH)
        place: Any = tree
        for step in path:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                break
        else:
            place.setdefault(last, value)
    return [each for each in _list(_listed(tree)) if isinstance(each, dict)]


def _listed(tree: Any) -> Any:
    """The same with a list for each object whose names are numbers."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(name.isascii() and name.isdigit() and len(name) <= _MAX_DIGITS for name in tree):
        return [_listed(tree[name]) for name in sorted(tree, key=int)]
    return {name: _listed(value) for name, value in tree.items()}


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict | list):
        return sum(map(_size, value.values() if isinstance(value, dict) else value))
    return 0


def _nanoseconds(value: Any) -> int | None:
    """OTLP writes them as texts."""
    is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _TIME_DIGITS
    number = int(value) if is_number else number_of(value)
    return number // 1_000_000 if number and number < 1 << 63 else None


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


# --- What stands in a file of spans: of each conversation, the span with the longest input, which repeats all that
# came before it. While the file is scanned only lengths and places are kept.

# Conversations of one file, and calls of tools in it, that are told apart: at less than 100 MB.
_MAX_CONVERSATIONS = 50_000
_MAX_TOOL_SPANS = 500_000
# A line without any of these is of another kind of span.
_MARKS = (b"gen_ai.", b"llm.", b"all_messages")


@dataclass(slots=True)
class Conversation:
    """One conversation of a file. Places are bytes in a file of lines, and numbers of elements in a document."""

    place: int = -1
    #: Of the spans on that line.
    number: int = 0
    #: The line is too long to be held.
    long: bool = False
    weight: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    preview: str = ""
    agent: str = ""
    provider: str = ""
    #: The span in which the agent was called; then the conversation that this span is of.
    caller: str = ""
    parent: str = ""


class _Entry(NamedTuple):
    place: int
    line: bytes
    #: Bytes that were cut out of it.
    cut: int = 0


class Conversations(dict[str, Conversation]):
    """By name; with what was left out."""

    untold: int = 0


def conversations(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Conversations:
    """All conversations of a file. Raises `OSError` or `RolloutError`."""
    status = os.stat(path)  # noqa: PTH116
    return _scanned(path, status.st_size, status.st_mtime_ns, max_line_bytes, reading)


def lines(path: Path, name: str, *, max_line_bytes: int, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The messages of a conversation, as lines. Raises `OSError` or `RolloutError`."""
    found = conversations(path, max_line_bytes=max_line_bytes, reading=reading).get(name)
    if found is None or found.place < 0:
        raise RolloutError(f"`{path}` has no conversation {name[:80]!r} any more")
    if found.long:
        for attribute in INPUTS:
            yield from documents.lines(open_chunks(_text(path, found.place, attribute, reading)), (), reading=reading)
        return
    for entry in _entries(path, max_line_bytes, reading, start=found.place):
        try:
            for number, span in enumerate(spans_of(entry.line)):
                if number == found.number:
                    yield from _lines(span)
        except UNREADABLE as error:
            raise RolloutError(f"`{path}` was written anew while it was read") from error
        return


@lru_cache(maxsize=2)  # whoever reads a conversation of a file reads others of it
def _scanned(path: Path, size: int, mtime_ns: int, max_line_bytes: int, reading: Reading) -> Conversations:
    del size, mtime_ns  # a file that looks otherwise is another one
    found = Conversations()
    tools: dict[int, str] = {}
    for entry in _entries(path, max_line_bytes, reading):
        if not any(mark in entry.line for mark in _MARKS):
            continue
        try:
            for number, span in enumerate(spans_of(entry.line)):
                if span.told("gen_ai.operation.name") == "execute_tool" and len(tools) < _MAX_TOOL_SPANS:
                    tools[hash(span.span_id)] = span.conversation
                _learn(found, span, entry, number)
        except UNREADABLE:
            continue
    for name, each in found.items():
        parent = tools.get(hash(each.caller), "") if each.caller else ""
        each.parent = parent if parent != name else ""
    return found


def _learn(found: Conversations, span: Span, entry: _Entry, number: int) -> None:
    if not (name := span.conversation):
        return
    if (each := found.get(name)) is None:
        if len(found) >= _MAX_CONVERSATIONS:
            found.untold += 1
            return
        each = found[name] = Conversation()
    each.first_ms = min(filter(None, (each.first_ms, span.start_ms)), default=None)
    each.last_ms = max(filter(None, (each.last_ms, span.end_ms)), default=None)
    if span.told("gen_ai.operation.name") == "invoke_agent":
        each.caller = span.parent_id
        each.agent = span.told("gen_ai.agent.name") or each.agent
    size = weight(span)
    if size and size + entry.cut >= each.weight:
        each.place, each.number, each.weight = entry.place, number, size + entry.cut
        each.long = entry.cut > 0 and INPUTS[0] in span.attributes
        each.provider = span.told("gen_ai.provider.name", "gen_ai.system", "llm.provider") or each.provider
        each.preview = each.preview or _preview(span)


def _preview(span: Span) -> str:
    items = Records(ReadStats()).items(list(_lines(span)), 1)
    words = (first_words(item, max_chars=READING.preview_chars) for item in items)
    return next(filter(None, words), "")


def _lines(span: Span) -> Iterator[bytes]:
    for message in messages_of(span):
        yield msgspec.json.encode(message) + b"\n"


def _entries(path: Path, max_line_bytes: int, reading: Reading, *, start: int = 0) -> Iterator[_Entry]:
    """Each line of the file from `start` on, with its place; of a document, each element of its list."""
    where, stats = _list_in(path), ReadStats()
    if where is not None:
        with open_chunks(document(path, where, reading), reading=reading) as text:
            lines = (
                line
                for batch in read_batches(text, stats, max_line_bytes=max_line_bytes, reading=reading)
                for line in batch
            )
            yield from (_Entry(number, line) for number, line in enumerate(lines) if number >= start)
        return
    with open_stored(path, reading=reading) as file:
        file.seek(start)
        end, cut = start, 0
        for batch in read_batches(file, stats, max_line_bytes=max_line_bytes, reading=reading):
            # What was squeezed was longer in the file, and comes alone.
            place = end if len(batch) == 1 else start + stats.bytes - sum(map(len, batch))
            for line in batch:
                yield _Entry(place, line, stats.cut_bytes - cut)
                place += len(line)
            end, cut = start + stats.bytes, stats.cut_bytes


def _text(path: Path, place: int, name: str, reading: Reading) -> Generator[bytes, None, None]:
    with open_stored(path, reading=reading) as file:
        file.seek(place)
        yield from attribute(file, name, reading=reading)


def _list_in(path: Path) -> documents.Path | None:
    """Where the list of a document is; None for a file whose lines are objects."""
    first, newline, _ = read_small(path).removeprefix(BOM).lstrip().partition(b"\n")
    if first.startswith(b"["):
        return ()
    whole = not newline or first.rstrip().endswith(b"}") or path.suffix.lower() != ".json"
    return None if whole else ("resourceSpans",)


# --- Sessions

AGENT = "otel-genai"
COPIES = False


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every conversation in the file `root`, or in those under that folder. What has not changed since its
    conversations were found is not opened."""
    before: dict[Path, list[str]] = {}
    for name in known:
        before.setdefault(place_of(Path(name))[0], []).append(name)
    root = root.absolute()
    for path in sorted(list_files(root)):
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode):
                continue
            names = before.get(path, [])
            stamp = FileStamp(size=status.st_size, mtime_ns=status.st_mtime_ns)
            if names and all(known[name] == stamp for name in names):
                yield from map(Unchanged, names)
            else:
                found = conversations(path, max_line_bytes=max_line_bytes, reading=reading)
                # Without any in a folder it is another program's file.
                if found or path == root:
                    yield from _look(path, stamp, found, max_line_bytes, reading)
        except RolloutError as error:
            yield Broken(str(path), str(error))
        except OSError as error:
            yield Broken(str(path), f"`{path}` can't be read: {error.strerror}")


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a conversation. Raises `RolloutError` if the file can't be opened."""
    place, name = place_of(path)
    try:
        found = conversations(place, max_line_bytes=max_line_bytes, reading=reading).get(name)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    return stream_chunks(
        lines(place, name, max_line_bytes=max_line_bytes, reading=reading),
        path,
        Records(
            ReadStats(), at_ms=found.last_ms if found else None, of_agent=bool(found and found.parent), reading=reading
        ),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _look(
    path: Path, stamp: FileStamp, found: Conversations, max_line_bytes: int, reading: Reading
) -> Iterator[Discovery]:
    some = False
    for name, each in found.items():
        if each.place >= 0 and len(name) <= MAX_NAME_CHARS:
            some = True
            preview = each.preview or (_first_words(path, name, max_line_bytes, reading) if each.long else "")
            yield Found(_thread(path, name, each, stamp, preview), stamp)
    if not some:
        raise RolloutError(f"`{path}` can't be used: it holds no span with messages")
    if found.untold:
        yield Broken(f"{path}#", f"`{path}` has more conversations than are read; {found.untold} spans were left")


def _first_words(path: Path, name: str, max_line_bytes: int, reading: Reading) -> str:
    with open_items(rollout_path(path, name), max_line_bytes=max_line_bytes, reading=reading) as items:
        return preview_of(items, reading=reading)


def _thread(path: Path, name: str, each: Conversation, stamp: FileStamp, preview: str) -> Thread:
    updated = each.last_ms or stamp.mtime_ns // 1_000_000
    agent = {"subagent": each.agent or "other"}
    return Thread(
        thread_id=thread_id(path, name),
        agent=AGENT,
        rollout_path=str(rollout_path(path, name)),
        # Else of whoever it is: a person named this file as a source.
        source=msgspec.json.encode(agent).decode() if each.parent else "cli",
        cwd="",
        created_at_ms=min(each.first_ms or updated, updated),
        updated_at_ms=updated,
        title=each.agent or name,
        preview="" if each.parent else preview,
        parent_thread_id=thread_id(path, each.parent) if each.parent else None,
        model_provider=each.provider or None,
    )
