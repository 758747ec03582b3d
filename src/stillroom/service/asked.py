"""A client's request, and how one is refused."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from stillroom.service.dialects import Dialect, error_body
from stillroom.service.http import Head, write_head
from stillroom.service.naming import OURS
from stillroom.service.unpacking import READABLE, TooLarge, Unreadable, unpacker

_REASONS = {
    400: "Bad Request",
    402: "Payment Required",
    403: "Forbidden",
    413: "Content Too Large",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class Refusal(Exception):
    """The request ends here, with an error that the client understands."""

    def __init__(self, status: int, kind: str, message: str, *, outcome: object = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.outcome = status, kind, outcome


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the client, read whole."""

    method: str
    path: str
    tree: str | None
    head: Head
    dialect: Dialect | None
    body: bytes


def refuse(writer: asyncio.StreamWriter, dialect: Dialect | None, refusal: Refusal, *, close: bool = False) -> None:
    """Answer with the error that the client's API would give."""
    body = error_body(dialect, kind=refusal.kind, message=str(refusal), outcome=refusal.outcome)
    headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
    if refusal.kind.startswith("budget_"):
        headers.append(("x-should-retry", "false"))  # the word of OpenAI's and Anthropic's clients
    if close:
        headers.append(("connection", "close"))
    reason = _REASONS.get(refusal.status, "Error")
    writer.write(write_head(f"HTTP/1.1 {refusal.status} {reason}", headers) + body)


def opened(asked: Asked, *, max_bytes: int) -> tuple[Asked, list[tuple[str, str]]]:
    """The request with a body that can be read, and the headers that go on with it. Raises `Refusal`."""
    dropped = ("host", "content-length", "accept-encoding", "expect", *OURS)
    encoding = asked.head.get("content-encoding")
    if not (asked.dialect and encoding):
        return asked, asked.head.passed_on(*dropped)
    packed = unpacker(encoding, max_bytes=max_bytes)
    if packed is None:
        raise Refusal(400, "invalid_request", f"a body in `{encoding}` can't be read")
    try:
        body = packed.feed(asked.body)
    except Unreadable as error:
        raise Refusal(400, "invalid_request", "the body can't be unpacked") from error
    except TooLarge as error:
        raise Refusal(413, "request_too_large", str(error)) from error
    if not packed.is_whole:
        raise Refusal(400, "invalid_request", "the body ends in the middle")
    return replace(asked, body=body), asked.head.passed_on(*dropped, "content-encoding")


def readable_encodings(accepted: str) -> list[str]:
    """What the client can unpack and we can too."""
    wanted = {part.partition(";")[0].strip().lower() for part in accepted.split(",")}
    return [encoding for encoding in READABLE if encoding in wanted]
