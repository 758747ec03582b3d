"""Why a line stands in the memory: who wrote it, what it rests on, who said so, how often it was used since.

What it rests on was noted when it was written; nothing is guessed from its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stillroom.config import OFFLINE, Settings
from stillroom.insight.why.answer import Answer, Quote, Rests, Support, Why
from stillroom.insight.why.asking import Asked, asking
from stillroom.insight.why.claims import claim_of, claims_nothing
from stillroom.insight.why.origin import Origin, with_cost
from stillroom.insight.why.places import Place, Spot
from stillroom.insight.why.rests import named_threads
from stillroom.rollouts.redact import redact
from stillroom.store import Store
from stillroom.store.records import MemoryLine

#: Sessions and quotes of one line that are shown; the rest is counted.
_SESSIONS = 5
_QUOTES = 5
_LINE_CHARS = 600


def explain(settings: Settings, store: Store, words: str) -> Answer:
    """Explain the line `FILE:LINE`, or those that say a phrase.

    Raises `RecallError` when no line is meant, `StoreError`.
    """
    with asking(settings, words) as asked:
        return answer(asked, settings, store)


def answer(asked: Asked, settings: Settings, store: Store) -> Answer:
    """The same once git is at work. Raises `StoreError`."""
    explaining = _Explaining(settings, store)
    said = [explaining.said_of(spot) for spot in asked.spots]
    lines = tuple(map(explaining.why, asked.spots, said, asked.origins()))
    return Answer(asked=asked.words, lines=lines, more_lines=asked.more)


class _Said(NamedTuple):
    """What sessions have of a line."""

    support: Support
    rests: Sequence[Rests] = ()
    quotes: Sequence[Quote] = ()
    #: Sessions beside these.
    more: int = 0


class _Explaining:
    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store

    def said_of(self, spot: Spot) -> _Said:
        if claims_nothing(spot.place.text, claim_of(spot.place.text)):
            return _Said("format")
        if rows := self._store.memory_lines.of(spot.place.text):
            threads = list(dict.fromkeys(row.thread_id for row in rows))
            quotes = [self._quote(row) for row in rows if row.speaker != "nobody"]
            support: Support = "quoted" if quotes else "unfound"
        else:
            threads, quotes, support = named_threads(spot, self._settings.root), [], "unknown"
        rests = [self._rest(each, by_task=not rows) for each in threads[:_SESSIONS]]
        return _Said(support, rests, quotes[:_QUOTES], more=max(len(threads) - _SESSIONS, 0))

    def why(self, spot: Spot, said: _Said, origin: Origin) -> Why:
        origin, place = with_cost(origin, self._store), spot.place
        uses = self._store.uses.citations([each.thread_id for each in said.rests], since=origin.at or 0)
        return Why(
            place=Place(path=place.path, line=place.line, text=self._clean(place.text)[:_LINE_CHARS]),
            origin=origin,
            support=said.support,
            rests_on=tuple(said.rests),
            more_sessions=said.more,
            quotes=tuple(said.quotes),
            cited=len(uses),
            last_cited=max(uses, default=None),
        )

    def _quote(self, row: MemoryLine) -> Quote:
        assert row.speaker != "nobody"
        return Quote(thread_id=row.thread_id, who=row.speaker, line=row.line_no, text=self._clean(row.quote))

    def _rest(self, thread_id: str, *, by_task: bool) -> Rests:
        thread = self._store.threads.get(thread_id)
        output = self._store.outputs.get(thread_id)
        memory = self._store.outputs.raw_memory(thread_id)
        return Rests(
            thread_id=thread_id,
            agent=thread.agent if thread else "",
            cwd=thread.cwd if thread else "",
            rollout_path=thread.rollout_path if thread else "",
            at=memory.source_updated_at if memory else None,
            by_task=by_task,
            switched_off=thread is not None and thread.memory_mode != "enabled",
            engine=output.engine if output else None,
            extracted_at=output.generated_at if output else None,
            prompt=output.prompt if output else None,
            release=output.release if output else None,
            cost_usd=self._cost(thread_id) if output and output.engine != OFFLINE else None,
        )

    def _cost(self, thread_id: str) -> float | None:
        prices = [call.cost_usd for call in self._store.ledger.calls(thread_id=thread_id) if call.cost_usd is not None]
        return sum(prices) if prices else None

    def _clean(self, text: str) -> str:
        return redact(text, style=self._settings.memories.redaction)
