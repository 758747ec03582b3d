"""Choices that no cue tells, but the edits do: words of the user that an edit put where other words had stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stillroom.offline import cues
from stillroom.offline.session import kinds, overwritten, unmeant
from stillroom.offline.session.checkout import changed
from stillroom.offline.session.overwritten import Overwritten
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import Wish
from stillroom.offline.sizes import QUOTE_CHARS
from stillroom.offline.text import mentions, words
from stillroom.offline.text.secrets import gives_secret

_MOST_WORDS = 14.0
"""A longer sentence tells more than a choice (in words)."""
_LEAST_LETTERS = 3
"""A shorter word stands in many a line by chance."""


def find(turns: Sequence[Turn], put_over: Mapping[int, Overwritten], told: frozenset[int]) -> list[Wish]:
    """The choices of turns from which no wish was taken (`told` has those from which one was)."""
    found: list[Wish] = []
    come: dict[int, frozenset[str]] = {}
    for over in put_over.values():
        come[over.by] = come.get(over.by, frozenset()) | over.come
    moved = {turn: (old, new) for turn, old, new in overwritten.renamed(turns)}
    for number, (old, name) in moved.items():
        come[number] = come.get(number, frozenset()) | (words.pieces(name) - words.pieces(old))
    for turn in turns[1:]:
        if turn.number in told or not (turn.edited or turn.number in moved):
            continue
        new = come.get(turn.number, frozenset())
        for sentence in turn.sentences[:4]:
            quoted = mentions.quoted(sentence)
            clauses = [c for c in kinds.CLAUSES.split(mentions.without(sentence)) if _chooses(c, turn.spoken)]
            own = frozenset(w for c in clauses for w in words.content(c) if len(w) >= _LEAST_LETTERS and w.isalpha())
            if not clauses or not _may_choose(sentence, turn.spoken):
                continue
            line = _line(turn, own & new, quoted)
            if not line and turn.number in moved and own & new & words.pieces(moved[turn.number][1]):
                line = f"now `{moved[turn.number][1]}`"
            if line:
                quote = words.shorten(sentence, QUOTE_CHARS)
                found.append(
                    Wish(turn.number, "decision", quote, seen=line, changes=True, subject=words.content(quote))
                )
                break
    return found


def _may_choose(sentence: str, spoken: tuple[str, ...]) -> bool:
    if kinds.is_question(sentence, spoken) or kinds.is_passing(sentence, spoken) or gives_secret(sentence):
        return False
    return not unmeant.is_trial(sentence, spoken) and kinds.own_weight(sentence, spoken) <= _MOST_WORDS


def _chooses(clause: str, spoken: tuple[str, ...]) -> bool:
    return not any(cues.has(kind, clause, spoken) for kind in ("problem", "broken", "takeback", "thanks"))


def _line(turn: Turn, chosen: frozenset[str], quoted: Sequence[str]) -> str:
    """The added line that holds a chosen word, or what the user put in quotation marks."""
    for run in turn.runs:
        if run.ok is False:
            continue
        for edit in run.edits:
            for line in changed(edit)[0]:
                if gives_secret(line):
                    continue
                if chosen & words.pieces(line) or any(text in line for text in quoted):
                    return f"now `{words.shorten(line.replace('`', ''), 100)}` in `{edit.path}`"
    return ""
