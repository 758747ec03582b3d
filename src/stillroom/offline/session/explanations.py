"""Why something failed, read from where it stands: the assistant says it right before the edit that mended it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stillroom.offline import cues
from stillroom.offline.session import kinds
from stillroom.offline.session.failure import Failure
from stillroom.offline.session.findings import Found, Statement
from stillroom.offline.session.turns import Turn
from stillroom.offline.text import words

_CAUSE_SENTENCES = 3
_OF_IT = 2.0
"""A closing word shares this much with a failure that it is on (in words)."""


def with_causes(failures: list[Failure], turns: Sequence[Turn], found: Found) -> list[Failure]:
    """Give each failure the sentences that explain it, each sentence to one failure only."""
    taken: set[str] = set()
    out: list[Failure] = []
    for number, failure in enumerate(failures):
        start = (failure.turn, failure.step)
        end = (
            (failure.passed_turn, failure.passed_step)
            if failure.resolved
            else (failure.turn, len(turns[failure.turn].steps))
        )
        near = words.content(" ".join([failure.error, failure.command, *failure.files]))
        telling = " ".join([failure.error, *failure.files, *(c.text for c in failure.causes)])
        named = words.content(telling) | words.pieces(telling)
        rivals = [f for f in failures[number + 1 :] if (f.turn, f.step) < end]
        inside = [s for s in found.said if start < (s.turn, s.step) < end and s.text not in taken]
        causes = explanation(inside, near, rivals)
        if not causes and failure.resolved:
            after = [s for s in found.said if end <= (s.turn, s.step) and s.turn == end[0] and s.text not in taken]
            causes = [s for s in after if s.causal and s.tone == "plain" and s.content & near][:1]
        if not causes and not failure.resolved:
            # "FTP was denied, SFTP with the key works": said when another way had been found.
            of = words.pieces(f"{failure.error} {failure.command}")
            causes = [s for s in inside if s.tone == "done" and words.weight(words.pieces(s.text) & of) >= _OF_IT][:1]
        taken.update(s.text for s in causes)
        out.append(
            replace(
                failure, causes=tuple(causes), told=_explained(failure, named - words.content(failure.command), turns)
            )
        )
    return out


def _explained(failure: Failure, named: frozenset[str], turns: Sequence[Turn]) -> str:
    """The user's own word on a failure that the turn ended with."""
    if failure.turn + 1 >= len(turns) or (failure.resolved and failure.passed_turn == failure.turn):
        return ""
    turn = turns[failure.turn + 1]
    for sentence in turn.sentences[:4]:
        if sentence.endswith(("?", "？")) or cues.opens("request", sentence, turn.spoken):
            continue
        if kinds.has_own_rule(sentence, turn.spoken) or kinds.is_passing(sentence, turn.spoken):
            # What they want from now on is no word on what failed.
            continue
        content = words.content(sentence)
        if words.weight(content) >= 3 and words.weight((content | words.pieces(sentence)) & named) >= 1:
            return words.shorten(sentence, 200)
    return ""


def explanation(said: Sequence[Statement], near: frozenset[str], rivals: Sequence[Failure]) -> list[Statement]:
    """The sentences of the last message that says what is wrong, unless they are nearer to a later failure."""
    messages: dict[tuple[int, int], list[Statement]] = {}
    for statement in said:
        messages.setdefault((statement.turn, statement.step), []).append(statement)
    for place in sorted(messages, reverse=True):
        rival = next((r for r in reversed(rivals) if (r.turn, r.step) < place), None)
        told = _told(messages[place])
        if not told:
            continue
        if rival is not None:
            theirs = words.content(" ".join([rival.error, rival.command, *rival.files]))
            about = frozenset().union(*(s.content for s in told))
            if len(about & near) <= len(about & theirs):
                continue
        return told
    return []


def _told(message: Sequence[Statement]) -> list[Statement]:
    """Of one message, what explains: plain sentences, or a guess that names a cause when there is nothing plainer."""
    first = next((i for i, s in enumerate(message) if s.tone in ("plain", "unfinished")), None)
    if first is not None:
        # What it says it will do about it is part of the story: it was done, and the check passed.
        told = [s for s in message[first:] if s.tone != "disproved"]
        # What it only wants to try may have been undone since, and what it counted is another number tomorrow.
        return ([s for s in told if not (s.trial or s.reading)] or told)[:_CAUSE_SENTENCES]
    guesses = [s for s in message if (s.tone == "hypothesis" and _is_whole(s)) or (s.tone == "done" and s.causal)]
    return guesses[:_CAUSE_SENTENCES] or [s for s in message if s.tone == "intention" and says_more(s)][:1]


def _is_whole(said: Statement) -> bool:
    return words.weight(said.content) >= 2.5


def says_more(said: Statement) -> bool:
    """An intention that also says why ("X refuses both, so I'll convert the old one")."""
    return words.weight(said.content) >= 8
