"""Which turns belong to one task, and what it is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stillroom.offline import cues
from stillroom.offline.session import shell
from stillroom.offline.session.turns import Turn
from stillroom.offline.sizes import MAX_TASKS
from stillroom.offline.text import words
from stillroom.pattern import late
from stillroom.rollouts.events import Said

_COMMIT = late(r"(?:^|\s)(?:-[a-z]*m|--message)(?:\s+|=)(?:\"((?:\\.|[^\"\\])*)\"|'([^']*)'|(\S+))", re.DOTALL)
_TITLE = late(r"(?:-t|--title)(?:\s+|=)(?:\"((?:\\.|[^\"\\])*)\"|'([^']*)'|(\S+))", re.DOTALL)
_HEREDOC_SUBJECT = late(r"<<-?\s*['\"]?\w+['\"]?\s*\n\s*(\S[^\n]*)")


_NEAR = 12
"""Turns whose files still tell what a task is about; all of a long one would cost their square."""


@dataclass(frozen=True, slots=True)
class Task:
    """Turns about one thing."""

    name: str
    turns: tuple[Turn, ...]
    request: str  #: the first request, in the user's words
    commit: str  #: subject of its last commit, or the PR title


def split(turns: Sequence[Turn]) -> list[Task]:
    """Tasks of a session, in order. A new one begins where the user says so, on a subject of its own."""
    groups: list[list[Turn]] = []
    for turn in turns:
        if groups and len(groups) < MAX_TASKS and _begins_another(turn, groups[-1]):
            groups.append([turn])
        elif groups:
            groups[-1].append(turn)
        else:
            groups.append([turn])
    return [_task(group) for group in groups]


def _begins_another(turn: Turn, current: Sequence[Turn]) -> bool:
    if not turn.sentences or not turn.steps:
        return False
    opening = turn.sentences[0]
    if cues.opens("correction", opening, turn.spoken) or not cues.has("request", turn.text[:300], turn.spoken):
        return False
    own = words.content(turn.text[:500])
    if len(own) < 4:
        return False
    before = words.content(
        " ".join([*(t.text[:400] for t in current[-6:]), *(p for t in current[-_NEAR:] for p in t.edited[:20])])
    )
    announced = cues.opens("transition", opening, turn.spoken) > 0 or cues.opens("thanks", opening, turn.spoken) > 0
    closed = _commit_subject(current[-1]) != ""
    common = words.overlap(own, before)
    return common < (0.2 if announced or closed else 0.05)


def _task(group: list[Turn]) -> Task:
    request = _request(group[0])
    commit = next((s for s in (_commit_subject(t) for t in reversed(group)) if s), "")
    name = words.shorten(commit or request or group[0].pasted or _set_by_agent(group[0]), 120)
    return Task(name=name, turns=tuple(group), request=request, commit=commit)


def _set_by_agent(turn: Turn) -> str:
    """What another agent asked for where no person did: a name for the work, and nobody's wish."""
    if turn.messages:
        return ""
    return next((step.text for step in turn.steps if isinstance(step, Said) and step.who == "agent"), "")


def _request(turn: Turn) -> str:
    """The first request without its greeting."""
    for sentence in turn.sentences:
        stripped = sentence
        for _ in range(3):
            length = cues.opens("greeting", stripped, turn.spoken)
            if not length or re.match(r"\w", stripped[length:] or " "):
                break
            stripped = stripped[length:].lstrip(" ,.!-–—、。！:：")
        if len(words.content(stripped)) >= 2:
            return stripped.rstrip(" .。!！?？")
    return (turn.sentences[0] if turn.sentences else turn.text[:80]).rstrip(" .。!！?？")


def _commit_subject(turn: Turn) -> str:
    subject = ""
    for run in turn.runs:
        if not run.command or (run.exit_code not in (0, None)) or run.ok is False:
            continue
        for part in shell.parts(run.command):
            head = part.head
            if re.match(r"^(?:\S+=\S+\s+)*git\s+(?:-\S+\s+\S+\s+)*commit\b", head):
                subject = _first(_HEREDOC_SUBJECT, head) or _first(_COMMIT, head) or subject
            elif re.match(r"^(?:gh\s+pr|glab\s+mr)\s+create\b", head):
                subject = subject or _first(_TITLE, head)
    return subject


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    if not match:
        return ""
    value = next((group for group in match.groups() if group), "")
    return "" if value.startswith("$(") else value.split("\n", 1)[0].strip()
