"""An answer in parts (`extraction_output = "structured"`): the model says each thing once, code writes the texts.

What a model can get wrong is checked here: a quote stands in what the person said, to the letter, or it is not told;
what held once, or for one task, is no standing preference; what was taken back is labelled or goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec

from stillroom.pattern import late
from stillroom.store.records import Stage1Draft
from stillroom.thread import Thread

Scope = Literal["always", "project", "task", "once"]


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """What the person wants."""

    quote: str
    situation: str = ""
    default: str = ""
    scope: str = "task"  #: a `Scope`; any other word is narrow
    replaces: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out."""

    text: str
    known_by: str = "assistant"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, and the way around it."""

    sign: str
    cause: str = ""
    remedy: str = ""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the person set, and all that is known of it."""

    name: str
    outcome: str = "uncertain"
    preferences: tuple[Preference, ...] = ()
    findings: tuple[Finding, ...] = ()
    failures: tuple[Failure, ...] = ()
    commands: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    tasks: tuple[Task, ...]
    context: str = ""
    slug: str | None = None


def _object(**properties: object) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: object) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string"}
SCHEMA_NAME = "stillroom_tasks"
SCHEMA = _object(
    context=_TEXT,
    slug=_TEXT,
    tasks=_list(
        _object(
            name=_TEXT,
            outcome={"type": "string", "enum": ["success", "partial", "fail", "uncertain"]},
            preferences=_list(
                _object(
                    situation=_TEXT,
                    quote=_TEXT,
                    default=_TEXT,
                    scope={"type": "string", "enum": ["always", "project", "task", "once"]},
                    replaces=_TEXT,
                )
            ),
            findings=_list(_object(text=_TEXT, known_by={"type": "string", "enum": ["person", "tool", "assistant"]})),
            failures=_list(_object(sign=_TEXT, cause=_TEXT, remedy=_TEXT)),
            commands=_list(_TEXT),
            steps=_list(_TEXT),
            references=_list(_TEXT),
        )
    ),
)

_OUTCOMES = ("fail", "partial", "uncertain", "success")
_STANDING = frozenset({"always", "project"})
_LINE_CHARS = 480
_ELLIPSIS = late(r"\s*(?:\[?(?:…|\.\.\.)\]?)\s*")
_CLAUSE = late(r"[.,;:!?。，；！？\n]+")
_SIGNS = str.maketrans("‘’‚‛“”„‟«»`´–—\u00a0", "''''\"\"\"\"\"\"''-- ")
_NAME = late(
    r"`([^`\n]{2,40})`|\b([A-Z][A-Za-z]*(?:Error|Exception)|[A-Z][A-Z0-9_]{3,})\b"
    r"|(?<![\w./-])((?:[\w.-]+/)*[\w-]+\.[a-z][a-z0-9]{0,5})(?![\w/-])"
)
_SHORT_WORDS = 3
_SHORT_LETTERS = 8
_KEYWORDS = 24


def drafted(parts: Parts, thread: Thread, said: Callable[[], Iterable[str]]) -> Stage1Draft | None:
    """The two texts of the seeds' form; None where there is nothing to tell and nothing to keep. `said` is asked for
    the person's messages when there is a quote to look for."""
    if not any(_has_words(task) for task in parts.tasks):
        return None
    quotes = any(task.preferences for task in parts.tasks)
    heard = _Heard(said()) if quotes else _Heard(())
    replaced = [each.replaces for task in parts.tasks for each in task.preferences if each.replaces.strip()]
    tasks = [_Written(task, heard, replaced) for task in parts.tasks if _has_words(task)]
    return Stage1Draft(
        raw_memory=_raw_memory(tasks, thread),
        rollout_summary=_summary(tasks, parts.context),
        rollout_slug=parts.slug,
    )


def _has_words(task: Task) -> bool:
    said = (task.preferences, task.findings, task.failures, task.commands, task.steps, task.references)
    return any(said)


class _Heard:
    """What the person said."""

    def __init__(self, messages: Iterable[str]) -> None:
        self._messages = [_plain(text) for text in messages]
        self._clauses = {clause.strip() for text in self._messages for clause in _CLAUSE.split(text)}

    def has(self, quote: str) -> bool:
        """Whether one message has these words, in their order where something is left out between them. A word or two
        may stand anywhere: they have to be all of a clause."""
        pieces = [piece.strip(" .,;:!?\"'") for piece in _ELLIPSIS.split(_plain(quote))]
        pieces = [piece for piece in pieces if piece]
        if not pieces:
            return False
        if len(pieces) == 1 and _is_short(pieces[0]):
            return pieces[0] in self._clauses
        return any(_in_order(pieces, text) for text in self._messages)


def _plain(text: str) -> str:
    return " ".join(text.translate(_SIGNS).casefold().split())


def _is_short(text: str) -> bool:
    return len(text.split()) < _SHORT_WORDS and len(text) < _SHORT_LETTERS


def _in_order(pieces: Sequence[str], text: str) -> bool:
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


class _Written:
    """A task as lines: what is told, and what is evidence."""

    def __init__(self, task: Task, heard: _Heard, replaced: Sequence[str]) -> None:
        self.name = _line(task.name) or "work"
        self.outcome = task.outcome if task.outcome in _OUTCOMES else "uncertain"
        self.preferences: list[str] = []
        self.momentary: list[str] = []
        for each in task.preferences:
            self._prefer(each, heard, replaced)
        # A command that works is knowledge: references are only looked up.
        self.findings = [_found(each) for each in task.findings if each.text.strip()]
        self.findings += [_line(each) for each in task.commands if each.strip()]
        self.failures = [_failed(each) for each in task.failures if each.sign.strip() or each.remedy.strip()]
        self.steps = [_line(each) for each in task.steps if each.strip()]
        self.references = [f"[{number}] {_line(each)}" for number, each in enumerate(task.references, 1)]

    def _prefer(self, each: Preference, heard: _Heard, replaced: Sequence[str]) -> None:
        default = _line(each.default)
        if not heard.has(each.quote):
            if default:
                self.momentary.append(f"{default} (no words of the person for it were found)")
            return
        old = each.replaces
        # A question was no wish that could be taken back.
        taken_back = _line(old) if heard.has(old) and not old.rstrip().endswith(("?", "？")) else ""
        line = f'{_line(each.situation) or "the person said"}: "{_line(each.quote)}"'
        line += f' (replaces: "{taken_back}")' if taken_back else ""
        line += f" -> {default}" if default else ""
        if any(_plain(old) in _plain(each.quote) for old in replaced if old is not each.replaces):
            self.momentary.append(f"{line} (taken back later)")
        elif each.scope in _STANDING:
            self.preferences.append(line)
        else:
            self.momentary.append(f"{line} ({'one-off' if each.scope == 'once' else 'for this task'})")

    @property
    def told(self) -> list[str]:
        """All lines that later sessions are told."""
        return [*self.preferences, *self.findings, *self.failures, *self.references]


def _found(finding: Finding) -> str:
    text = _line(finding.text)
    match finding.known_by:
        case "tool":
            return text
        case "person":
            return f"{text} (the person said so)"
        case _:
            return f'The assistant found: "{text}"'


def _failed(failure: Failure) -> str:
    remedy, sign, cause = _line(failure.remedy), _line(failure.sign), _line(failure.cause)
    because = f" ({cause})" if cause else ""
    if not remedy:
        return f"{sign}{because}"
    remedy = remedy[0].upper() + remedy[1:].rstrip(".")
    return f"{remedy} when {sign}{because}" if sign else f"{remedy}{because}"


def _raw_memory(tasks: Sequence[_Written], thread: Thread) -> str:
    group = PurePosixPath(thread.cwd).name or "unknown"
    description = "; ".join(f"{task.name} ({task.outcome})" for task in tasks)[:_LINE_CHARS]
    worst = min((task.outcome for task in tasks), key=_OUTCOMES.index)
    lines = [
        "---",
        f"description: {description}",
        f"task: {tasks[0].name}",
        f"task_group: {group}",
        f"task_outcome: {worst}",
        f"cwd: {thread.cwd or 'unknown'}",
        f"keywords: {', '.join(_keywords(tasks))}",
        "---",
    ]
    for number, task in enumerate(tasks, 1):
        lines += ["", f"### Task {number}: {task.name}", "", f"task: {task.name}", f"task_group: {group}"]
        lines += [f"task_outcome: {task.outcome}", ""]
        lines += _section("Preference signals", task.preferences)
        lines += _section("Reusable knowledge", task.findings)
        lines += _section("Failures and how to do differently", task.failures)
        lines += _section("References", task.references)
    return "\n".join(lines).rstrip("\n") + "\n"


def _summary(tasks: Sequence[_Written], context: str) -> str:
    lines = [f"# {'; '.join(task.name for task in tasks)[:_LINE_CHARS]}", "", f"Rollout context: {_line(context)}"]
    for number, task in enumerate(tasks, 1):
        lines += ["", f"## Task {number}: {task.name}", "", f"Outcome: {task.outcome}", ""]
        lines += _section("Preference signals", task.momentary)
        lines += _section("Key steps", task.steps)
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"- {line}" for line in dict.fromkeys(lines)), ""] if lines else []


def _keywords(tasks: Sequence[_Written]) -> list[str]:
    text = "\n".join(line for task in tasks for line in task.told)
    names = (match[1] or match[2] or match[3] for match in _NAME.finditer(text))
    return list(dict.fromkeys(" ".join(name.replace(",", " ").split()) for name in names))[:_KEYWORDS]


def _line(text: str) -> str:
    """A part makes no line, section or field of its own, and no more of one than there is room for."""
    line = re.sub(r"^(?:[-*#>\s]|\d+[.)]\s)+", "", " ".join(text.split()))
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1].rstrip() + "…"
