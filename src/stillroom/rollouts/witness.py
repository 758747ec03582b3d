"""Who in a session says what: the lane of a line, found by its telling words among the session's events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stillroom.lanes import Lane, Verdict, is_out, marked
from stillroom.rollouts.directives import is_directive
from stillroom.rollouts.events import Ran, Said
from stillroom.rollouts.keys import keys_of, names_of
from stillroom.rollouts.voices import PRINTED, SPOKEN, Voices

#: So much of an order must be in a person's words to be theirs, and in a printed text to be its.
_ORDER_SHARE, _SOURCE_SHARE = 0.8, 0.6
#: So much of a fact in what the assistant said or ran: it knows what it speaks of, however a tool worded it.
_VOUCHED_SHARE = 0.25


class Witness:
    """The events of one session. What is asked of it is answered from words, never from meaning."""

    def __init__(self, events: Callable[[], Sequence[Said | Ran]], *, json: str | None = None) -> None:
        """`events` is called once, when there is a line that needs them. `json`: what they are made of, where it is at
        hand; a word that does not stand in it needs none of them."""
        self._voices = Voices(events, json=json)

    def marked(self, text: str, *, of_model: bool) -> str:
        """`text` with the lane of each line that is below the assistant's.

        Of what rules took out of a session only orders are looked at: all else is somebody's words or a command's end.
        """

        def judge(line: str, has_room: bool) -> Verdict:
            if is_directive(line):
                asked = line if of_model else _without_conclusion(line)
                return Verdict(self._of_order(asked, of_model=of_model), instruction=True)
            lane = self._of_fact(line) if of_model and has_room else "agent"
            sources = self._voices.sources(lane, keys_of(line)) if lane in PRINTED else ()
            return Verdict(lane, instruction=False, sources=sources)

        return marked(text, judge)

    def slug(self, slug: str | None) -> str | None:
        """The name of a session, unless it is an order of nobody's."""
        said = (slug or "").replace("-", " ").replace("_", " ")
        return None if is_directive(said) and is_out(self._of_order(said, of_model=True), True) else slug

    def _of_order(self, line: str, *, of_model: bool) -> Lane:
        keys = keys_of(line)
        # Where it leads says more than with which program.
        keys = frozenset(key for key in keys if "://" in key) or keys
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

    def _of_fact(self, line: str) -> Lane:
        keys = keys_of(line)
        if not keys or any(self._share(keys, lane) >= _VOUCHED_SHARE for lane in SPOKEN):
            return "agent"
        for lane in PRINTED:
            if self._share(keys, lane) >= _SOURCE_SHARE:
                return lane
        # Only names are missed: a plain sentence may be a summary in other words.
        names = names_of(line)
        invented = bool(names) and not any(self._share(names, lane) for lane in (*SPOKEN, *PRINTED))
        return "none" if invented else "agent"

    def _share(self, keys: frozenset[str], lane: Lane) -> float:
        return sum(self._voices.first(lane, key) is not None for key in keys) / len(keys)

    def _since(self, keys: frozenset[str], lane: Lane) -> int | None:
        """The event by which this lane had said enough of it; None: never."""
        found = sorted(at for key in keys if (at := self._voices.first(lane, key)) is not None)
        needed = max(1, -(-len(keys) * 6 // 10))
        return found[needed - 1] if len(found) >= needed else None


def _without_conclusion(line: str) -> str:
    """A line of the rules without what follows from it in their words (`-> default in app`)."""
    said, _, conclusion = line.rpartition(" -> ")
    return said if said and not is_directive(conclusion) else line
