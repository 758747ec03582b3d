"""Spans of either envelope, the SDK's `to_json` and OTLP's JSON, and the messages in them, in the newest form.

The newest form is `{"role", "parts": [{"type", …}]}` in `gen_ai.input.messages`. Older ones are brought into it: events
`gen_ai.user.message` and the like, OpenLLMetry's `gen_ai.prompt.N.…`, and OpenInference's `llm.input_messages.N.…`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from stillroom.rollouts.agents.decoder import UNREADABLE, number_of, text_of, time_of

Fields = dict[str, Any]

#: What a span was given, and what came of it.
INPUTS = ("gen_ai.input.messages", "gen_ai.output.messages")
# Pydantic AI's of a whole run: inputs and outputs. Before, its lists of events.
_WHOLE = ("pydantic_ai.all_messages", "all_messages_events", "events")
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
    for names in (INPUTS[:1], *((name,) for name in _WHOLE)):
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
    for name in _WHOLE:
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
