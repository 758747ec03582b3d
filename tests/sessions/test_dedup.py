"""What a fork repeats of a session is known by hashes of what was said, and nothing else is taken for it."""

from __future__ import annotations

import json

from stillroom.sessions.dedup import exchanges, without_exchanges
from stillroom.sessions.item import Item

ASKED = "Why does the export fail for orders without a customer?"
FOUND = "Because `customer_id` is null there, and the writer takes its length."


def message(role: str, text: str) -> Item:
    raw = json.dumps({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})
    return Item(type="message", role=role, raw=raw.encode(), timestamp_ms=None, line_no=0)


def call(command: str) -> Item:
    raw = json.dumps({"type": "function_call", "name": "shell", "arguments": command})
    return Item(type="function_call", role=None, raw=raw.encode(), timestamp_ms=None, line_no=0)


CONTEXT = message("user", "<environment_context>\n<cwd>/work</cwd>\n</environment_context>")
ORIGIN = [
    CONTEXT,
    message("user", ASKED),
    call("pytest -k export"),
    message("assistant", FOUND),
    call("git diff"),
    message("user", "go on"),
    message("assistant", "Done."),
]
KNOWN = set(exchanges(ORIGIN, limit=100))


def kept(items: list[Item]) -> list[Item]:
    return list(without_exchanges(items, KNOWN.__contains__))


def test_a_fork_keeps_what_is_new_in_it() -> None:
    new = [message("user", "Now write a test for it."), call("pytest"), message("assistant", "There is one.")]
    assert kept([*ORIGIN[:5], *new]) == [CONTEXT, *new]
    assert kept([*new, *ORIGIN[1:5]]) == new
    assert kept(ORIGIN[:5]) == [CONTEXT]


def test_another_session_with_the_same_request_is_no_fork() -> None:
    other = [CONTEXT, message("user", ASKED), call("pytest -k export"), message("assistant", "It does not fail here.")]
    assert kept(other) == other


def test_what_is_said_in_many_sessions_tells_nothing() -> None:
    other = [message("user", "Rename the module."), *ORIGIN[5:]]
    assert kept(other) == other


def test_so_many_are_kept_and_no_more() -> None:
    assert len(exchanges((message("user", f"{ASKED} {number}") for number in range(99)), limit=5)) == 5
