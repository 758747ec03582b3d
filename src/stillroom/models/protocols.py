"""OpenAI's two protocols as values: the body of a request, and what a reply's body means. No network here."""

from __future__ import annotations

from typing import Any, Literal, assert_never

import msgspec

from stillroom.config import Effort, ProviderKind
from stillroom.errors import InvalidReply, ModelRefused
from stillroom.models.attempts import Answered, Attempt, Failed
from stillroom.models.provider_errors import from_failed_response
from stillroom.models.structured import OutputForm, StructuredRequest
from stillroom.spending import Usage

#: Of a reply that is none: enough to know a login page or an error of a proxy.
_SHOWN_BYTES = 80
_PATHS: dict[ProviderKind, str] = {"openai-responses": "/responses", "openai-chat": "/chat/completions"}


def path_of(kind: ProviderKind) -> str:
    """Where requests of this kind are posted, below the base URL."""
    return _PATHS[kind]


def request_body(
    request: StructuredRequest,
    *,
    kind: ProviderKind,
    model: str,
    effort: Effort | None,
    official: bool,
    form: OutputForm = "json_schema",
) -> bytes:
    """The JSON to post."""
    match kind:
        case "openai-responses":
            return msgspec.json.encode(_responses_body(request, model=model, effort=effort, form=form))
        case "openai-chat":
            return msgspec.json.encode(_chat_body(request, model=model, effort=effort, official=official, form=form))
        case _:
            assert_never(kind)


def read_reply(body: bytes, *, kind: ProviderKind) -> Attempt:
    """What a 200 says. Unknown fields are ignored; a missing text is a failure that still knows its tokens."""
    try:
        match kind:
            case "openai-responses":
                return _read_responses(_responses.decode(body))
            case "openai-chat":
                return _read_chat(_chat.decode(body))
            case _:
                assert_never(kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        begins = " ".join(body[:_SHOWN_BYTES].decode("utf-8", "replace").split())
        message = f"the provider's reply is not what `{kind}` sends ({error}): it begins `{begins}`"
        return Failed(error=InvalidReply(message))


# --- Responses


def _responses_body(
    request: StructuredRequest, *, model: str, effort: Effort | None, form: OutputForm
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "instructions": request.instructions(form),
        "input": [{"role": "user", "content": [{"type": "input_text", "text": request.user}]}],
        "max_output_tokens": request.max_output_tokens,
        # Other people's conversations are not the provider's to keep.
        "store": False,
        # The instructions are the same in every request; one key sends them to a machine that has them cached.
        "prompt_cache_key": request.schema_name,
    }
    match form:
        case "json_schema":
            schema = {"name": request.schema_name, "schema": request.schema, "strict": True}
            body["text"] = {"format": {"type": "json_schema", **schema}}
        case "json_object":
            body["text"] = {"format": {"type": "json_object"}}
        case "plain":
            pass
        case _:
            assert_never(form)
    if effort is not None:
        body["reasoning"] = {"effort": effort}
    return body


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _ResponsesUsage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Part(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None


class _OutputItem(msgspec.Struct):
    type: str
    content: list[_Part] | None = None
    #: Of a message: `commentary` is said on the way to the `final_answer`.
    phase: str | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Responses(msgspec.Struct):
    output: list[_OutputItem]
    status: str = "completed"
    error: dict[str, Any] | None = None
    incomplete_details: _Incomplete | None = None
    usage: _ResponsesUsage | None = None


_responses = msgspec.json.Decoder(_Responses)


def _read_responses(reply: _Responses) -> Attempt:
    usage = _responses_usage(reply.usage)
    if reply.status == "failed":
        return from_failed_response(reply.error or {}, usage=usage)
    if reply.status not in ("completed", "incomplete"):
        return Failed(error=InvalidReply(f"the reply ended as `{reply.status}`"), usage=usage)
    messages = [item for item in reply.output if item.type == "message"]
    answers = [item for item in messages if item.phase != "commentary"] or messages
    parts = [part for item in answers for part in item.content or ()]
    refusal = next((part.refusal for part in parts if part.refusal), None)
    reason = reply.incomplete_details.reason if reply.incomplete_details else None
    return _said(
        "".join(part.text or "" for part in parts if part.type == "output_text"),
        refusal=refusal,
        cut_by=(reason or "unknown") if reply.status == "incomplete" else None,
        usage=usage,
    )


def _responses_usage(usage: _ResponsesUsage | None) -> Usage:
    if usage is None:
        return Usage()
    inputs, outputs = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input_tokens=usage.input_tokens,
        cached_input_tokens=(inputs.cached_tokens or 0) if inputs else 0,
        output_tokens=usage.output_tokens,
        reasoning_tokens=(outputs.reasoning_tokens or 0) if outputs else 0,
    )


# --- Chat Completions


def _chat_body(
    request: StructuredRequest, *, model: str, effort: Effort | None, official: bool, form: OutputForm
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": "system", "content": request.instructions(form)},
            {"role": "user", "content": request.user},
        ],
        # OpenAI took the old name away; the servers that copied the protocol know it best.
        "max_completion_tokens" if official else "max_tokens": request.max_output_tokens,
    }
    match form:
        case "json_schema":
            schema = {"name": request.schema_name, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        case "json_object":
            body["response_format"] = {"type": "json_object"}
        case "plain":
            pass
        case _:
            assert_never(form)
    if effort is not None:
        body["reasoning_effort"] = effort
    return body


class _ChatUsage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class _Message(msgspec.Struct):
    #: Some servers send it in parts.
    content: str | list[_Part] | None = None
    refusal: str | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content or ""


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Chat(msgspec.Struct):
    choices: list[_Choice]
    usage: _ChatUsage | None = None


_chat = msgspec.json.Decoder(_Chat)


def _read_chat(reply: _Chat) -> Attempt:
    usage = _chat_usage(reply.usage)
    if not reply.choices:
        return Failed(error=InvalidReply("the reply has no choice"), usage=usage)
    choice = reply.choices[0]
    cut_by = choice.finish_reason if choice.finish_reason in ("length", "content_filter") else None
    return _said(choice.message.text, refusal=choice.message.refusal, cut_by=cut_by, usage=usage)


def _chat_usage(usage: _ChatUsage | None) -> Usage:
    if usage is None:
        return Usage()
    inputs, outputs = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input_tokens=usage.prompt_tokens,
        cached_input_tokens=(inputs.cached_tokens or 0) if inputs else 0,
        output_tokens=usage.completion_tokens,
        reasoning_tokens=(outputs.reasoning_tokens or 0) if outputs else 0,
    )


# --- both

CutBy = Literal["length", "content_filter"] | str | None


def _said(text: str, *, refusal: str | None, cut_by: CutBy, usage: Usage) -> Attempt:
    if cut_by == "content_filter":
        return Failed(error=ModelRefused("the provider's content filter stopped the reply"), usage=usage)
    if refusal:
        return Failed(error=ModelRefused(f"the model refused: {refusal}"), usage=usage)
    if cut_by is not None:
        return Failed(error=InvalidReply(cut_off(cut_by, usage)), usage=usage)
    if not text:
        return Failed(error=InvalidReply("the reply holds no text"), usage=usage)
    return Answered(text=text, usage=usage)


def cut_off(by: str, usage: Usage) -> str:
    """What is told of a reply that its provider ended: a model that goes round in circles uses all that it may."""
    after = f" after {usage.output_tokens:,} tokens" if usage.output_tokens else ""
    return f"the reply was cut off (`{by}`){after}"
