"""What a `LoopbackModel` can be told to do with a request: a closed union, one class per way to behave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import msgspec

Protocol = Literal["responses", "chat", "messages", "gemini"]


class Outline(msgspec.Struct, frozen=True):
    """What a request asks for, without the texts that it carries: to decode these takes longer than all else."""

    model: str | None = None
    stream: bool | None = None
    text: Any = None
    response_format: Any = None


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """One request as it arrived."""

    number: int  #: counts from 1
    path: str
    headers: Mapping[str, str]  #: names in lower case
    body: bytes

    @cached_property
    def json(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.body)
        return decoded

    @cached_property
    def outline(self) -> Outline:
        return msgspec.json.decode(self.body, type=Outline)

    @property
    def protocol(self) -> Protocol:
        path = self.path.partition("?")[0]
        if path.endswith("/chat/completions"):
            return "chat"
        if path.endswith((":generateContent", ":streamGenerateContent")):
            return "gemini"
        return "messages" if path.endswith("/messages") else "responses"

    @property
    def wants_events(self) -> bool:
        """Whether the answer is to come piece by piece."""
        return ":streamGenerateContent" in self.path or bool(self.outline.stream)

    @property
    def user_text(self) -> str:
        """The text of the last user message."""
        body = self.json
        messages = body.get({"responses": "input", "gemini": "contents"}.get(self.protocol, "messages"))
        if isinstance(messages, str):
            return messages
        said = [message for message in messages or () if message.get("role") == "user"]
        content = said[-1]["parts" if self.protocol == "gemini" else "content"] if said else ""
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with text: a string as it is, anything else as JSON."""

    value: object

    @property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else msgspec.json.encode(self.value).decode()


@dataclass(frozen=True, slots=True)
class CallTool:
    """Ask for a tool."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallTools:
    """Ask for several tools at once."""

    calls: tuple[CallTool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """The model itself says no."""

    text: str = "I can't help with that."


@dataclass(frozen=True, slots=True, kw_only=True)
class StopShort:
    """The answer hits a limit: `length` or `content_filter`."""

    text: str = '{"raw_memory": "half a mem'
    reason: Literal["length", "content_filter"] = "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """An HTTP error with the provider's error object."""

    status: int
    message: str = "scripted"
    code: str | None = None
    type: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Exactly these bytes as the body of a 200: JSON that is none, another protocol, anything."""

    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class CutOff:
    """Half of the answer, then the connection is closed."""

    reply: Say


@dataclass(frozen=True, slots=True)
class Hang:
    """Take the request and never answer."""


@dataclass(frozen=True, slots=True)
class NeverEnd:
    """A 200 whose body goes on until the client hangs up."""


@dataclass(frozen=True, slots=True)
class Slowly:
    """The same, after a while."""

    seconds: float
    reply: Reply


Reply = Say | CallTool | CallTools | Refuse | StopShort | Status | SendBytes | CutOff | Hang | NeverEnd | Slowly
