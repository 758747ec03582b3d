"""The two texts of a draft, in the formats of spec §1.13. Every line carries its evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from stillroom.offline.session.commands import Command
from stillroom.offline.session.failure import Failure
from stillroom.offline.session.findings import Statement
from stillroom.offline.session.implied import implied
from stillroom.offline.session.outcome import Outcome
from stillroom.offline.session.wish import BARE, LEANING, Wish
from stillroom.offline.sizes import LINE_CHARS, MAX_KEYWORDS, MAX_RAW_MEMORY_BYTES, MAX_SUMMARY_BYTES
from stillroom.offline.text.words import content, identifiers, shorten, unique, weight
from stillroom.pattern import late

# fmt: off
_SHOUTED = frozenset(
    [
        "yes", "not", "none", "null", "true", "false", "fail", "failed", "failure", "pass", "passed",
        "error", "errors", "warn", "warning", "info", "debug", "trace", "fatal", "note", "todo", "fixme",
        "done", "never", "always", "must", "only", "all", "any", "and", "but", "the", "this", "that",
        "stop", "now", "new", "old", "important", "please", "nothing", "everything", "skip", "skipped",
        "assert", "expected", "actual", "received", "got", "build", "success", "critical", "panic", "usage",
        "hint", "caused",
    ]
)
# fmt: on
#: What stands where a secret stood.
_PLACEHOLDER = late(r"\[REDACTED_SECRET[^\]]*\]")
_SHORT_CHANGE = 110
"""A changed line up to this (characters) is told beside its reason."""
_VERBS = {"rule": "asked", "correction": "corrected", "preference": "asked", "decision": "decided", "fact": "said"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNotes:
    """Everything that is known of one task."""

    name: str
    request: str
    commit: str
    group: str  #: project
    cwd: str
    outcome: Outcome
    wishes: Sequence[Wish]
    failures: Sequence[Failure]
    facts: Sequence[Statement]
    disproved: Sequence[Statement]
    open: Sequence[Statement]
    undone: Sequence[str]  #: attempts, with what the user said when they had them undone
    done: Sequence[Statement]
    commands: Sequence[Command]
    files: Sequence[str]


def raw_memory(tasks: Sequence[TaskNotes], *, cwd: str) -> str:
    """The routing text: what is durable, a block a task."""
    first = tasks[0]
    lines = [
        "---",
        f"description: {_yaml(_description(tasks))}",
        f"task: {_yaml(first.name)}",
        f"task_group: {_yaml(first.group)}",
        f"task_outcome: {_worst(tasks)}",
        f"cwd: {_yaml(cwd)}",
        f"keywords: {_yaml(', '.join(keywords(tasks)))}",
        "---",
    ]
    for number, task in enumerate(tasks, 1):
        lines += ["", f"### Task {number}: {task.name}", "", f"task: {task.name}", f"task_group: {task.group}"]
        lines += [f"task_outcome: {task.outcome}", ""]
        lines += _section("Preference signals", map(_wish_line(task), _kept(task.wishes)))
        lines += _section("Reusable knowledge", _knowledge_lines(task))
        lines += _section("Failures and how to do differently", _failure_lines(task))
        lines += _section("References", _references(task))
    return _within(lines, MAX_RAW_MEMORY_BYTES)


def rollout_summary(tasks: Sequence[TaskNotes], *, cwd: str, branch: str | None) -> str:
    """The reference text: the same with the steps that led there."""
    on_branch = f", branch `{branch}`" if branch else ""
    asked = shorten(tasks[0].request, 240)
    lines = [
        f"# {_description(tasks)}",
        "",
        f"Rollout context: in `{cwd}`{on_branch}" + (f"; asked: “{asked}”" if asked else ""),
    ]
    for number, task in enumerate(tasks, 1):
        lines += ["", f"## Task {number}: {task.name}", "", f"Outcome: {task.outcome}", ""]
        lines += _section("Preference signals", map(_wish_line(task), _kept(task.wishes)))
        lines += _section("Key steps", _steps(task))
        lines += _section("Failures and how to do differently", _failure_lines(task))
        lines += _section("Reusable knowledge", _knowledge_lines(task))
        lines += _section("References", _references(task))
    return _within(lines, MAX_SUMMARY_BYTES)


def keywords(tasks: Sequence[TaskNotes]) -> list[str]:
    """Names to search for: commands, files, identifiers."""
    found: list[str] = []
    for task in tasks:
        found += [c.base for c in task.commands[:4]]
        found += [path.rsplit("/", 1)[-1] for path in task.files[:5]]
        for text in [
            *(w.quote for w in task.wishes),
            *(f.error for f in task.failures),
            *(s.text for s in task.facts),
            task.name,
        ]:
            found += [name for name in identifiers(_PLACEHOLDER.sub(" ", text))[:4] if len(name) <= 40]
    if not found:
        found = [word for word in tasks[0].name.split() if len(word) > 3]
    found = [name for name in found if not _says_nothing(name.strip("`'\" "))]
    clean = (name.replace(",", " ").replace("\n", " ").strip("`'\" ") for name in found)
    return unique(name for name in clean if name and len(name) <= 60)[:MAX_KEYWORDS]


def _says_nothing(name: str) -> bool:
    """Whether nobody would search by `name`: a number, an abbreviation ("i.e"), a shouted word ("FAIL", "YES")."""
    if name.replace(".", "").isdigit() or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]?\.?", name):
        return True
    return name.isupper() and name.isalpha() and (len(name) < 3 or name.casefold() in _SHOUTED)


def _kept(wishes: Sequence[Wish]) -> list[Wish]:
    return [w for w in wishes if w.kind != "fact"]


def _wish_line(task: TaskNotes) -> Callable[[Wish], str]:
    def line(wish: Wish) -> str:
        verb = _VERBS[wish.kind]
        quote = f'"{wish.quote}"'
        if wish.about.startswith("agreed to "):
            # A bare yes is no words to keep.
            short = weight(content(wish.quote))
            said = quote if short >= LEANING else wish.quote
            text = f"the user {wish.about}: {said}" if short >= 2 else f"the user {wish.about}"
        elif wish.about:
            # Few words are no quotation: they say nothing without what they refer to.
            said = quote if weight(content(wish.quote)) >= LEANING else wish.quote
            text = f"{wish.about}, the user {verb}: {said}"
        else:
            bare = wish.seen and weight(content(wish.quote)) <= BARE
            text = f"the user {verb}: {wish.quote if bare else quote}"
        if wish.seen:
            text += f" ({wish.seen})"
        for change in wish.amended:
            text += f", then changed it: {change}"
        if wish.replaced:
            text += " (they had said otherwise before)"
        tail = f" -> {implied(wish, task.group)}"
        return f"- {shorten(text, LINE_CHARS - len(tail) - 2)}{tail}"

    return line


def _told_line(wish: Wish) -> str:
    about = f"{wish.about}, " if wish.about else ""
    seen = f" ({wish.seen})" if wish.seen else ""
    return f'- {about}the user said: "{wish.quote}"{seen}'


def _fact_line(fact: Statement) -> str:
    seen = ", ".join(f"`{name}`" for name in fact.confirmed[:3])
    return (
        f"- {fact.text} (found by the assistant; seen in tool output: {seen})"
        if seen
        else f"- {fact.text} (found by the assistant)"
    )


def _knowledge_lines(task: TaskNotes) -> list[str]:
    told = [_told_line(wish) for wish in task.wishes if wish.kind == "fact"]
    answers = [_answer_line(failure) for failure in task.failures if failure.asked]
    return [*told, *answers, *map(_fact_line, task.facts)]


def _answer_line(asked: Failure) -> str:
    told = " ".join(cause.text for cause in asked.causes)
    return f"- {shorten(f'asked “{asked.reported}”, the assistant found: {told}', LINE_CHARS)}"


def _failure_lines(task: TaskNotes) -> list[str]:
    lines = [_failure_line(failure) for failure in task.failures if not failure.asked]
    lines += [f"- disproved, not the cause: {shorten(s.text, 300)}" for s in task.disproved]
    lines += [f"- tried and reverted (taken back by the user): {text}" for text in task.undone]
    lines += [f"- left open: {s.text}" for s in task.open]
    return lines


def _failure_line(failure: Failure) -> str:
    code = f" (exit {failure.exit_code})" if failure.exit_code else ""
    if failure.reported:
        line = f'- the user reported: "{failure.reported}"' if failure.worded else "- found by the assistant"
    else:
        line = f"- `{shorten(failure.command, 100)}` failed{code}"
    if failure.error:
        line += f": {failure.error}"
    tail = ""
    if failure.told:
        tail += f' | the user: "{failure.told}"'
    if failure.files:
        tail += " | fixed in " + ", ".join(f"`{path}`" for path in failure.files[:3])
        if failure.change and (not failure.causes or len(failure.change) <= _SHORT_CHANGE):
            tail += f" (`{failure.change}`)"
    if failure.remedy:
        tail += f" | what helped: `{shorten(failure.remedy, 100)}`"
    tail += _check(failure)
    if failure.causes:
        room = max(80, LINE_CHARS - len(line) - len(tail) - len(" | cause: "))
        line += f" | cause: {shorten(' '.join(cause.text for cause in failure.causes), room)}"
    return line + tail


def _check(failure: Failure) -> str:
    """What showed that it was solved."""
    if not failure.resolved:
        endings = {"failing": " | still failing when the session ended", "unseen": " | no later run seen", "": ""}
        return "" if failure.reported else endings[failure.ending]
    if failure.reported:
        return f" | check: `{shorten(failure.passed, 100)}` passed"
    return f" | what worked: `{shorten(failure.passed, 100)}`" if failure.other_command else " | then passed"


def _steps(task: TaskNotes) -> list[str]:
    lines = [f"- {shorten(s.text, 300)}" for s in task.done[:6]]
    if task.files:
        lines.append("- changed " + ", ".join(f"`{path}`" for path in task.files))
    if task.commit:
        lines.append(f"- committed as “{shorten(task.commit, 120)}”")
    return lines


def _references(task: TaskNotes) -> list[str]:
    lines = []
    for command in task.commands:
        times = f", {command.runs} times" if command.runs > 1 else ""
        result = f": {command.result}" if command.result else ""
        where = f" in `{command.workdir}`" if command.workdir and command.workdir != task.cwd else ""
        told = ", named by the user" if command.told else ""
        lines.append(f"`{command.text}`{where} -> passed{times}{told}{result}")
    if task.files:
        lines.append("files: " + ", ".join(f"`{path}`" for path in task.files))
    if task.commit:
        lines.append(f"commit: {shorten(task.commit, 120)}")
    return [f"- [{number}] {line}" for number, line in enumerate(lines, 1)]


def _section(title: str, lines: Iterable[str]) -> list[str]:
    kept = unique(lines)
    return [f"{title}:", *kept] if kept else []


def _description(tasks: Sequence[TaskNotes]) -> str:
    names = "; ".join(shorten(task.name, 80) for task in tasks[:3])
    return f"{names} ({_worst(tasks)})"


def _worst(tasks: Sequence[TaskNotes]) -> Outcome:
    outcomes = {task.outcome for task in tasks}
    if len(outcomes) == 1:
        return tasks[0].outcome
    return "partial" if outcomes & {"success", "partial"} else "fail" if "fail" in outcomes else "uncertain"


def _yaml(text: str) -> str:
    return " ".join(text.split())


def _within(lines: Sequence[str], limit: int) -> str:
    """The lines that fit; headings and bullets are dropped from the end, never cut inside."""
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode("utf-8", "replace")) + 1
        if size > limit - 60:
            kept.append("- (more was found than fits here)")
            break
        kept.append(line)
    return "\n".join(kept).strip() + "\n"
