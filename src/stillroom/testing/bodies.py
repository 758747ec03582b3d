"""The bodies that a `LoopbackModel` sends, in the four protocols, whole or as server-sent events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import msgspec

from stillroom.testing.script import CallTool, CallTools, RecordedRequest, Refuse, Say, StopShort

Spoken = Say | CallTool | CallTools | Refuse | StopShort
_CHARS_PER_TOKEN = 4
_encode = msgspec.json.encode


def render(request: RecordedRequest, reply: Spoken) -> bytes:
    """The whole body, in the protocol of the request."""
    match request.protocol:
        case "responses":
            return _encode(_response(request, reply))
        case "chat":
            return _encode(_completion(request, reply))
        case "messages":
            return _encode(_message(request, reply))
        case "gemini":
            return _encode(_generated(request, reply))
        case _:
            assert_never(request.protocol)


def render_events(request: RecordedRequest, reply: Spoken) -> bytes:
    """The same as server-sent events."""
    match request.protocol:
        case "responses":
            return b"".join(_named_events(_response_events(_response(request, reply))))
        case "chat":
            return b"".join(_chat_events(_completion(request, reply)))
        case "messages":
            return b"".join(_named_events(_message_events(_message(request, reply))))
        case "gemini":
            return b"data: %s\r\n\r\n" % _encode(_generated(request, reply))
        case _:
            assert_never(request.protocol)


def error_body(
    request: RecordedRequest, *, message: str, code: str | None, kind: str | None, param: str | None
) -> bytes:
    """An error object as the provider of this protocol words it."""
    if request.protocol == "messages":
        return _encode({"type": "error", "error": {"type": kind or code or "api_error", "message": message}})
    return _encode({"error": {"message": message, "type": kind, "param": param, "code": code}})


def _calls(reply: Spoken) -> tuple[CallTool, ...]:
    if isinstance(reply, CallTools):
        return reply.calls
    return (reply,) if isinstance(reply, CallTool) else ()


def _text(reply: Spoken) -> str:
    return reply.text if isinstance(reply, Say | StopShort) else ""


def _tokens(data: bytes | str) -> int:
    return -(-len(data) // _CHARS_PER_TOKEN)


# --- Responses


def _response(request: RecordedRequest, reply: Spoken) -> dict[str, Any]:
    n = request.number
    output: list[dict[str, Any]] = []
    if isinstance(reply, Refuse):
        output.append(_output_message(n, {"type": "refusal", "refusal": reply.text}))
    elif isinstance(reply, Say | StopShort):
        output.append(
            _output_message(n, {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []})
        )
    for index, call in enumerate(_calls(reply)):
        arguments = _encode(call.arguments).decode()
        ids = {"id": f"fc_{n}_{index}", "call_id": f"call_{n}_{index}"}
        output.append(
            {"type": "function_call", "status": "completed", "name": call.name, "arguments": arguments, **ids}
        )
    short = reply.reason if isinstance(reply, StopShort) else None
    reason = "max_output_tokens" if short == "length" else short
    return {
        "id": f"resp_{n}",
        "object": "response",
        "created_at": 1,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "model": request.outline.model or "loopback",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": _tokens(request.body),
            "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
            "output_tokens": _tokens(_text(reply)) + 3,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": _tokens(request.body) + _tokens(_text(reply)) + 3,
        },
    }


def _output_message(number: int, part: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def _response_events(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(response["output"]):
        where = {"output_index": index, "item_id": item["id"]}
        empty = {**item, "status": "in_progress"}
        if item["type"] == "message":
            yield {"type": "response.output_item.added", "output_index": index, "item": {**empty, "content": []}}
            yield from _part_events({**where, "content_index": 0}, item["content"][0])
        else:
            yield {"type": "response.output_item.added", "output_index": index, "item": {**empty, "arguments": ""}}
            delta = item["arguments"]
            yield {"type": "response.function_call_arguments.delta", **where, "delta": delta}
            yield {"type": "response.function_call_arguments.done", **where, "arguments": delta, "name": item["name"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _part_events(where: dict[str, Any], part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    field, kind = ("text", "output_text") if part["type"] == "output_text" else ("refusal", "refusal")
    yield {"type": "response.content_part.added", **where, "part": {**part, field: ""}}
    yield {"type": f"response.{kind}.delta", **where, "delta": part[field], "logprobs": []}
    yield {"type": f"response.{kind}.done", **where, field: part[field], "logprobs": []}
    yield {"type": "response.content_part.done", **where, "part": part}


def _named_events(events: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    for number, event in enumerate(events):
        yield b"event: %s\ndata: %s\n\n" % (event["type"].encode(), _encode({**event, "sequence_number": number}))


# --- Chat Completions


def _completion(request: RecordedRequest, reply: Spoken) -> dict[str, Any]:
    n = request.number
    calls = [
        {
            "id": f"call_{n}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": _encode(call.arguments).decode()},
        }
        for index, call in enumerate(_calls(reply))
    ]
    message: dict[str, Any] = {"role": "assistant", "content": _text(reply) or None}
    if isinstance(reply, Refuse):
        message["refusal"] = reply.text
    if calls:
        message["tool_calls"] = calls
    reason = reply.reason if isinstance(reply, StopShort) else "tool_calls" if calls else "stop"
    prompt, completion = _tokens(request.body), _tokens(_text(reply)) + 3
    return {
        "id": f"chatcmpl_{n}",
        "object": "chat.completion",
        "created": 1,
        "model": request.outline.model or "loopback",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 8},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }


def _chat_events(completion: dict[str, Any]) -> Iterator[bytes]:
    head = {key: completion[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = completion["choices"][0]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{**call, "index": index} for index, call in enumerate(delta["tool_calls"])]
    for chunk in (
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {"choices": [], "usage": completion["usage"]},
    ):
        yield b"data: %s\n\n" % _encode({**head, **chunk})
    yield b"data: [DONE]\n\n"


# --- Messages (Anthropic)


def _message(request: RecordedRequest, reply: Spoken) -> dict[str, Any]:
    n = request.number
    content: list[dict[str, Any]] = [{"type": "text", "text": _text(reply)}] if _text(reply) else []
    for index, call in enumerate(_calls(reply)):
        content.append({"type": "tool_use", "id": f"toolu_{n}_{index}", "name": call.name, "input": call.arguments})
    stop = "tool_use" if _calls(reply) else "end_turn"
    if isinstance(reply, StopShort):
        stop = "max_tokens" if reply.reason == "length" else "refusal"
    if isinstance(reply, Refuse):
        stop = "refusal"
    return {
        "id": f"msg_{n}",
        "type": "message",
        "role": "assistant",
        "model": request.outline.model or "loopback",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": _tokens(request.body),
            "cache_read_input_tokens": 8,
            "cache_creation_input_tokens": 0,
            "output_tokens": _tokens(_text(reply)) + 3,
        },
    }


def _message_events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            arguments = _encode(block["input"]).decode()
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": arguments}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


# --- generateContent (Gemini)


def _generated(request: RecordedRequest, reply: Spoken) -> dict[str, Any]:
    """One whole answer: it is also what the only event of a stream holds."""
    parts: list[dict[str, Any]] = [{"text": _text(reply)}] if _text(reply) else []
    for index, call in enumerate(_calls(reply)):
        asked = {"id": f"call_{request.number}_{index}", "name": call.name, "args": call.arguments}
        parts.append({"functionCall": asked})
    reason = "STOP"
    if isinstance(reply, StopShort):
        reason = "MAX_TOKENS" if reply.reason == "length" else "SAFETY"
    if isinstance(reply, Refuse):
        parts, reason = [{"text": reply.text}], "STOP"
    prompt, answer = _tokens(request.body), _tokens(_text(reply)) + 3
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": reason}],
        "modelVersion": "loopback",
        "responseId": f"response_{request.number}",
        "usageMetadata": {
            "promptTokenCount": prompt,
            "cachedContentTokenCount": 8,
            "candidatesTokenCount": answer,
            "totalTokenCount": prompt + answer,
        },
    }
