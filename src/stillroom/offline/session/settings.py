"""Values that the user gave and that an edit wrote into a file, each with the later one that took its place."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from stillroom.offline import cues
from stillroom.offline.session import kinds
from stillroom.offline.session.checkout import changed
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE, LEANING, Wish
from stillroom.offline.sizes import QUOTE_CHARS
from stillroom.offline.text import figures, words
from stillroom.offline.text.secrets import gives_secret
from stillroom.pattern import late
from stillroom.rollouts.events import Edit

_KEY = late(r"^(.{0,80}?[^\W\d].{0,60}?)\s*(?::?=(?!=)|:(?!:)|=>)\s*\S")
_NUMBER = late(r"(?<![A-Za-z]-)(?<![A-Za-z0-9_.])\d+(?:[._]\d+)*(?!\d|(?:st|nd|rd|th)\b)")
_HOUR = late(r"\s?(?:[ap]\.?m\b|o'clock|uhr|点|點|時|시|часов|вечера|heures|horas|h\b)", re.IGNORECASE)
"""Follows a number that is an hour of the day: nine may be 21 in the file."""
_UNITS = (1, 7, 30, 60, 3600, 86_400, 24, 1000, 60_000, 1024, 1 << 20, 0.01, 0.001)
"""A value may stand in the file in another unit than it was said in: minutes as seconds, per cent as a share."""
_NOON = 12
_SETTING_KINDS = ("decision", "mindchange", "preference", "request", "order", "approval")
"""Cues of a sentence that sets something."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value in one place: the sentence that gave it, and the line that holds it."""

    turn: int
    path: str
    key: str
    line: str
    sentence: int  #: its index in the turn
    said: str  #: the number, as the user wrote it
    heir: int | None = None  #: the later turn whose value took its place


@dataclass(frozen=True, slots=True)
class Dead:
    """A value that stands in its file no more."""

    turn: int
    heir: int
    value: float


def find(turns: Sequence[Turn], undone: Collection[int]) -> list[Setting]:
    """The values that the user gave, in order. One that was written over names the turn that did it."""
    found: list[Setting] = []
    latest: dict[tuple[str, str], int] = {}
    for turn in turns:
        if turn.number in undone:
            continue
        given = _given(turn)
        for run in turn.runs:
            if run.ok is False or (run.exit_code or 0) != 0:
                continue
            for edit in run.edits:
                added, removed = _lines(edit)
                for key in {key for key, _ in removed}:
                    index = latest.get((edit.path, key))
                    if index is not None:
                        found[index] = _after(found[index], turn.number, added, removed)
                for key, line in added:
                    values = _values(line) - {v for k, old in removed if k == key for v in _values(old)}
                    match = next(((i, said) for i, said, forms in given if forms & values), None)
                    if match is not None:
                        latest[edit.path, key] = len(found)
                        found.append(Setting(turn.number, edit.path, key, line, *match))
    return found


def _after(setting: Setting, now: int, added: list[tuple[str, str]], removed: list[tuple[str, str]]) -> Setting:
    """`setting` after an edit: written over, kept in other words, or untouched."""
    if setting.heir is not None or (setting.key, setting.line) not in removed:
        return setting
    kept = next((line for key, line in added if key == setting.key and _values(setting.line) <= _values(line)), "")
    return replace(setting, line=kept) if kept else replace(setting, heir=now)


def dead(turns: Sequence[Turn]) -> tuple[Dead, ...]:
    """The values that one turn wrote and a later one wrote over, whoever chose them."""
    owner: dict[tuple[str, str], int] = {}
    found: list[Dead] = []
    for turn in turns:
        for run in turn.runs:
            if run.ok is False or (run.exit_code or 0) != 0:
                continue
            for edit in run.edits:
                added, removed = _lines(edit)
                for key, line in removed:
                    by = owner.pop((edit.path, line), turn.number)
                    new = {v for k, text in added if k == key for v in _values(text)}
                    if by != turn.number and new:
                        found += [Dead(by, turn.number, value) for value in _values(line) - new]
                owner.update(dict.fromkeys(((edit.path, line) for _, line in added), turn.number))
    return tuple(found)


def left(turns: Sequence[Turn]) -> tuple[tuple[int, float], ...]:
    """Every value that an edit took out of a line and put another one in its place, with the turn."""
    found: list[tuple[int, float]] = []
    for turn in turns:
        for edit in (e for run in turn.runs if run.ok is not False for e in run.edits):
            added, removed = _lines(edit)
            for key, line in removed:
                new = {v for k, text in added if k == key for v in _values(text)}
                found += [(turn.number, value) for value in _values(line) - new if new]
    return tuple(found)


def numbers_of(text: str) -> frozenset[float]:
    """The numbers that `text` names."""
    return frozenset(_value(n) for n in kinds.numbers(text))


def speaks_of(text: str, turn: int, values: Sequence[Dead]) -> bool:
    """Whether `text`, said in `turn`, is on a value that was written over later."""
    numbers = numbers_of(text)
    return any(d.turn == turn and d.value in numbers for d in values)


def by_turn(settings: Sequence[Setting]) -> dict[int, list[Setting]]:
    """The settings of each turn."""
    found: dict[int, list[Setting]] = {}
    for setting in settings:
        found.setdefault(setting.turn, []).append(setting)
    return found


def apply(wishes: list[Wish], settings: Sequence[Setting], turns: Sequence[Turn]) -> list[Wish]:
    """`wishes` without those whose every value was written over; a value that no wish tells of becomes one."""
    kept: list[Wish] = []
    heirs: dict[int, str] = {}
    given = by_turn(settings)
    for wish in wishes:
        quote, heir = _living(wish, given, turns[wish.turn])
        if heir is not None:
            heirs[heir] = wish.quote
        if quote:
            kept.append(wish if quote == wish.quote else replace(wish, quote=quote, subject=words.content(quote)))
    for setting in settings:
        if setting.heir is None:
            _tell(setting, kept, turns[setting.turn], given[setting.turn])
    kept.sort(key=lambda wish: wish.turn)
    return [
        replace(wish, replaced=wish.replaced or heirs[wish.turn])
        if wish.turn in heirs and (kinds.numbers(wish.quote) or tells(wish, given))
        else wish
        for wish in kept
    ]


def tells(wish: Wish, given: dict[int, list[Setting]]) -> bool:
    """Whether `wish` gave a value that a line holds: then the line says what it is the value of."""
    return any(_names(wish.quote, setting.said) for setting in given.get(wish.turn, ()))


def _living(wish: Wish, given: Mapping[int, Sequence[Setting]], turn: Turn) -> tuple[str, int | None]:
    """The quote without its sentences whose every value was written over, and the turn that did that."""
    settings = given.get(wish.turn, ())
    if wish.kind == "rule" and words.weight(words.content(wish.quote)) > LEANING:
        # More than a value: it gives way only to what the user themselves said of the same line.
        settings = [s if _was_told(s, given) else replace(s, heir=None) for s in settings]
    quote, heir = wish.quote, None
    for index, sentence in enumerate(turn.sentences):
        own = [s for s in settings if s.sentence == index]
        gone = [s for s in own if s.heir is not None]
        if not gone or sentence not in quote:
            continue
        kept = "" if len(gone) == len(own) else _without_clauses(sentence, gone, own)
        if kept != sentence:
            quote = quote.replace(sentence, kept, 1).strip()
            heir = gone[-1].heir
    return quote, heir


def _was_told(setting: Setting, given: Mapping[int, Sequence[Setting]]) -> bool:
    """Whether the value that took the place of `setting` was the user's."""
    heirs = given.get(setting.heir, ()) if setting.heir is not None else ()
    return any((heir.path, heir.key) == (setting.path, setting.key) for heir in heirs)


def _without_clauses(sentence: str, gone: Sequence[Setting], own: Sequence[Setting]) -> str:
    """`sentence` without the clauses that tell only of values that were written over."""
    alive = {s.said for s in own if s.heir is None}
    dead = {s.said for s in gone} - alive
    spelt = {said for said in dead | alive if not said[0].isdigit()}
    ends = [match.end() for match in kinds.CLAUSES.finditer(sentence)] + [len(sentence)]
    clauses = [sentence[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    told = [kinds.numbers(clause) | {said for said in spelt if said in clause} for clause in clauses]
    kept = [clause for clause, numbers in zip(clauses, told, strict=True) if not numbers or not numbers <= dead]
    return "".join(kept).strip() if kept else sentence


def _tell(setting: Setting, kept: list[Wish], turn: Turn, given: Sequence[Setting]) -> None:
    if gives_secret(setting.line):
        return
    seen = f"now `{words.shorten(setting.line.replace('`', ''), 100)}` in `{setting.path}`"
    for index, wish in enumerate(kept):
        if wish.turn == turn.number and _names(wish.quote, setting.said):
            key = words.content(re.sub(r"[_\W]+", " ", setting.key))
            if not wish.seen and wish.kind != "rule" and not key & words.content(wish.quote):
                kept[index] = replace(wish, seen=seen)
            return
    if not setting.said[0].isdigit() and not _is_on(setting, turn):
        return
    own = [s for s in given if s.sentence == setting.sentence]
    sentence = _without_clauses(turn.sentences[setting.sentence], [s for s in own if s.heir is not None], own)
    if gives_secret(sentence):
        return
    if not kinds.is_order(_up_to(setting.said, sentence), turn.spoken) or (
        not turn.number and cues.has("problem", sentence, turn.spoken)
    ):
        return
    if kinds.own_weight(sentence, turn.spoken) < BARE and setting.sentence:
        before = turn.sentences[setting.sentence - 1]
        if kinds.is_order(before, turn.spoken):
            sentence = f"{before} {sentence}"
    quote = words.shorten(sentence, QUOTE_CHARS)
    kept.append(Wish(turn.number, "decision", quote, seen=seen, changes=True, subject=words.content(quote)))


def _up_to(said: str, sentence: str) -> str:
    """`sentence` up to the clause that tells the number: what comes after it takes nothing of it back."""
    clauses = kinds.CLAUSES.split(sentence)
    last = max((i for i, clause in enumerate(clauses) if said in clause), default=len(clauses))
    return " ".join(clauses[: last + 1])


def _is_on(setting: Setting, turn: Turn) -> bool:
    """Whether the sentence of a number in words sets something: such words also count what there is ("two calls")."""
    sentence = turn.sentences[setting.sentence]
    if any(cues.has(kind, sentence, turn.spoken) for kind in _SETTING_KINDS):
        return True
    named = words.pieces(f"{setting.path} {setting.line}") & words.content(sentence)
    return bool(named) or kinds.own_weight(sentence, turn.spoken) <= LEANING


def _given(turn: Turn) -> list[tuple[int, str, frozenset[float]]]:
    """Numbers of the user's message by sentence, each with the forms that it may take in a file; the last first."""
    found = []
    for index, sentence in enumerate(turn.sentences):
        told = [(match.start(), match[0], _value(match[0])) for match in _NUMBER.finditer(sentence)]
        for start, said, value in sorted([*told, *figures.spelt(sentence, turn.spoken)]):
            forms = {round(value * unit, 6) for unit in _UNITS}
            if value < _NOON and _HOUR.match(sentence, start + len(said)):
                forms.add(value + _NOON)
            found.append((index, said, frozenset(forms)))
    return found[::-1]


def _names(text: str, said: str) -> bool:
    """Whether `text` tells the number that was told as `said`, in digits or in words."""
    return said in kinds.numbers(text) if said[0].isdigit() else said in text


def _lines(edit: Edit) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Key and text of the lines that `edit` added, and of those that it removed."""
    added, removed = ([(_key(text), text) for text in texts] for texts in changed(edit))
    return added, removed


def _key(line: str) -> str:
    match = _KEY.match(line)
    return match[1] if match else _NUMBER.sub("0", line)


@lru_cache(maxsize=2048)
def _values(line: str) -> frozenset[float]:
    """The numbers of a line, and what a product of them comes to ("9 * 60")."""
    found = [_value(m[0]) for m in _NUMBER.finditer(re.sub(r"(?<=\d)[a-zA-Z]+", " ", line))]
    return frozenset(round(v, 6) for v in found) if len(found) < 12 else frozenset()


def _value(number: str) -> float:
    whole = number.replace("_", "")
    return float(whole) if whole.count(".") <= 1 else 0.0
