"""The words that phase 1 sends: `system.md` as it is, `input.md` with its variables filled in (spec §1.13, §1.14)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from stillroom.config import ExtractionInput, ExtractionOutput
from stillroom.extract import structured
from stillroom.extract.schema import SCHEMA, SCHEMA_NAME
from stillroom.sessions.rendered import Rendered
from stillroom.template import render
from stillroom.thread import Thread

_FORMS: dict[ExtractionInput, str] = {
    "string": "a JSON array of its items",
    "evidence": "one row for each item, its label in square brackets at the start of a line and the rest indented",
}
#: What is asked for, and what is right where there is nothing.
_ANSWERS: dict[ExtractionOutput, tuple[str, str]] = {
    "text": ("`raw_memory`, `rollout_summary` and `rollout_slug`", "three empty strings are"),
    "structured": ("`context`, `slug` and `tasks`", "an empty list of `tasks` is"),
}
_VERSION_DIGITS = 12
#: Fewer than the four of a cut text: it must fit as small models count, too.
_BYTES_PER_TOKEN = 3


@cache
def system_prompt(output: ExtractionOutput = "text") -> str:
    """The instructions, the same in every request."""
    words = _read("system.md")
    if output == "text":
        return words
    return words.partition("# The answer\n")[0] + _read("structured.md")


def input_prompt(
    thread: Thread,
    rendered: Rendered,
    *,
    form: ExtractionInput,
    redact: Callable[[str], str],
    output: ExtractionOutput = "text",
) -> str:
    """The question about one thread. What was cut of it is said ahead of its contents."""
    fields, way_out = _ANSWERS[output]
    return render(
        _read("input.md"),
        fields=fields,
        way_out=way_out,
        rollout_form=_FORMS[form],
        rollout_path=_one_line(redact(thread.rollout_path)),
        rollout_cwd=_one_line(redact(thread.cwd)),
        git_branch=_one_line(redact(thread.git_branch or "unknown")),
        started=_minute(thread.created_at_ms),
        ended=_minute(thread.updated_at_ms),
        rollout_contents=rendered.text,
        rollout_note=f"{rendered.note}\n" if rendered.note else "",
    )


def all_words() -> str:
    """What requests say, whatever the thread and the answer."""
    return "\n".join([system_prompt(), system_prompt("structured"), _read("input.md")])


def prompt_tokens(output: ExtractionOutput = "text") -> int:
    """How much of a window these words take, generously."""
    return len((system_prompt(output) + _read("input.md")).encode()) // _BYTES_PER_TOKEN


def prompt_version(form: ExtractionInput, output: ExtractionOutput = "text") -> str:
    """Which words these are: a hash of all that is the same for every thread, so that a result can be told from one by
    other words."""
    schema = SCHEMA if output == "text" else structured.SCHEMA
    texts = "\0".join((system_prompt(output), _read("input.md"), _FORMS[form], SCHEMA_NAME, json.dumps(schema)))
    return hashlib.sha256(texts.encode()).hexdigest()[:_VERSION_DIGITS]


@cache
def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _minute(at_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(at_ms / 1000, tz=UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "unknown"


def _one_line(text: str) -> str:
    """A path with a line break in it must not write lines of its own."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)
