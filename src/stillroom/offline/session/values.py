"""Wishes that set a value, and what becomes of them when a later turn writes another value over it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from stillroom.offline.session import kinds, overwritten, runs, settings, shell
from stillroom.offline.session.checkout import changed
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE, LEANING, Wish, amended
from stillroom.offline.text import words

_VALUED = ("decision", "preference", "correction")
"""Kinds of wishes that set a value in the files."""
_ASIDE = 1.0
"""What a message says besides a wish up to this (in words) is nothing by itself."""
_SOON_TURNS = 2
"""What is changed within this many turns after it was told of is what was meant."""


def stands_alone(later: Wish, earlier: Wish, put_over: dict[int, overwritten.Overwritten]) -> bool:
    """Whether a new value also names what it is the value of: then nothing of the old one is needed."""
    over = put_over.get(earlier.turn)
    if over is None or over.by != later.turn:
        return False
    common = frozenset(w for w in words.content(later.quote) & words.content(earlier.quote) if not w[0].isdigit())
    return words.weight(common) >= (1 if kinds.numbers(later.quote) else 2)


def without_overwritten(
    wishes: list[Wish], put_over: dict[int, overwritten.Overwritten], turns: list[Turn]
) -> list[Wish]:
    """Without wishes whose value a later turn took out of the files again; the wish of that turn says so."""
    kept: list[Wish] = []
    heirs: dict[int, Wish] = {}
    for wish in wishes:
        over = put_over.get(wish.turn)
        if over is None or not (
            _is_all_of(wish, over, turns[wish.turn])
            or (_was_set(wish, over, turns[over.by]) and _speaks_of(wish, over, turns[over.by]))
        ):
            kept.append(wish)
        else:
            heirs[over.by] = wish
    for index, wish in enumerate(kept):
        earlier = heirs.get(wish.turn)
        if earlier is not None and wish.kind != "rule":
            kept[index] = replace(wish, replaced=earlier.quote)
    return _agreed_otherwise(kept, put_over)


def _is_all_of(wish: Wish, over: overwritten.Overwritten, turn: Turn) -> bool:
    """Whether a message said nothing but `wish`, and the next one had the value written over that was all it led to."""
    numbered = any(piece[0].isdigit() for piece in over.gone) and any(piece[0].isdigit() for piece in over.come)
    aside = words.weight(words.content(turn.text) - words.content(wish.quote))
    return not wish.about and over.whole and numbered and over.by == wish.turn + 1 and aside <= _ASIDE


def _agreed_otherwise(wishes: list[Wish], put_over: dict[int, overwritten.Overwritten]) -> list[Wish]:
    """Agreements of which a later turn wrote a part over, each told together with what that turn wanted instead."""
    kept = list(wishes)
    for wish in wishes:
        over = put_over.get(wish.turn)
        if over is None or not wish.about.startswith("agreed to ") or not over.gone & words.content(wish.about):
            continue
        later = next((w for w in kept if w.turn == over.by and w.kind in _VALUED), None)
        if later is not None and wish in kept:
            kept[kept.index(later)] = amended(wish, later)
            kept.remove(wish)
    return kept


def without_renamed(wishes: list[Wish], turns: list[Turn]) -> list[Wish]:
    """Without wishes for a name that a later turn, which speaks of the new one, moved away from."""
    moves = [
        (turn, old) for turn, old, new in overwritten.renamed(turns) if old and _stands_in(new, turns[turn].text[:600])
    ]
    return [
        wish
        for wish in wishes
        if wish.kind not in _VALUED or not any(wish.turn < turn and _stands_in(old, wish.quote) for turn, old in moves)
    ]


def without_refuted(wishes: list[Wish], turns: list[Turn]) -> list[Wish]:
    """Without wishes that name a value with which a command failed, and which worked with another one."""
    steps = {turn: runs.steps(turns[turn]) for turn in {wish.turn for wish in wishes}}
    return [wish for wish in wishes if not _is_refuted(wish, steps[wish.turn])]


def without_outdated(wishes: list[Wish], turns: list[Turn]) -> list[Wish]:
    """Without states that the user told of and that the work then changed ("it has 3 already", and 3 became 0)."""
    left = settings.left(turns)
    return [
        wish
        for wish in wishes
        if wish.kind != "fact" or not (_is_outdated(wish, left) or _was_taken_out(wish, turns[wish.turn]))
    ]


def _was_taken_out(wish: Wish, turn: Turn) -> bool:
    """Whether what the user told of stood in a line that was taken out at once, and nothing of it was put in."""
    told = words.content(wish.quote)
    gone: set[str] = set()
    come: set[str] = set()
    for edit in (e for run in turn.runs if run.ok is not False for e in run.edits):
        added, removed = changed(edit)
        gone |= words.pieces(" ".join(removed))
        come |= words.pieces(" ".join(added))
    return bool(told & (gone - come)) and not told & (come - gone)


def _is_outdated(wish: Wish, left: Sequence[tuple[int, float]]) -> bool:
    if any(not name[0].isdigit() for name in words.identifiers(wish.quote)):
        return False
    numbers = settings.numbers_of(wish.quote)
    return any(0 <= turn - wish.turn <= _SOON_TURNS and value in numbers for turn, value in left)


def _is_refuted(wish: Wish, steps: Sequence[runs.Step]) -> bool:
    told = {*kinds.numbers(wish.quote), *words.identifiers(wish.quote)}
    if not told:
        return False
    failed: list[runs.Step] = []
    for step in steps:
        if step.failed:
            failed.append(step)
        elif any(_other_value(value, f.part, step.part) for f in failed if f.base == step.base for value in told):
            return True
    return False


def _other_value(value: str, failed: str, passed: str) -> bool:
    """Whether `passed` has another value where `failed` has `value`: behind the same option, or in the same word."""
    before = ""
    ran = shell.words(passed)
    for word in shell.words(failed):
        if _stands_in(value, word):
            form = re.compile(re.escape(word).replace(re.escape(value), r"[\w.-]+", 1))
            for index, other in enumerate(ran):
                placed = word != value or (before.startswith("-") and index > 0 and ran[index - 1] == before)
                if placed and other != word and form.fullmatch(other):
                    return True
        before = word
    return False


def loosed(wish: Wish) -> Wish:
    """Without a reference to the very words that it replaced, when it stands without them."""
    told = bool(wish.replaced) and wish.replaced[:60] in wish.about
    return replace(wish, about="") if told and words.weight(words.content(wish.quote)) >= BARE else wish


def _was_set(wish: Wish, over: overwritten.Overwritten, later: Turn) -> bool:
    """Whether `wish` can give way to a value: a rule does where the user says the name that took its place."""
    if wish.kind in _VALUED:
        return True
    names = {name for name in words.identifiers(wish.quote) if _stands_in(name, " ".join(over.lines))}
    if wish.kind == "fact":
        return bool(over.gone & words.pieces(" ".join(names)))
    return bool(names) and bool(over.come & words.pieces(later.text[:600]))


def _speaks_of(wish: Wish, over: overwritten.Overwritten, later: Turn) -> bool:
    """Whether the lines that were replaced held what `wish` asks for, and the later words are on the same thing."""
    lines = " ".join(over.lines)
    names = words.identifiers(wish.quote)
    told = [*kinds.numbers(wish.quote), *names]
    held = [_stands_in(name, lines) for name in told]
    if any(held) and not words.pieces(" ".join(told)) & over.gone:
        # The line was changed in another part.
        return False
    if any(held):
        # A name that was not touched: the wish is on more than the value.
        return not any(not name[0].isdigit() and not _stands_in(name, lines) for name in names)
    if wish.about.startswith("agreed to "):
        # What was agreed to is more than the answer.
        said = f"{wish.about} {wish.quote}"
        named = bool(over.gone & (words.content(said) | words.pieces(said)))
        valued = bool(kinds.numbers(wish.about)) and any(piece[0].isdigit() for piece in over.gone)
        return over.whole and (named or valued)
    if over.whole and over.gone & words.content(wish.quote):
        # A name that stood in the file by the user's word, and stands there no more.
        return True
    common = words.content(wish.quote) & words.content(later.text[:600])
    weight = words.weight(words.content(wish.quote))
    return over.whole and (weight <= BARE or (words.weight(common) >= 1 and weight <= 2 * LEANING))


def _stands_in(name: str, lines: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", lines, re.IGNORECASE) is not None
