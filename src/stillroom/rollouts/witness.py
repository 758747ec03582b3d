"""Who in a session says what: the lane of a line, found by its telling words among the session's events."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial

from stillroom.lanes import Lane, Verdict, is_out, marked
from stillroom.rollouts.directives import is_directive
from stillroom.rollouts.events import Ran, Said
from stillroom.rollouts.keys import terms_of
from stillroom.rollouts.prescriptions import prescribes
from stillroom.rollouts.voices import PRINTED, SPOKEN, Voices

#: So much of an order must be in a person's words to be theirs, and in a printed text to be its.
_ORDER_SHARE, _SOURCE_SHARE = 0.8, 0.6
#: So much of a fact in what the assistant said or ran: it knows what it speaks of, however a tool worded it.
_VOUCHED_SHARE = 0.25
#: So much of a sentence must come from a page first for it to be the page's, if its names do.
_WEB_SHARE = 0.75
#: So much of a sentence must be words of a command (`make seed`) for the command to show that it is so.
_PROVEN_SHARE = 0.4
#: So many names say it in whatever words; fewer words than these are in many texts.
_LEAST_NAMES, _LEAST_WORDS = 3, 3
#: What a model writes of a person's wishes, and how much of it may be in other words. Who agrees says yes to others'.
_CLAIMED = re.compile(
    r"\buser (?!agreed|accepted|approved|confirmed|chose|picked|selected)\w+[^\"“]{0,40}[\"“](.+?)[\"”]", re.IGNORECASE
)
_CLAIMED_SHARE = 0.5
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|[。！？]|[:|]\s|\s->\s|\s\(")
#: What is told as the words of an error is no advice of the assistant's.
_QUOTED_ERROR = re.compile(
    r"(\b(?:fail|error|exit|stop|abort|crash|die[sd]|exception)[^`\"“]{0,40})(?:`[^`]+`|\"[^\"]+\"|“[^”]+”)",
    re.IGNORECASE,
)
#: What the rules add to what the assistant said, and the lines in which they record how a command ended.
_REMARK = re.compile(r" \(found by the assistant[^)]*\)")
_RECORD = re.compile(
    r"(?:\[\d+\] )?`.*?`(?: in `[^`]*`)? (?:failed\b|-> passed)"
    r"|the user (?:asked|corrected|decided|said|reported|agreed)\b"
)
#: A link, or what is left of one without its scheme.
_LINK = re.compile(r"(?:https?://)?((?:[\w-]+\.)+[a-z]{2,}/\S*)|\w+://(?:\S*)")


class Witness:
    """The events of one session. What is asked of it is answered from words, never from meaning."""

    def __init__(self, events: Callable[[], Sequence[Said | Ran]], *, json: str | None = None) -> None:
        """`events` is called once, when there is a line that needs them. `json`: what they are made of, where it is at
        hand; a word that does not stand in it needs none of them."""
        self._voices = Voices(events, json=json)
        self._judged: dict[tuple[str, bool, bool], Verdict] = {}
        self._terms = cache(terms_of)  #: a line and its sentences are asked for theirs several times

    def marked(self, text: str, *, of_model: bool) -> str:
        """`text` with the lane of each line that is below the assistant's.

        Of what rules took out of a session only orders, advice, and what a page said, are looked at: all else is
        somebody's words or a command's end.
        """
        return marked(text, partial(self._judge, of_model=of_model))

    def _judge(self, line: str, has_room: bool, *, of_model: bool) -> Verdict:
        """The texts of a session say many a line again."""
        asked = (line, has_room, of_model)
        if asked not in self._judged:
            self._judged[asked] = self._verdict(line, has_room=has_room, of_model=of_model)
        return self._judged[asked]

    def _verdict(self, line: str, *, has_room: bool, of_model: bool) -> Verdict:
        if is_directive(line):
            asked = line if of_model else _without_conclusion(line)
            return Verdict(self._of_order(asked, of_model=of_model), instruction=True)
        if of_model and (claimed := self._of_claimed(line)) is not None:
            return Verdict(claimed, instruction=True)
        lane: Lane = "agent"
        if self._is_of_the_web(line):
            lane = "web"
        elif (printed := self._of_advice(line if of_model else _found_out(line))) is not None:
            return Verdict(printed, instruction=True)
        elif of_model and has_room:
            lane = self._of_fact(line)
        sources = self._voices.sources(lane, self._terms(line).keys) if lane in PRINTED else ()
        return Verdict(lane, instruction=False, sources=sources)

    def slug(self, slug: str | None) -> str | None:
        """The name of a session, unless it is an order of nobody's."""
        said = (slug or "").replace("-", " ").replace("_", " ")
        return None if is_directive(said) and is_out(self._of_order(said, of_model=True), True) else slug

    def _of_order(self, line: str, *, of_model: bool) -> Lane:
        keys = self._terms(line).keys
        # Where it leads says more than with which program.
        keys = frozenset(filter(_LINK.fullmatch, keys)) or keys
        if not keys or self._share(keys, "user") >= _ORDER_SHARE:
            return "user"
        printed = [(since, lane) for lane in PRINTED if (since := self._since(keys, lane)) is not None]
        agent = self._since(keys, "agent")
        if agent is not None and all(agent <= since for since, _ in printed):
            # What was cut out of a long output may have said it before.
            unseen = [lane for lane in PRINTED if self._voices.cut.get(lane, agent) < agent]
            return unseen[-1] if unseen else "agent"
        if printed:
            return printed[-1][1]
        # Rules invent nothing: it is the words of whoever said most of it.
        return "none" if of_model else max((*PRINTED[::-1], *SPOKEN[::-1]), key=lambda lane: self._share(keys, lane))

    def _of_claimed(self, line: str) -> Lane | None:
        """Which printed text has the words that a model says are the person's, and the person never said."""
        quoted = _CLAIMED.search(line)
        if quoted is None:
            return None
        keys = self._terms(quoted[1]).keys
        if not keys or self._share(keys, "user") >= _CLAIMED_SHARE:
            return None  # a translation is in nobody's words either
        lane = self._of_order(quoted[1], of_model=True)
        return lane if lane in PRINTED else None

    def _of_fact(self, line: str) -> Lane:
        terms = self._terms(line)
        keys = terms.keys
        if not keys or any(self._share(keys, lane) >= _VOUCHED_SHARE for lane in SPOKEN):
            return "agent"
        for lane in PRINTED:
            if self._share(keys, lane) >= _SOURCE_SHARE:
                return lane
        # Only names are missed: a plain sentence may be a summary in other words.
        invented = bool(terms.names) and not any(self._share(terms.names, lane) for lane in (*SPOKEN, *PRINTED))
        return "none" if invented else "agent"

    def _of_advice(self, line: str) -> Lane | None:
        """Which file or tool told what is to be done, in words that a sentence of the line repeats.

        None: none did, or a person says the same, or the assistant did so and it worked. Then it is a finding.
        """
        if not prescribes(line):
            return None
        said = _QUOTED_ERROR.sub(r"\1", line)
        advice = [
            part for part in _SENTENCE.split(said) if prescribes(part) and len(self._terms(part).words) >= _LEAST_WORDS
        ]
        # "Once X is 0 it goes away; it has to be set": with what stands in another sentence.
        lanes = map(self._of_advised, advice or [said])
        return next((lane for lane in lanes if lane is not None), None)

    def _of_advised(self, said: str) -> Lane | None:
        names, words = self._terms(said)
        if len(words) < _LEAST_WORDS or self._share(words, "user") >= _ORDER_SHARE:
            return None
        since = {lane: self._voices.passage(lane, words, names=names, share=_SOURCE_SHARE) for lane in PRINTED}
        told = [(at, lane) for lane, at in since.items() if at is not None] or self._unseen(names)
        if not told or self._is_proven(names, words):
            return None
        at, lane = min(told)
        agent = self._voices.passage("agent", words, names=names, share=_SOURCE_SHARE)
        return lane if agent is None or at < agent else None

    def _is_proven(self, names: frozenset[str], words: frozenset[str]) -> bool:
        """Whether the assistant did what a sentence says, and it worked. To follow a link proves nothing; common words
        of a command do only where they are most of the sentence."""
        if not names or any(map(_LINK.fullmatch, names)):
            return False
        is_telling = not all(map(str.isalpha, names)) or len(names) >= _PROVEN_SHARE * len(words)
        return is_telling and self._voices.did(names)

    def _unseen(self, names: frozenset[str]) -> list[tuple[int, Lane]]:
        """What was cut out of long outputs, if nobody but the assistant has the names: it may have them from there."""
        if not names or any(self._share(names, lane) for lane in ("user", *PRINTED)):
            return []
        return [(at, lane) for lane, at in self._voices.cut.items()]

    def _is_of_the_web(self, line: str) -> bool:
        """Whether a page said all that is telling in it, or in a sentence of it, and said it first: whoever repeats
        that found nothing out. What the person says is theirs, whoever said it before."""
        names, words = self._terms(line)
        if len(words) < _LEAST_WORDS and not names:
            return False
        if not any(map(self._voices.may_say, words)) or not self._voices.has_web:
            return False
        parts = [part for part in _SENTENCE.split(line) if len(self._terms(part).words) >= _LEAST_WORDS]
        return any(map(self._is_a_pages, (line, *parts)))

    def _is_a_pages(self, said: str) -> bool:
        names, words = self._terms(said)
        if not names and len(words) < _LEAST_WORDS:
            return False
        if self._share(words, "user") >= _ORDER_SHARE:
            return False
        of_page = {word for word in words if self._is_first_from("web", word)}
        # With the same names in other words, or in the same words.
        return names <= of_page and (len(names) >= _LEAST_NAMES or len(of_page) >= _WEB_SHARE * len(words))

    def _is_first_from(self, lane: Lane, key: str) -> bool:
        since = self._first(lane, key)
        spoken = (self._first(other, key) for other in SPOKEN)
        return since is not None and all(at is None or since < at for at in spoken)

    def _first(self, lane: Lane, key: str) -> int | None:
        """The first event in which a lane has the word; a link also without what it begins with, and the reverse."""
        link = _LINK.fullmatch(key) if "/" in key else None
        if link is None or not link[1]:
            return self._voices.first(lane, key)
        spellings = (link[1], f"https://{link[1]}", f"http://{link[1]}")
        found = [at for spelling in spellings if (at := self._voices.first(lane, spelling)) is not None]
        return min(found, default=None)

    def _share(self, keys: frozenset[str], lane: Lane) -> float:
        return sum(self._first(lane, key) is not None for key in keys) / len(keys)

    def _since(self, keys: frozenset[str], lane: Lane) -> int | None:
        """The event by which this lane had said enough of it; None: never."""
        found = sorted(at for key in keys if (at := self._first(lane, key)) is not None)
        needed = max(1, -(-len(keys) * 6 // 10))
        return found[needed - 1] if len(found) >= needed else None


def _found_out(line: str) -> str:
    """What the assistant says of its own in a line of the rules."""
    said, is_remarked = _REMARK.subn("", line)
    if is_remarked or not _RECORD.match(line):
        return said
    return line.partition(" | cause: ")[2].partition(" | ")[0]


def _without_conclusion(line: str) -> str:
    """A line of the rules without what follows from it in their words (`-> default in app`)."""
    said, _, conclusion = line.rpartition(" -> ")
    return said if said and not is_directive(conclusion) else line
