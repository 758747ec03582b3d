"""What the user wants to hold beyond this moment, in their own words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from stillroom.offline import cues
from stillroom.offline.session import kinds, overwritten, referents, settings, values
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE, LEANING, Wish, WishKind, amended, amends, distinct, without_replaced
from stillroom.offline.sizes import QUOTE_CHARS
from stillroom.offline.text import words
from stillroom.offline.text.pattern import late
from stillroom.rollouts.redact import redact

_WONDERS = late(
    r"\W*(?:(?:could|can|should|shall|would|might) (?:we|i|it|one)\b|(?:können|könnten|sollen|sollten) wir|könnte man|"
    r"podemos|podríamos|deberíamos|y si|on (?:peut|pourrait|devrait)|(?:peut|pourrait|devrait)-on|poderíamos|dá pr?a\b|"
    r"может|можем|стоит ли|要不要|能不能|可不可以)",
    re.IGNORECASE,
)
"""Asks whether something might be done, which asks for nothing yet."""


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
    for turn in turns:
        before = turns[turn.number - 1] if turn.number else None
        if before is not None:
            if _rejects(turn):
                turned_down += [(before.number, words.content(offer)) for offer in referents.offers(before)]
            if _takes_back(turn):
                for number in _undone_by(turn, turns, taken_back, put_over, undone):
                    undone[number] = turn.number
            if cues.has("broken", turn.text[:300], turn.spoken) or _denies(turn, before):
                contradicted.add(before.number)
        for wish in _wishes_of(turn, before):
            target = None
            if not settings.tells(wish, given):
                target = next((i for i in range(len(wishes) - 1, -1, -1) if amends(wish, wishes[i])), None)
            if target is not None and values.stands_alone(wish, wishes[target], put_over):
                target = None
            if target is None:
                wishes.append(wish)
            else:
                wishes.append(amended(wishes.pop(target), wish))
    for number, later in taken_back.items():
        undone.setdefault(number, later)
    wishes = values.without_overwritten(wishes, put_over, turns)
    wishes = settings.apply(wishes, [s for s in given if s.turn not in undone], turns)
    if not any(turn.runs for turn in turns):
        # Nothing was done: a chat. Only what was plainly meant to last is taken from it.
        wishes = [w for w in wishes if w.kind == "rule" and kinds.is_lasting(w.quote, turns[w.turn].spoken)]
    kept = [wish for wish in wishes if not (wish.turn in undone and wish.kind in ("decision", "preference"))]
    kept, outdated = without_replaced(kept)
    kept = [values.loosed(wish) for wish in kept]
    return Heard(
        wishes=tuple(distinct(kept)),
        undone=undone,
        turned_down=tuple(turned_down),
        contradicted=frozenset(contradicted),
        dead=settings.dead(turns),
        outdated=tuple(outdated),
    )


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
    return [t.number for t in reversed(turns[: turn.number]) if t.edited and t.number not in undone][:1]


def _wishes_of(turn: Turn, before: Turn | None) -> list[Wish]:
    found: list[Wish] = []
    last: list[Wish] = []
    for number, message in enumerate(turn.messages):
        new = _wishes_in(message, turn, before, first=number == 0)
        if new and last and _revises(message[0], turn.spoken):
            new[0] = replace(new[0], replaced=found.pop().quote)
        found += new
        last = new
    return found


def _wishes_in(message: tuple[str, ...], turn: Turn, before: Turn | None, *, first: bool) -> list[Wish]:
    spoken = turn.spoken
    found: list[Wish] = []
    passing = [kinds.is_passing(s, spoken) for s in message]
    follows = False  # the sentence before was taken
    skip_next = False
    for number, sentence in enumerate(message):
        if skip_next:
            skip_next = False
            continue
        near_passing = any(passing[max(0, number - 1) : number + 2])
        if number == 0 and first and before is not None and not near_passing:
            taken = _agreement(turn, before)
            if taken:
                found += taken
                follows = True
                if not kinds.has_own_rule(sentence, spoken):
                    continue
        chosen = _choice(turn, before, sentence) if 0 < number <= 2 and first and before is not None else None
        if chosen is not None and not any(w.about.startswith("agreed to ") for w in found):
            found = [chosen] if not follows else [_after(found[-1], chosen)]
            follows = True
            continue
        quote = sentence
        corrects = number == 0 and before is not None and cues.opens("correction", sentence, spoken) > 0
        bare = corrects and (kinds.own_weight(sentence, spoken) < BARE or kinds.is_question(sentence, spoken))
        if bare and number + 1 < len(message) and not passing[number + 1]:
            quote = f"{sentence} {message[number + 1]}"
            skip_next = True
        elif (
            not follows and number and not passing[number - 1] and kinds.leans_on(sentence, message[number - 1], spoken)
        ):
            quote = f"{message[number - 1]} {sentence}"
        wish = _classify(quote, turn, before, corrects=corrects, passing=near_passing)
        if wish is None:
            if follows and found and kinds.goes_on(sentence, spoken):
                found[-1] = _joined(found[-1], sentence)
            else:
                follows = False
        elif follows and found and number and _revises(sentence, spoken):
            found[-1] = replace(wish, kind=found[-1].kind, replaced=found[-1].quote)
        elif follows and found and (kinds.is_short(quote) or _limits(found[-1], sentence, spoken)):
            found[-1] = _joined(found[-1], quote)
        else:
            found.append(wish)
            follows = True
    return found


def _classify(quote: str, turn: Turn, before: Turn | None, *, corrects: bool, passing: bool) -> Wish | None:
    spoken = turn.spoken
    if kinds.is_passing(quote, spoken) and not (turn.number and kinds.is_parked(quote, spoken)):
        return None
    if kinds.is_passing(quote, spoken) and not cues.has("deferred", cues.without("oneoff", quote, spoken), spoken):
        # "For now X, Y comes later": X ends with its day.
        return None
    standing = kinds.has_own_rule(quote, spoken)
    if cues.has("dismiss", quote, spoken) and not cues.has("standing", quote, spoken):
        return None
    lasting = kinds.is_lasting(cues.without("remember", quote, spoken), spoken)
    if cues.has("perishable", quote, spoken) and not lasting and not _is_set(quote, turn):
        return None
    reproach = before is not None and bool(turn.runs) and cues.has("reproach", quote, spoken)
    meant = any(cues.has(kind, quote, spoken) for kind in ("frequency", "remember", "prohibition"))
    asks_for = standing and (meant or not _WONDERS.match(quote)) and cues.has("polite", quote, spoken)
    if kinds.is_question(quote, spoken) and not asks_for and not (reproach and kinds.own_weight(quote, spoken) >= 3):
        return None
    if kinds.quotes_another(quote) or kinds.is_idle(quote, spoken):
        return None
    own = words.content(quote)
    weight = kinds.own_weight(quote, spoken)
    if turn.number and not standing and cues.has("takeback", quote, spoken) and not kinds.numbers(quote):
        # Asks to go back: an order about something else, done with when it is done.
        return None
    changes = turn.number > 0 and (
        cues.begins("mindchange", quote, spoken)
        or cues.has("instead", quote, spoken)
        or (bool(kinds.numbers(quote)) and cues.has("mindchange", quote, spoken))
    )
    reproachful = reproach and kinds.is_question(quote, spoken)
    kind = _kind(quote, turn, corrects=corrects or reproachful, changes=changes, standing=standing)
    if kind is None or not own:
        return None
    if passing and not standing and not (kind == "decision" and kinds.is_parked(quote, spoken)):
        return None
    if kind == "correction" and weight < LEANING and _takes_back(turn) and not words.identifiers(quote):
        # Told where the attempt is told that they had undone.
        return None
    if kind == "fact" and redact(quote) != quote:
        return None
    leans = weight < BARE or (
        kind != "rule" and weight < LEANING and cues.has("anaphora", quote, spoken) and not words.identifiers(quote)
    )
    about, seen = "", ""
    points = kind == "decision" and cues.has("anaphora", quote, spoken)
    if before is not None and (leans or changes):
        seen = referents.evidence(turn, quote)
    if before is not None and (leans or points or kind == "correction"):
        # A line that holds what was said tells what it is about.
        about = _referent(turn, before, kind, leans=(leans or weight < LEANING) and not seen)
    if kind == "correction" and before is not None and _rejects(turn) and not _names_what(own, turn, before, quote):
        return None
    if kind == "rule" and turn.number == 0 and weight < 3 and kinds.bounds_the_task(quote, turn):
        return None
    if leans and kind == "rule" and not (before is not None and before.edited):
        return None
    if leans and not about and not seen:
        return None
    if weight == 0 and not seen and kind != "correction":
        return None
    return Wish(
        turn=turn.number,
        kind=kind,
        quote=words.shorten(quote, QUOTE_CHARS),
        about=about,
        seen=seen,
        changes=changes or (corrects and turn.number > 0),
        negative=cues.has("prohibition", quote, spoken),
        subject=own | (words.content(about) if weight < LEANING else frozenset()),
    )


def _is_set(quote: str, turn: Turn) -> bool:
    """Whether a number of `quote` went into the files: "15 %" as a limit is no state of today."""
    return bool(turn.number and kinds.numbers(quote) and referents.evidence(turn, quote))


def _kind(quote: str, turn: Turn, *, corrects: bool, changes: bool, standing: bool) -> WishKind | None:
    spoken = turn.spoken
    problem = cues.has("problem", quote, spoken)
    if standing and (not changes or kinds.is_lasting(quote, spoken)):
        return "rule"
    if corrects and not cues.has("thanks", quote, spoken):
        return "correction"
    if turn.number and (changes or kinds.is_parked(quote, spoken)):
        return "decision"
    if cues.has("preference", quote, spoken) and not (
        problem or (turn.number == 0 and kinds.asks_for_work(quote, spoken))
    ):
        return "preference"
    if cues.has("decision" if turn.number else "resolved", quote, spoken):
        return "decision"
    if not problem and kinds.own_weight(quote, spoken) >= 3 and kinds.tells_how(quote, turn):
        return "preference"
    if turn.number and not problem and kinds.states(quote, spoken):
        return "fact"
    if (
        turn.number
        and kinds.numbers(quote)
        and referents.evidence(turn, quote)
        and kinds.own_weight(quote, spoken) <= 10
    ):
        # A value that the user gave and that went into the files.
        return "decision"
    return None


def _names_what(own: frozenset[str], turn: Turn, before: Turn, quote: str) -> bool:
    """Whether a refusal can be understood without the offer that it refuses; offers are not repeated."""
    offers = [words.content(offer) for offer in referents.offers(before) or referents.asked_about(before)]
    if not offers or words.identifiers(quote) or cues.has("decision", quote, turn.spoken):
        return True
    foreign = turn.spoken[0] in ("zh", "ja", "ko", "ru") and re.search(r"[A-Za-z]{3,}", quote) is not None
    return foreign or any(own & offer for offer in offers)


def _revises(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence takes back the one before it in the same breath ("grams. no wait, kilograms")."""
    return cues.opens("retract", sentence, spoken) > 0 and kinds.own_weight(sentence, spoken) >= 1


def _limits(wish: Wish, sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence says how far the agreement before it goes ("the second. but at 20")."""
    return wish.about.startswith("agreed to ") and cues.opens("contrast", sentence, spoken) > 0


def _joined(wish: Wish, sentence: str) -> Wish:
    quote = f"{wish.quote} {sentence}"
    if len(quote) > QUOTE_CHARS or sentence in wish.quote:
        return wish
    return replace(wish, quote=quote, subject=wish.subject | words.content(sentence))


def _referent(turn: Turn, before: Turn, kind: WishKind, *, leans: bool) -> str:
    if _rejects(turn):
        # What was turned down is not repeated: the user's own words are enough, or nothing is kept.
        return f"after {done}" if (done := referents.action(before)) else ""
    asked = referents.question(before)
    if asked and kind != "correction":
        return f"asked “{words.shorten(asked, 200)}”"
    if kind == "decision" and any(cues.has("deliberation", q, before.spoken) for q in _asked_by_user(before)):
        return f"asked “{words.shorten(_asked_by_user(before)[0], 200)}”"
    said = _said_before(turn, before) if leans else ""
    if said and len(said) <= 160 and _is_plain(said, before.spoken):
        done = referents.action(before)
        return f"after “{words.shorten(said, 160)}”" + (f" ({done})" if done else "")
    done = referents.action(before)
    return f"after {done}" if done else ""


def _said_before(turn: Turn, before: Turn) -> str:
    """The instruction before: of several sentences the one with a number when this one has a number, else the last."""
    if not before.sentences:
        return ""
    with_number = [s for s in before.sentences if kinds.numbers(s)]
    return with_number[-1] if with_number and kinds.numbers(turn.text) else before.sentences[-1]


def _is_plain(sentence: str, spoken: tuple[str, ...]) -> bool:
    """An instruction that a later fragment can refer to."""
    if (
        kinds.is_question(sentence, spoken)
        or kinds.is_passing(sentence, spoken)
        or cues.has("takeback", sentence, spoken)
    ):
        return False
    return cues.opens("approval", sentence, spoken) == 0


def _agreement(turn: Turn, before: Turn) -> list[Wish]:
    """The user's yes to something that the assistant proposed, or the option they picked."""
    spoken = turn.spoken
    opening = turn.sentences[0]
    if _rejects(turn) or not turn.steps:
        return []
    if pairs := referents.paired(before, turn.text, spoken):
        return [_paired(turn, asked, given) for asked, given in pairs]
    picked = referents.picked(before, opening, spoken) if words.weight(words.content(opening)) <= 8 else ""
    picked = picked or ("" if cues.opens("approval", opening, spoken) else referents.named(before, opening))
    agrees = cues.opens("approval", opening, spoken) > 0
    offered = picked or (_offer(turn, before, opening) if agrees else "")
    if not offered:
        answered = _answer(turn, before, opening)
        return [answered] if answered else []
    asked = next(iter(_asked_by_user(before)), "")
    wanted = f" (having asked “{words.shorten(asked, 160)}”)" if asked else ""
    return [_taken(turn, opening, offered, wanted)]


def _paired(turn: Turn, asked: str, given: str) -> Wish:
    return Wish(
        turn=turn.number,
        kind="decision",
        quote=words.shorten(given, QUOTE_CHARS),
        about=f"asked “{words.shorten(asked, 200)}”",
        subject=words.content(asked) | words.content(given),
    )


def _choice(turn: Turn, before: Turn, sentence: str) -> Wish | None:
    """A later sentence of an answer that takes one of the choices by its name ("the grace period stays. keep two")."""
    if not turn.runs or words.weight(words.content(sentence)) > LEANING or not kinds.is_order(sentence, turn.spoken):
        return None
    taken = referents.named_choice(before, sentence, turn.spoken)
    return _taken(turn, sentence, taken, "") if taken else None


def _after(wish: Wish, choice: Wish) -> Wish:
    """A choice with the sentence before it, which says why."""
    quote = f"{wish.quote} {choice.quote}"
    return replace(choice, quote=quote, subject=wish.subject | choice.subject) if len(quote) <= QUOTE_CHARS else choice


def _taken(turn: Turn, quote: str, offered: str, wanted: str) -> Wish:
    return Wish(
        turn=turn.number,
        kind="decision",
        quote=words.shorten(quote, QUOTE_CHARS),
        about=f"agreed to “{words.shorten(offered, 300)}”{wanted}",
        subject=words.content(offered) | words.content(quote),
    )


def _offer(turn: Turn, before: Turn, opening: str) -> str:
    """What a yes takes: the proposal, the answer to what the user had asked, or a choice that they are glad of."""
    offered = referents.proposal(before)
    if offered and kinds.numbers(opening) - kinds.numbers(offered):
        # "ok, leave it at 20" is no yes to thirty.
        return ""
    if not offered and any(cues.has("deliberation", q, before.spoken) for q in _asked_by_user(before)):
        offered = referents.answer(before)
    if not offered and cues.has("endorsed", turn.text[:120], turn.spoken):
        offered = referents.settled(before)
    return offered


def _asked_by_user(before: Turn) -> list[str]:
    """The user's own question, when the assistant answered it with one."""
    return [s for s in before.sentences[-3:] if kinds.is_question(s, before.spoken)][-1:]


def _answer(turn: Turn, before: Turn, opening: str) -> Wish | None:
    """A short answer to what the assistant had asked ("own queue"). A yes or no to it says nothing lasting."""
    spoken = turn.spoken
    asked = referents.question(before)
    own = words.content(opening)
    beyond = kinds.own_weight(opening, spoken)
    agrees = cues.opens("approval", opening, spoken) > 0
    if not own or words.weight(own) > LEANING:
        return None
    if not asked:
        return _verdict(turn, before, opening)
    if (referents.is_process(asked, spoken) or agrees) and beyond < BARE:
        return None
    if any(cues.opens(kind, opening, spoken) for kind in ("thanks", "request")) or kinds.is_question(opening, spoken):
        return None
    if cues.has("perishable", opening, spoken) or (cues.has("proposal", asked, spoken) and not agrees):
        # An offer is answered by yes or no; anything else is about something else.
        return None
    return Wish(
        turn=turn.number,
        kind="decision",
        quote=words.shorten(opening, QUOTE_CHARS),
        about=f"asked “{words.shorten(' '.join([*_asked_by_user(before), asked]), 240)}”",
        subject=own | words.content(asked),
    )


def _verdict(turn: Turn, before: Turn, opening: str) -> Wish | None:
    """What the user makes of the answer to a question of their own ("zod or yup?" "zod, because …" "then zod")."""
    asked = [q for q in _asked_by_user(before) if cues.has("deliberation", q, before.spoken)]
    own = words.content(opening)
    known = words.content(before.last_reply[:2000]) & words.content(" ".join(asked))
    if not asked or not turn.runs or not own & known or kinds.is_question(opening, turn.spoken):
        return None
    about = f"asked “{words.shorten(asked[0], 200)}”"
    return Wish(
        turn.number, "decision", words.shorten(opening, QUOTE_CHARS), about, subject=own | words.content(asked[0])
    )


def _rejects(turn: Turn) -> bool:
    return bool(turn.sentences) and cues.opens("rejection", turn.sentences[0], turn.spoken) > 0


def _denies(turn: Turn, before: Turn) -> bool:
    """Whether the user says that what was believed is not so, or says no to a guess that nothing was done about."""
    if not turn.sentences:
        return False
    guessed = not before.edited and cues.has("hypothesis", before.last_reply[-1200:], before.spoken)
    return cues.has("disproved", turn.sentences[0], turn.spoken) or (guessed and _rejects(turn))


def _takes_back(turn: Turn) -> bool:
    return any(
        cues.has("takeback", s, turn.spoken)
        and not kinds.is_passing(s, turn.spoken)
        and not s.endswith(("?", "？"))
        and words.weight(words.content(s)) <= 12
        for s in turn.sentences[:3]
    )
