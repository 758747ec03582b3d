"""The user's side of a session: what they want, and what later words and edits make of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stillroom.offline import cues
from stillroom.offline.session import (
    chosen,
    files,
    heeded,
    kinds,
    overwritten,
    referents,
    settings,
    settled,
    shell,
    stance,
    unsaid,
    values,
)
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import Wish, amended, amends, distinct, without_replaced
from stillroom.offline.session.wishes import wishes_of
from stillroom.offline.text import words
from stillroom.rollouts.events import Ran

_SOON_TURNS = 2
"""What is objected to was set at most this many turns before."""
_TALK_TURNS = 3
"""Of a talk before the work, this many turns back are remembered."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user's side of a session says."""

    wishes: tuple[Wish, ...]
    #: Turns whose work was undone, with the turn that did it.
    undone: dict[int, int]
    #: Words of what the user turned down, by the turn that had offered it.
    turned_down: tuple[tuple[int, frozenset[str]], ...]
    #: Turns whose diagnosis the user's next message contradicts.
    contradicted: frozenset[int]
    #: Values by the turn that wrote them into a file where a later one wrote others.
    dead: tuple[settings.Dead, ...]
    #: Lines by the turn that wrote them, where a later one wrote others in their place.
    rewritten: dict[int, tuple[str, ...]]
    #: Words of what no longer holds, with the turn from which on.
    outdated: tuple[tuple[int, frozenset[str]], ...]


def listen(turns: list[Turn]) -> Heard:
    """Every wish, in order, without those that a later one of the same session replaces."""
    wishes: list[Wish] = []
    undone: dict[int, int] = {}
    contradicted: set[int] = set()
    turned_down: list[tuple[int, frozenset[str]]] = []
    taken_back, put_over = overwritten.find(turns)
    given = settings.find(turns, taken_back)
    given_in = settings.by_turn(given)
    for turn in turns:
        before = _before(turns, turn.number)
        if before is not None:
            if stance.rejects(turn):
                turned_down += [(before.number, words.content(offer)) for offer in referents.offers(before)]
            if stance.takes_back(turn):
                for number in _undone_by(turn, turns, taken_back, put_over, undone):
                    undone[number] = turn.number
            if cues.has("broken", turn.text[:300], turn.spoken) or stance.denies(turn, before):
                contradicted.add(before.number)
        for wish in wishes_of(turn, before):
            target = None
            if not settings.tells(wish, given_in):
                target = next((i for i in range(len(wishes) - 1, -1, -1) if amends(wish, wishes[i])), None)
            if target is not None and values.stands_alone(wish, wishes[target], put_over):
                target = None
            if _only_objects(wish, wishes if target is None else [wishes[target]], turns, given_in):
                continue
            if target is None:
                wishes.append(wish)
            else:
                wishes.append(amended(wishes.pop(target), wish))
    for number, later in taken_back.items():
        undone.setdefault(number, later)
    wishes = values.without_renamed(values.without_overwritten(wishes, put_over, turns), turns)
    wishes = values.without_outdated(values.without_refuted(wishes, turns), turns)
    wishes = settings.apply(wishes, [s for s in given if s.turn not in undone], turns)
    wishes += chosen.find(turns, put_over, frozenset(wish.turn for wish in wishes))
    dead = settings.dead(turns)
    wishes += settled.find(turns, [d for d in dead if d.heir not in undone], frozenset(wish.turn for wish in wishes))
    wishes.sort(key=lambda wish: wish.turn)
    wishes = unsaid.without(wishes, turns)
    if not any(run.edits or not _only_looks(run) for turn in turns for run in turn.runs):
        # Nothing was done: a chat. Only what was plainly meant to last is taken from it.
        wishes = [w for w in wishes if w.kind == "rule" and kinds.is_lasting(w.quote, turns[w.turn].spoken)]
    kept = [wish for wish in wishes if not (wish.turn in undone and wish.kind in ("decision", "preference"))]
    kept, outdated = without_replaced(heeded.only(kept, turns))
    kept = [values.loosed(wish) for wish in kept]
    return Heard(
        wishes=tuple(distinct(kept)),
        undone=undone,
        turned_down=tuple(turned_down),
        contradicted=frozenset(contradicted),
        dead=dead,
        rewritten={number: over.lines for number, over in put_over.items()},
        outdated=tuple(outdated),
    )


def _only_objects(wish: Wish, before: list[Wish], turns: list[Turn], given: dict[int, list[settings.Setting]]) -> bool:
    """Whether a new value was only spoken of: the one just set stands in its line to the end, the new one in none."""
    to = next((w for w in reversed(before) if w.turn < wish.turn <= w.turn + _SOON_TURNS), None)
    if to is None or not wish.changes or wish.kind == "rule" or turns[wish.turn].edited:
        return False
    if not kinds.numbers(wish.quote) - kinds.numbers(to.quote):
        return False
    stands = any(s.heir is None for s in given.get(to.turn, ()))
    return stands and not any(referents.evidence(turn, wish.quote) for turn in turns[wish.turn :])


def _before(turns: list[Turn], number: int) -> Turn | None:
    """The turn before, with what the user had said of it in the talk that led there: nothing was done in between."""
    if not number:
        return None
    before = turns[number - 1]
    first = number - 1
    while first > 0 and not turns[first].runs and number - first < _TALK_TURNS and not turns[first - 1].runs:
        first -= 1
    talk = [message for turn in turns[first : number - 1] for message in turn.messages]
    return replace(before, messages=(*talk, *before.messages)) if talk else before


def _only_looks(run: Ran) -> bool:
    return bool(run.command) and all(shell.only_looks(part.head) for part in shell.parts(run.command or ""))


def _undone_by(
    turn: Turn,
    turns: list[Turn],
    taken_back: dict[int, int],
    put_over: dict[int, overwritten.Overwritten],
    undone: dict[int, int],
) -> list[int]:
    """The turns whose work the user asks to take back: those whose lines went, else the last that edited anything."""
    hit = [number for number, later in taken_back.items() if later == turn.number]
    hit += [number for number, over in put_over.items() if over.by == turn.number]
    if hit or turn.edited:
        return hit
    last = next((t for t in reversed(turns[: turn.number]) if t.edited and t.number not in undone), None)
    return [last.number] if last is not None and not files.spares(turn, last.edited) else []
