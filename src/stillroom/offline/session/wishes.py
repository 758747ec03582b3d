"""What the user wants to hold beyond this moment, in their own words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from stillroom.offline import cues
from stillroom.offline.session import referents
from stillroom.offline.session.turns import Turn
from stillroom.offline.sizes import QUOTE_CHARS
from stillroom.offline.text import words
from stillroom.rollouts.redact import redact

WishKind = Literal["rule", "correction", "preference", "decision", "fact"]
_BARE = 2.0
"""A sentence that says less than this (in words) says nothing without what it refers to."""
_LEANING = 4.5
"""A sentence up to this, with "that" or "it" in it, leans on what stands before."""
_TRAILING = 7.0
"""A sentence up to this that follows a wish, and is nothing of its own, goes on with it."""


_HANDED_ON = re.compile(
    r"(?:wrote|writes|says|said|told me|schrieb|schreibt|sagte?|meint|écrit|dit|escribió|dice|dijo|escreveu|disse|diz"
    r"|написал\w*|пишет|сказал\w*|写道|说|言って|書いて|썼|라고)\s*[:：,]?\s*[\"“«「„'][^\"”»」]{15,}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing the user said that outlives the session."""

    turn: int
    kind: WishKind
    quote: str
    #: What it refers to, when it doesn't stand alone: "after …", "asked …", "agreed to …".
    about: str = ""
    #: What came of it in the files, when the words alone don't tell.
    seen: str = ""
    #: Later words that change it.
    amended: tuple[str, ...] = ()
    changes: bool = False
    negative: bool = False
    replaced: str = ""  #: what it supersedes, in the user's earlier words
    subject: frozenset[str] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user's side of a session says."""

    wishes: tuple[Wish, ...]
    #: Turns whose work the user had undone, with what they said of it.
    undone: dict[int, str]
    #: Words of what the user turned down, by the turn that had offered it.
    turned_down: tuple[tuple[int, frozenset[str]], ...]
    #: Turns whose diagnosis the user's next message contradicts.
    contradicted: frozenset[int]
    #: Words of what no longer holds, with the turn from which on.
    outdated: tuple[tuple[int, frozenset[str]], ...]


def listen(turns: list[Turn]) -> Heard:
    """Every wish, in order, without those that a later one of the same session replaces."""
    wishes: list[Wish] = []
    undone: dict[int, str] = {}
    contradicted: set[int] = set()
    turned_down: list[tuple[int, frozenset[str]]] = []
    for turn in turns:
        before = turns[turn.number - 1] if turn.number else None
        if before is not None:
            if _rejects(turn):
                turned_down += [(before.number, words.content(offer)) for offer in referents.offers(before)]
            if _takes_back(turn):
                target = next(
                    (t.number for t in reversed(turns[: turn.number]) if t.edited and t.number not in undone), None
                )
                if target is not None:
                    undone[target] = words.shorten(turn.text, QUOTE_CHARS)
            if cues.has("broken", turn.text[:300], turn.spoken) or _denies(turn):
                contradicted.add(before.number)
        for wish in _wishes_of(turn, before):
            target = next((i for i in range(len(wishes) - 1, -1, -1) if _amends(wish, wishes[i])), None)
            if target is None:
                wishes.append(wish)
            else:
                wishes.append(_amended(wishes.pop(target), wish))
    if not any(turn.runs for turn in turns):
        # Nothing was done: a chat. Only what was plainly meant to last is taken from it.
        wishes = [w for w in wishes if w.kind == "rule" and _is_lasting(w.quote, turns[w.turn].spoken)]
    kept = [wish for wish in wishes if not (wish.turn in undone and wish.kind in ("decision", "preference"))]
    kept, outdated = _without_replaced(kept)
    return Heard(
        wishes=tuple(_distinct(kept)),
        undone=undone,
        turned_down=tuple(turned_down),
        contradicted=frozenset(contradicted),
        outdated=tuple(outdated),
    )


def _wishes_of(turn: Turn, before: Turn | None) -> list[Wish]:
    found: list[Wish] = []
    for number, message in enumerate(turn.messages):
        found += _wishes_in(message, turn, before, first=number == 0)
    return found


def _wishes_in(message: tuple[str, ...], turn: Turn, before: Turn | None, *, first: bool) -> list[Wish]:
    spoken = turn.spoken
    found: list[Wish] = []
    passing = [_is_passing(s, spoken) for s in message]
    follows = False  # the sentence before was taken
    skip_next = False
    for number, sentence in enumerate(message):
        if skip_next:
            skip_next = False
            continue
        near_passing = any(passing[max(0, number - 1) : number + 2])
        if number == 0 and first and before is not None and not near_passing:
            taken = _agreement(turn, before)
            if taken is not None:
                found.append(taken)
                follows = True
                if not _has_own_rule(sentence, spoken):
                    continue
        quote = sentence
        corrects = number == 0 and before is not None and cues.opens("correction", sentence, spoken) > 0
        bare = corrects and (_own_weight(sentence, spoken) < _BARE or _is_question(sentence, spoken))
        if bare and number + 1 < len(message) and not passing[number + 1]:
            quote = f"{sentence} {message[number + 1]}"
            skip_next = True
        wish = _classify(quote, turn, before, corrects=corrects, passing=near_passing)
        if wish is None:
            if follows and found and _goes_on(sentence, spoken):
                found[-1] = _joined(found[-1], sentence)
            else:
                follows = False
        elif follows and found and _is_short(quote):
            found[-1] = _joined(found[-1], quote)
        else:
            found.append(wish)
            follows = True
    return found


def _classify(quote: str, turn: Turn, before: Turn | None, *, corrects: bool, passing: bool) -> Wish | None:
    spoken = turn.spoken
    if _is_passing(quote, spoken) and not (turn.number and _is_parked(quote, spoken)):
        return None
    standing = _has_own_rule(quote, spoken)
    if cues.has("dismiss", quote, spoken) and not cues.has("standing", quote, spoken):
        return None
    if cues.has("perishable", quote, spoken) and not _is_lasting(cues.without("remember", quote, spoken), spoken):
        return None
    reproach = before is not None and bool(turn.runs) and cues.has("reproach", quote, spoken)
    asks_for = standing and cues.has("polite", quote, spoken)
    if _is_question(quote, spoken) and not asks_for and not (reproach and _own_weight(quote, spoken) >= 3):
        return None
    if _quotes_another(quote):
        return None
    own = words.content(quote)
    weight = _own_weight(quote, spoken)
    changes = turn.number > 0 and (
        cues.begins("mindchange", quote, spoken)
        or cues.has("instead", quote, spoken)
        or (bool(_numbers(quote)) and cues.has("mindchange", quote, spoken))
    )
    reproachful = reproach and _is_question(quote, spoken)
    kind = _kind(quote, turn, corrects=corrects or reproachful, changes=changes, standing=standing)
    if kind is None or not own:
        return None
    if passing and not standing and not (kind == "decision" and _is_parked(quote, spoken)):
        return None
    if kind == "fact" and redact(quote) != quote:
        return None
    leans = weight < _BARE or (
        kind != "rule" and weight < _LEANING and cues.has("anaphora", quote, spoken) and not words.identifiers(quote)
    )
    about, seen = "", ""
    points = kind == "decision" and cues.has("anaphora", quote, spoken)
    if before is not None and (leans or points or kind == "correction"):
        about = _referent(turn, before, kind, leans=leans or weight < _LEANING)
    if before is not None and (leans or changes):
        seen = referents.evidence(turn, quote)
    if kind == "correction" and before is not None and _rejects(turn) and not _names_what(own, turn, before, quote):
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
        subject=own | (words.content(about) if weight < _LEANING else frozenset()),
    )


def _kind(quote: str, turn: Turn, *, corrects: bool, changes: bool, standing: bool) -> WishKind | None:
    spoken = turn.spoken
    problem = cues.has("problem", quote, spoken)
    if standing and (not changes or _is_lasting(quote, spoken)):
        return "rule"
    if corrects and not cues.has("thanks", quote, spoken):
        return "correction"
    if turn.number and (changes or _is_parked(quote, spoken)):
        return "decision"
    if cues.has("preference", quote, spoken) and not (problem or (turn.number == 0 and _asks_for_work(quote, spoken))):
        return "preference"
    if cues.has("decision", quote, spoken) and not cues.opens("request", quote, spoken):
        return "decision"
    if turn.number and cues.has("decision", quote, spoken):
        return "decision"
    if not problem and _own_weight(quote, spoken) >= 3 and _tells_how(quote, turn):
        return "preference"
    if turn.number and not problem and _states(quote, spoken):
        return "fact"
    if turn.number and _numbers(quote) and referents.evidence(turn, quote) and _own_weight(quote, spoken) <= 10:
        # A value that the user gave and that went into the files.
        return "decision"
    return None


def _states(quote: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence says how something is: no order, nothing of the speaker's own day, no thinking aloud."""
    point = cues.without_opener(quote, spoken)
    if not cues.has("fact", point, spoken) or cues.opens("request", point, spoken):
        return False
    if any(cues.has(kind, quote, spoken) for kind in ("musing", "thanks", "works")):
        return False
    named = bool(words.identifiers(quote))
    if cues.opens("anaphora", point, spoken) and not named:
        return False
    own = _own_weight(quote, spoken)
    if cues.has("personal", quote, spoken):
        return named and own >= 3
    return own >= (3 if named else 4)


def _quotes_another(quote: str) -> bool:
    """Whether a sentence hands on what somebody else said."""
    return _HANDED_ON.search(quote) is not None


def _names_what(own: frozenset[str], turn: Turn, before: Turn, quote: str) -> bool:
    """Whether a refusal can be understood without the offer that it refuses; offers are not repeated."""
    offers = [words.content(offer) for offer in referents.offers(before)]
    if not offers or words.identifiers(quote) or cues.has("decision", quote, turn.spoken):
        return True
    foreign = turn.spoken[0] in ("zh", "ja", "ko", "ru") and re.search(r"[A-Za-z]{3,}", quote) is not None
    return foreign or any(own & offer for offer in offers)


def _tells_how(quote: str, turn: Turn) -> bool:
    """Whether a sentence says how things are to be done. Where the verb stands anywhere, a first request is no such."""
    spoken = turn.spoken
    if cues.opens("style", cues.without_opener(quote, spoken), spoken):
        return True
    return turn.number > 0 and spoken[0] in ("ru", "zh", "ja", "ko") and cues.has("style", quote, spoken)


def _is_parked(quote: str, spoken: tuple[str, ...]) -> bool:
    """Put off with a reason: what a later session has to know when it takes it up."""
    return cues.has("deferred", quote, spoken) and _own_weight(quote, spoken) >= 5


def _has_own_rule(sentence: str, spoken: tuple[str, ...]) -> bool:
    """A rule that was meant as one, not a complaint ("it always crashes")."""
    if cues.has("prohibition", sentence, spoken) or cues.has("remember", sentence, spoken):
        return _own_weight(sentence, spoken) >= 1
    if not cues.has("standing", sentence, spoken) or _own_weight(sentence, spoken) < 1.5:
        return False
    meant = not cues.has("problem", sentence, spoken) or cues.has("preference", sentence, spoken)
    return meant or _is_lasting(sentence, spoken)


def _is_lasting(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Holds a word of standing that tells more than how often something happens."""
    rest = cues.without("frequency", sentence, spoken)
    if cues.has("standing", rest, spoken) or cues.has("remember", rest, spoken):
        return True
    # "Never X", "always X" as a command.
    opening = cues.without_opener(sentence, spoken)
    return cues.opens("frequency", opening, spoken) > 0 and _own_weight(sentence, spoken) >= 3


def _own_weight(sentence: str, spoken: tuple[str, ...]) -> float:
    """How much a sentence says besides its cue words."""
    rest = sentence
    for kind in ("frequency", "changed", "thanks", "approval", "mindchange"):
        rest = cues.without(kind, rest, spoken)
    return words.weight(words.content(rest))


def _asks_for_work(sentence: str, spoken: tuple[str, ...]) -> bool:
    return cues.has("request", sentence, spoken) and not cues.has("prohibition", sentence, spoken)


def _goes_on(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence that is no wish itself belongs to the one before: its reason, or the rest of a list."""
    if _is_question(sentence, spoken) or _is_passing(sentence, spoken) or cues.has("perishable", sentence, spoken):
        return False
    if any(cues.opens(kind, sentence, spoken) for kind in ("thanks", "greeting", "transition", "request", "polite")):
        return False
    return words.weight(words.content(sentence)) <= _TRAILING


def _is_short(text: str) -> bool:
    return len(text) <= (30 if any(ord(c) > 0x2E80 for c in text) else 60)


def _joined(wish: Wish, sentence: str) -> Wish:
    quote = f"{wish.quote} {sentence}"
    if len(quote) > QUOTE_CHARS:
        return wish
    return replace(wish, quote=quote, subject=wish.subject | words.content(sentence))


def _is_passing(sentence: str, spoken: tuple[str, ...]) -> bool:
    if not cues.has("oneoff", sentence, spoken):
        return False
    return not re.search(
        r"\bnot (?:just|only)\b|不只|不仅|だけで(?:は)?なく|nicht nur|no s[oó]lo|pas seulement|n[aã]o s[oó]|"
        r"не только|뿐만",
        sentence,
        re.IGNORECASE,
    )


def _is_question(sentence: str, spoken: tuple[str, ...]) -> bool:
    if sentence.rstrip("\"'）)」 ").endswith(("?", "？")):
        return True
    return (
        "?" not in sentence
        and cues.opens("question", sentence, spoken) > 0
        and sentence.endswith(("吗", "呢", "か", "까"))
    )


def _referent(turn: Turn, before: Turn, kind: WishKind, *, leans: bool) -> str:
    if _rejects(turn):
        # What was turned down is not repeated: the user's own words are enough, or nothing is kept.
        return f"after {done}" if (done := referents.action(before)) else ""
    asked = referents.question(before)
    if asked and kind != "correction":
        return f"asked “{words.shorten(asked, 200)}”"
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
    with_number = [s for s in before.sentences if _numbers(s)]
    return with_number[-1] if with_number and _numbers(turn.text) else before.sentences[-1]


def _is_plain(sentence: str, spoken: tuple[str, ...]) -> bool:
    """An instruction that a later fragment can refer to."""
    if _is_question(sentence, spoken) or _is_passing(sentence, spoken) or cues.has("takeback", sentence, spoken):
        return False
    return cues.opens("approval", sentence, spoken) == 0


def _agreement(turn: Turn, before: Turn) -> Wish | None:
    """The user's yes to something that the assistant proposed, or the option they picked."""
    spoken = turn.spoken
    opening = turn.sentences[0]
    if _rejects(turn) or not turn.steps:
        return None
    pairs = referents.paired(before, turn.text)
    picked = referents.picked(before, opening) if words.weight(words.content(opening)) <= 8 else ""
    picked = pairs or picked or ("" if cues.opens("approval", opening, spoken) else referents.named(before, opening))
    agrees = cues.opens("approval", opening, spoken) > 0
    offered = picked or (referents.proposal(before) if agrees else "")
    if not offered:
        return _answer(turn, before, opening)
    asked = before.sentences[-1] if before.sentences and before.sentences[-1].endswith(("?", "？")) else ""
    wanted = f" (having asked “{words.shorten(asked, 160)}”)" if asked else ""
    return Wish(
        turn=turn.number,
        kind="decision",
        quote=words.shorten(opening, QUOTE_CHARS),
        about=f"agreed to “{words.shorten(offered, 300)}”{wanted}",
        subject=words.content(offered) | words.content(opening),
    )


def _asked_by_user(before: Turn) -> list[str]:
    """The user's own question, when the assistant answered it with one."""
    last = before.sentences[-1] if before.sentences else ""
    return [last] if last.endswith(("?", "？")) else []


def _answer(turn: Turn, before: Turn, opening: str) -> Wish | None:
    """A short answer to what the assistant had asked ("own queue"). A yes or no to it says nothing lasting."""
    spoken = turn.spoken
    asked = referents.question(before)
    own = words.content(opening)
    beyond = _own_weight(opening, spoken)
    if not asked or not own or words.weight(own) > _LEANING:
        return None
    if (referents.is_process(asked, spoken) or cues.opens("approval", opening, spoken)) and beyond < _BARE:
        return None
    if any(cues.opens(kind, opening, spoken) for kind in ("thanks", "request")) or _is_question(opening, spoken):
        return None
    if cues.has("perishable", opening, spoken):
        return None
    return Wish(
        turn=turn.number,
        kind="decision",
        quote=words.shorten(opening, QUOTE_CHARS),
        about=f"asked “{words.shorten(' '.join([*_asked_by_user(before), asked]), 240)}”",
        subject=own | words.content(asked),
    )


def _amends(later: Wish, earlier: Wish) -> bool:
    """Whether a fragment changes the decision just before it ("and make that 10")."""
    if not later.changes or later.kind == "rule" or later.turn - earlier.turn > 2:
        return False
    own = words.content(later.quote)
    told = earlier.quote + (earlier.about if earlier.about.startswith("agreed to ") else "")
    close = later.turn > earlier.turn and earlier.kind in ("decision", "correction")
    if close and words.weight(own) < _LEANING:
        return True
    if close and words.weight(own) < 2 * _LEANING and _numbers(later.quote) and _numbers(told):
        return True
    # A part of it changes, the rest stays.
    common = own & words.content(earlier.quote)
    rest = words.weight(earlier.subject - own)
    return words.weight(common) >= 2 and words.overlap(own, earlier.subject) >= 0.4 and rest >= 3


def _amended(earlier: Wish, later: Wish) -> Wish:
    said = f"“{later.quote}”" + (f" ({later.seen})" if later.seen else "")
    return replace(
        earlier,
        amended=(*earlier.amended, said),
        subject=earlier.subject | later.subject,
        turn=later.turn,
        changes=True,
    )


def _rejects(turn: Turn) -> bool:
    return bool(turn.sentences) and cues.opens("rejection", turn.sentences[0], turn.spoken) > 0


def _denies(turn: Turn) -> bool:
    return bool(turn.sentences) and cues.has("disproved", turn.sentences[0], turn.spoken)


def _takes_back(turn: Turn) -> bool:
    return any(
        cues.has("takeback", s, turn.spoken) and not s.endswith(("?", "？")) and words.weight(words.content(s)) <= 12
        for s in turn.sentences[:3]
    )


def _without_replaced(wishes: list[Wish]) -> tuple[list[Wish], list[tuple[int, frozenset[str]]]]:
    """Drop what a later wish on the same subject replaces; the later one says so."""
    kept: list[Wish] = []
    outdated: list[tuple[int, frozenset[str]]] = []
    for wish in wishes:
        for index in range(len(kept) - 1, -1, -1):
            earlier = kept[index]
            if earlier.turn < wish.turn and _replaces(wish, earlier):
                wish = replace(wish, replaced=earlier.quote)
                outdated.append((wish.turn, frozenset(earlier.subject - wish.subject)))
                del kept[index]
        kept.append(wish)
    return kept, outdated


def _replaces(later: Wish, earlier: Wish) -> bool:
    common = later.subject & earlier.subject
    near = words.overlap(later.subject, earlier.subject)
    if not common:
        return False
    different = bool(later.subject - earlier.subject)
    if later.changes and later.kind != "rule":
        return different and near >= 0.5 and words.weight(common) >= 1.5
    if later.negative != earlier.negative:
        return words.weight(common) >= 2 and near >= 0.6
    numbers = (_numbers(later.quote), _numbers(earlier.quote))
    return bool(numbers[0] and numbers[1] and numbers[0] != numbers[1]) and near >= 0.6 and words.weight(common) >= 2


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)*", text))


def _distinct(wishes: list[Wish]) -> list[Wish]:
    kept: list[Wish] = []
    for wish in wishes:
        same = next(
            (
                i
                for i, k in enumerate(kept)
                if words.jaccard(k.subject, wish.subject) >= 0.8 and k.negative == wish.negative
            ),
            None,
        )
        if same is None:
            kept.append(wish)
        elif len(wish.quote) > len(kept[same].quote) and wish.kind == "rule":
            kept[same] = wish
    return kept
