"""Values that one turn wrote and a later one wrote over, where no wish tells of it: the last one is what was chosen."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.offline import cues
from stillroom.offline.session import settings, stance
from stillroom.offline.session.checkout import Line, lines_of
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import LEANING, Wish
from stillroom.offline.sizes import QUOTE_CHARS
from stillroom.offline.text import words
from stillroom.offline.text.secrets import gives_secret


def find(turns: Sequence[Turn], dead: Sequence[settings.Dead], told: frozenset[int]) -> list[Wish]:
    """The choices of turns from which no wish was taken (`told` has those from which one was)."""
    found: list[Wish] = []
    for number in sorted({value.heir for value in dead} - told):
        turn = turns[number]
        line = _last_line(turn, turns[number + 1 :], {v.value for v in dead if v.heir == number})
        said = _said(turn, turns[number - 1], line[1]) if line is not None else ""
        if line is not None and said and not gives_secret(line[1]) and not gives_secret(said):
            seen = f"now `{words.shorten(line[1].replace('`', ''), 100)}` in `{line[0]}`"
            quote = words.shorten(said, QUOTE_CHARS)
            found.append(Wish(number, "decision", quote, seen=seen, changes=True, subject=words.content(quote)))
    return found


def _said(turn: Turn, before: Turn, line: str) -> str:
    """The words that asked for `line`: those with its number, or a message of few words; "" for a complaint."""
    if stance.takes_back(turn) or stance.denies(turn, before) or cues.has("broken", turn.text[:300], turn.spoken):
        return ""
    values = settings.numbers_of(line)
    numbered = [s for s in turn.sentences if settings.numbers_of(s)]
    same = [s for s in numbered if values & settings.numbers_of(s)]
    lasting = [s for s in numbered if not cues.has("perishable", s, turn.spoken)]
    if told := same or lasting:
        return told[-1]
    return turn.text if words.weight(words.content(turn.text)) <= LEANING else ""


def _last_line(turn: Turn, later: Sequence[Turn], gone: set[float]) -> Line | None:
    """The line with which `turn` wrote the values `gone` over, if it stands to the end."""
    for edit in (e for run in turn.runs if run.ok is not False for e in run.edits):
        added, removed = lines_of(edit)
        if not any(gone & settings.numbers_of(text) for _, text in removed):
            continue
        for line in sorted(added):
            if settings.numbers_of(line[1]) and not any(line in _removed(t) for t in later):
                return line
    return None


def _removed(turn: Turn) -> set[Line]:
    return set().union(*(lines_of(e)[1] for run in turn.runs if run.ok is not False for e in run.edits))
