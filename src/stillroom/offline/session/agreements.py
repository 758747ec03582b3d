"""What the user takes of what the assistant put forward: a yes, a choice, an answer."""

from __future__ import annotations

from dataclasses import replace

from stillroom.offline import cues
from stillroom.offline.session import kinds, referents, stance
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE, LEANING, Wish
from stillroom.offline.sizes import QUOTE_CHARS
from stillroom.offline.text import words

_FULL_ANSWER = 9.0
"""An answer in a whole sentence says up to this (in words)."""
_PUT_CHARS = 600
"""What the assistant put to the user stands at the end of its message."""


def agreement(turn: Turn, before: Turn) -> list[Wish]:
    """The user's yes to something that the assistant proposed, or the option they picked."""
    spoken = turn.spoken
    opening = turn.sentences[0]
    if stance.rejects(turn) or not turn.steps or referents.asks_what_was_meant(before):
        return []
    if not turn.edited and any(cues.has(kind, opening, spoken) for kind in ("deferred", "hedge")):
        return []  # "hm, let's talk about it in the meeting"
    if pairs := referents.paired(before, turn.text, spoken):
        return [_paired(turn, asked, given) for asked, given in pairs]
    picked = referents.picked(before, opening, spoken) if words.weight(words.content(opening)) <= 8 else ""
    if (
        picked
        and words.weight(words.content(picked)) < BARE
        and referents.is_process(referents.question(before), spoken)
    ):
        picked = ""  # "One commit or two?"
    if not picked and not (cues.opens("approval", opening, spoken) or kinds.is_question(opening, spoken)):
        picked = referents.named(before, opening)
    agrees = cues.opens("approval", opening, spoken) > 0
    offered = picked or (_offer(turn, before, opening) if agrees else "")
    if not offered:
        answered = _answer(turn, before, opening)
        return [answered] if answered else []
    asked = next(iter(asked_by_user(before)), "")
    wanted = f" (having asked “{words.shorten(asked, 160)}”)" if asked else ""
    return [_taken(turn, opening, offered, wanted)]


def choice(turn: Turn, before: Turn, sentence: str) -> Wish | None:
    """A later sentence of an answer that takes one of the choices by its name ("the grace period stays. keep two")."""
    if not turn.runs or words.weight(words.content(sentence)) > LEANING or not kinds.is_order(sentence, turn.spoken):
        return None
    taken = referents.named_choice(before, sentence, turn.spoken)
    return _taken(turn, sentence, taken, "") if taken else None


def after(wish: Wish, choice: Wish) -> Wish:
    """A choice with the sentence before it, which says why."""
    quote = f"{wish.quote} {choice.quote}"
    return replace(choice, quote=quote, subject=wish.subject | choice.subject) if len(quote) <= QUOTE_CHARS else choice


def _offer(turn: Turn, before: Turn, opening: str) -> str:
    """What a yes takes: the proposal, the answer to what the user had asked, or a choice that they are glad of."""
    offered = referents.proposal(before)
    if (
        not offered
        and not before.edited  # then it is thanks for what was done
        and any(cues.has("deliberation", q, before.spoken) for q in asked_by_user(before))
    ):
        offered = referents.answer(before)
    if not offered and cues.has("endorsed", turn.text[:120], turn.spoken):
        offered = referents.settled(before)
    # "ok, leave it at 20" is no yes to thirty.
    return "" if kinds.numbers(opening) - kinds.numbers(offered) else offered


def _taken(turn: Turn, quote: str, offered: str, wanted: str) -> Wish:
    return Wish(
        turn=turn.number,
        kind="decision",
        quote=words.shorten(quote, QUOTE_CHARS),
        about=f"agreed to “{words.shorten(offered, 300)}”{wanted}",
        subject=words.content(offered) | words.content(quote),
    )


def _paired(turn: Turn, asked: str, given: str) -> Wish:
    return Wish(
        turn=turn.number,
        kind="decision",
        quote=words.shorten(given, QUOTE_CHARS),
        about=f"asked “{words.shorten(asked, 200)}”",
        subject=words.content(asked) | words.content(given),
    )


def _answer(turn: Turn, before: Turn, opening: str) -> Wish | None:
    """A short answer to what the assistant had asked ("own queue"). A yes or no to it says nothing lasting."""
    spoken = turn.spoken
    asked = referents.question(before)
    own = words.content(opening)
    beyond = kinds.own_weight(opening, spoken)
    agrees = cues.opens("approval", opening, spoken) > 0
    if not words.content(cues.without("retract", opening, spoken)) or cues.has("broken", opening, spoken):
        return None  # "hm": no answer; "it still crackles": another report
    if not own or words.weight(own) > (_FULL_ANSWER if _takes_up(turn, before, own) else LEANING):
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
        about=f"asked “{words.shorten(' '.join([*asked_by_user(before), asked]), 240)}”",
        subject=own | words.content(asked),
    )


def _takes_up(turn: Turn, before: Turn, own: frozenset[str]) -> bool:
    """Whether an answer has a word of what the assistant had put to the user, and was then worked on."""
    return bool(turn.edited) and bool(own & words.content(before.last_reply[-_PUT_CHARS:]))


def _verdict(turn: Turn, before: Turn, opening: str) -> Wish | None:
    """What the user makes of the answer to a question of their own ("zod or yup?" "zod, because …" "then zod")."""
    asked = [q for q in asked_by_user(before) if cues.has("deliberation", q, before.spoken)]
    own = words.content(opening)
    known = words.content(before.last_reply[:2000]) & words.content(" ".join(asked))
    if not asked or not turn.runs or not own & known or kinds.is_question(opening, turn.spoken):
        return None
    about = f"asked “{words.shorten(asked[0], 200)}”"
    return Wish(
        turn.number, "decision", words.shorten(opening, QUOTE_CHARS), about, subject=own | words.content(asked[0])
    )


def asked_by_user(before: Turn) -> list[str]:
    """The user's own question, when the assistant answered it with one."""
    return [s for s in before.sentences[-3:] if kinds.is_question(s, before.spoken)][-1:]
