"""What the user wants to hold beyond this moment, in their own words: one message at a time."""

from __future__ import annotations

import re
from dataclasses import replace

from stillroom.offline import cues
from stillroom.offline.session import agreements, antecedents, kinds, neighbours, referents, stance, states, unmeant
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE, LEANING, Wish, WishKind
from stillroom.offline.sizes import QUOTE_CHARS
from stillroom.offline.text import mentions, words
from stillroom.offline.text.secrets import gives_secret
from stillroom.pattern import late
from stillroom.rollouts.redact import redact

_WONDERS = late(
    r"\W*(?:(?:could|can|should|shall|would|might) (?:we|i|it|one)\b|(?:können|könnten|sollen|sollten) wir|könnte man|"
    r"podemos|podríamos|deberíamos|y si|on (?:peut|pourrait|devrait)|(?:peut|pourrait|devrait)-on|poderíamos|dá pr?a\b|"
    r"может|можем|стоит ли|要不要|能不能|可不可以)",
    re.IGNORECASE,
)
"""Asks whether something might be done, which asks for nothing yet."""
_LEAD_SENTENCES = 2
"""What a change of mind is on stands at most this many sentences before it."""


def wishes_of(turn: Turn, before: Turn | None) -> list[Wish]:
    found: list[Wish] = []
    last: list[Wish] = []
    for number, message in enumerate(turn.messages):
        new = _wishes_in(message, turn, before, first=number == 0)
        if new and last and neighbours.revises(message[0], turn.spoken):
            new[0] = replace(new[0], replaced=found.pop().quote)
        found += new
        last = new
    return found


def _wishes_in(message: tuple[str, ...], turn: Turn, before: Turn | None, *, first: bool) -> list[Wish]:
    spoken = turn.spoken
    found: list[Wish] = []
    passing = [kinds.is_passing(s, spoken) and not kinds.is_question(s, spoken) for s in message]
    follows = False  # the sentence before was taken
    skipped = 0
    for number, sentence in enumerate(message):
        if skipped:
            skipped -= 1
            continue
        if number + 1 < len(message) and unmeant.only_asks(message[number + 1], spoken):
            continue  # "my prof says never to clone. true?"
        if unmeant.only_announces(sentence, message[number + 1 :]) or unmeant.is_joke(message, number, spoken):
            continue
        near_passing = any(passing[max(0, number - 1) : number + 2])
        if number == 0 and first and before is not None and not near_passing:
            taken = agreements.agreement(turn, before)
            if taken:
                found += taken
                follows = True
                if not kinds.has_own_rule(sentence, spoken):
                    continue
        chosen = agreements.choice(turn, before, sentence) if 0 < number <= 2 and first and before is not None else None
        if chosen is not None and not any(w.about.startswith("agreed to ") for w in found):
            found = [chosen] if not follows else [agreements.after(found[-1], chosen)]
            follows = True
            continue
        quote = sentence
        corrects = number == 0 and before is not None and cues.opens("correction", sentence, spoken) > 0
        bare = corrects and (kinds.own_weight(sentence, spoken) < BARE or kinds.is_question(sentence, spoken))
        if skipped := neighbours.answers_itself(sentence, message[number + 1 :], spoken) or int(
            bare and number + 1 < len(message) and not passing[number + 1]
        ):
            quote = " ".join(message[number : number + 1 + skipped])
        elif (
            not follows
            and number
            and not passing[number - 1]
            and neighbours.leans_on(sentence, message[number - 1], spoken)
        ):
            quote = f"{message[number - 1]} {sentence}"
        wish = _classify(quote, turn, before, corrects=corrects, passing=near_passing)
        if wish is None:
            if follows and found and neighbours.disowns(sentence, found[-1].quote, spoken):
                found.pop()
                follows = False
            elif follows and found and neighbours.goes_on(sentence, found[-1], spoken):
                found[-1] = _joined(found[-1], sentence)
            else:
                follows = False
        elif follows and found and number and neighbours.revises(sentence, spoken):
            found[-1] = replace(wish, kind=found[-1].kind, replaced=found[-1].quote)
        elif follows and found and (neighbours.is_short(quote) or neighbours.limits(found[-1], sentence, spoken)):
            found[-1] = _joined(found[-1], quote)
        else:
            found.append(_with_lead(wish, message[:number], spoken) if not follows else wish)
            follows = True
    return found


def _classify(told: str, turn: Turn, before: Turn | None, *, corrects: bool, passing: bool) -> Wish | None:
    spoken = turn.spoken
    quote = mentions.without(told)  # what is quoted is spoken of: the sentence itself has to say something
    if kinds.is_passing(quote, spoken) and not (turn.number and kinds.is_parked(quote, spoken)):
        return None
    if kinds.is_passing(quote, spoken) and not cues.has("deferred", cues.without("oneoff", quote, spoken), spoken):
        # "For now X, Y comes later": X ends with its day.
        return None
    standing = kinds.has_own_rule(quote, spoken) and not unmeant.is_trial(quote, spoken)
    if cues.has("dismiss", quote, spoken) and not cues.has("standing", cues.without("dismiss", quote, spoken), spoken):
        return None
    lasting = kinds.is_lasting(cues.without("remember", quote, spoken), spoken)
    if (
        cues.has("perishable", quote, spoken)
        and not lasting
        and not _is_set(quote, turn)
        and not kinds.outlives_today(quote, spoken)
    ):
        return None
    reproach = before is not None and bool(turn.runs) and cues.has("reproach", quote, spoken)
    meant = any(cues.has(kind, quote, spoken) for kind in ("frequency", "remember", "prohibition"))
    asks_for = standing and (meant or not _WONDERS.match(quote)) and cues.has("polite", quote, spoken)
    if kinds.is_question(quote, spoken) and not asks_for and not (reproach and kinds.own_weight(quote, spoken) >= 3):
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
    if changes and not standing and _is_of_a_running_system(quote, turn, before):
        return None
    reproachful = reproach and kinds.is_question(quote, spoken)
    kind = _kind(quote, turn, corrects=corrects or reproachful, changes=changes, standing=standing)
    if kind is None or not own or (kind == "fact" and unmeant.is_trial(quote, spoken)):
        return None
    # Asked last of the few that got so far: it is asked of every clause.
    if unmeant.quotes_another(quote) or unmeant.is_idle(quote, spoken):
        return None
    if unmeant.is_kept_at_distance(quote, spoken):
        return None
    if (
        kind != "correction"
        and unmeant.is_opinion(quote, spoken)
        and not (turn.number and states.is_worked_on(quote, turn))
    ):
        return None
    if passing and not standing and not (kind == "decision" and kinds.is_parked(quote, spoken)):
        return None
    if kind == "correction" and weight < LEANING and stance.takes_back(turn) and not words.identifiers(quote):
        # Told where the attempt is told that they had undone.
        return None
    if gives_secret(quote) or (kind == "fact" and redact(quote) != quote):
        return None
    if kind == "fact" and not states.lasts(quote, turn):
        return None
    if kind in ("fact", "preference", "decision") and states.is_unchanged_yet(quote, turn):
        return None
    if kind in ("correction", "decision") and unmeant.only_points(quote, spoken):
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
        about = antecedents.of(turn, before, kind, leans=(leans or weight < LEANING) and not seen)
    if (
        kind == "correction"
        and before is not None
        and stance.rejects(turn)
        and not _names_what(own, turn, before, quote)
    ):
        return None
    if kind == "decision" and before is not None and weight < BARE and _turns_down(turn, before):
        return None
    if kind == "rule" and turn.number == 0 and weight < 3 and kinds.bounds_the_task(quote, turn):
        return None
    if kind == "rule" and not turn.number and cues.has("problem", quote, spoken) and not (meant or lasting):
        return None  # what the session is about
    if leans and kind == "rule" and not (before is not None and before.edited):
        return None
    if leans and not about and not seen:
        return None
    if weight == 0 and not seen and kind != "correction":
        return None
    return Wish(
        turn=turn.number,
        kind=kind,
        quote=words.shorten(told, QUOTE_CHARS),
        about=about,
        seen=seen,
        changes=changes or (corrects and turn.number > 0),
        negative=cues.has("prohibition", quote, spoken),
        subject=own | (words.content(about) if weight < LEANING else frozenset()),
    )


def _is_of_a_running_system(quote: str, turn: Turn, before: Turn | None) -> bool:
    """Whether a step back is asked of what runs, and no file holds it: an order that is done when it is done."""
    if before is None or turn.edited or before.edited:
        return False
    return cues.has("takeback", quote, turn.spoken)


def _turns_down(turn: Turn, before: Turn) -> bool:
    """Whether the user says no to what they had asked about, or what was offered: nothing that was settled changes."""
    return stance.rejects(turn) and bool(agreements.asked_by_user(before) or referents.offers(before))


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
    if cues.has("decision" if turn.number else "resolved", quote, spoken) and not (problem and not turn.number):
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


def _with_lead(wish: Wish, before: tuple[str, ...], spoken: tuple[str, ...]) -> Wish:
    """A short change of mind together with what the same message spoke of: it is on that, and not on what was done."""
    if (
        not wish.changes
        or wish.kind not in ("decision", "correction")
        or words.weight(words.content(wish.quote)) >= LEANING
    ):
        return wish
    telling = next((i for i in range(len(before) - 1, -1, -1) if kinds.own_weight(before[i], spoken) >= BARE), None)
    if telling is None or len(before) - telling > _LEAD_SENTENCES:
        return wish
    quote = " ".join([*before[telling:], wish.quote])
    if len(quote) > QUOTE_CHARS:
        return wish
    return replace(wish, quote=quote, about="", subject=words.content(quote))


def _joined(wish: Wish, sentence: str) -> Wish:
    quote = f"{wish.quote} {sentence}"
    if len(quote) > QUOTE_CHARS or sentence in wish.quote:
        return wish
    return replace(wish, quote=quote, subject=wish.subject | words.content(sentence))
