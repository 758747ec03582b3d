"""The protocols of the providers: where a reminder goes in a request, and where the usage stands in its stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Body = Mapping[str, Any]


class Wire(NamedTuple):
    """One protocol."""

    #: The request with the reminder as its last message; None where it can't have one.
    remind: Callable[[Body, str], Body | None]
    #: The request as it has to be so that its stream tells the usage.
    streamed: Callable[[Body], Body]
    #: What an event of a stream tells of the usage. Later tellings replace earlier ones, key by key.
    usage_in: Callable[[Any], object]


def _as_it_is(body: Body) -> Body:
    return body


def _remind_response(body: Body, text: str) -> Body:
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    return {**body, "input": [*items, {"type": "message", "role": "developer", "content": text}]}


def _usage_of_response_event(event: Any) -> object:
    return getattr(getattr(event, "response", None), "usage", None)


#: OpenAI's Responses.
RESPONSES = Wire(_remind_response, _as_it_is, _usage_of_response_event)


def _remind_chat(body: Body, text: str) -> Body:
    messages = list(body.get("messages") or [])
    # `developer` is newer than most servers that speak this protocol; OpenAI itself takes both for the same.
    role = "developer" if any(message.get("role") == "developer" for message in messages) else "system"
    return {**body, "messages": [*messages, {"role": role, "content": text}]}


def _ask_for_usage(body: Body) -> Body:
    options = body.get("stream_options") or {}
    if options.get("include_usage"):
        return body
    return {**body, "stream_options": {**options, "include_usage": True}}


def _usage_of_chunk(chunk: Any) -> object:
    return getattr(chunk, "usage", None)


#: Chat Completions, of whichever server.
CHAT = Wire(_remind_chat, _ask_for_usage, _usage_of_chunk)


def _remind_messages(body: Body, text: str) -> Body | None:
    """The reminder as the last block of the last user message.

    Most models refuse a system message in the middle, and the system prompt is the front of the cached prefix. Where
    the caller has begun the answer there is no place: the reminder stays due.
    """
    messages = list(body.get("messages") or [])
    if not messages or messages[-1].get("role") != "user":
        return None
    content = messages[-1]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    messages[-1] = {**messages[-1], "content": [*blocks, {"type": "text", "text": text}]}
    return {**body, "messages": messages}


def _usage_of_message_event(event: Any) -> object:
    """`message_start` tells what was read, each `message_delta` what was written by then."""
    return getattr(getattr(event, "message", event), "usage", None)


#: Anthropic's Messages.
MESSAGES = Wire(_remind_messages, _as_it_is, _usage_of_message_event)
