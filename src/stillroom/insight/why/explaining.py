"""Why a line stands in the memory: who wrote it, what it rests on, who said so, how often it was used since."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from stillroom.config import OFFLINE, Settings
from stillroom.insight.why.answer import Answer, Rests, Support, Why
from stillroom.insight.why.asking import Asked, asking
from stillroom.insight.why.claims import SAYS_IT, Claim, claim_of, claims_nothing, folded, least_share, share, weights
from stillroom.insight.why.origin import Origin, with_cost
from stillroom.insight.why.places import Place, Spot
from stillroom.insight.why.quote import Quote, Reach
from stillroom.insight.why.quotes import best_first, read_quotes
from stillroom.insight.why.rests import named_threads
from stillroom.rollouts.redact import redact
from stillroom.store import Store
from stillroom.store.records import MemoryLine, RawMemory

#: Sessions that are told and searched for one line; the rest is counted.
_SESSIONS = 5
_QUOTES = 5
_QUOTES_A_SESSION = 3
#: A session is searched so far, and no further one is begun after so long: an answer is to come at once.
_MOST_BYTES = 32 * 1024 * 1024
_SEARCH_SECONDS = 0.15
_LINE_CHARS = 600
#: How rare a word is, so many outputs tell well enough.
_SAMPLED = 200


def explain(settings: Settings, store: Store, words: str, *, whole: bool = False) -> Answer:
    """Explain the line `FILE:LINE`, or those that say a phrase. With `whole`, sessions are searched to their ends.

    Raises `RecallError` when no line is meant, `StoreError`.
    """
    with asking(settings, words) as asked:
        return answer(asked, settings, store, whole=whole)


def answer(asked: Asked, settings: Settings, store: Store, *, whole: bool = False) -> Answer:
    """The same once git is at work. Raises `StoreError`."""
    until = None if whole else time.monotonic() + _SEARCH_SECONDS
    explaining = _Explaining(settings, store, until)
    said = [explaining.said_of(spot) for spot in asked.spots]
    lines = tuple(map(explaining.why, asked.spots, said, asked.origins()))
    return Answer(asked=asked.words, lines=lines, more_lines=asked.more)


class _Found(NamedTuple):
    thread_id: str
    named: bool
    share: float
    at: int | None


class _Said(NamedTuple):
    """What sessions have of a line."""

    support: Support
    rests: Sequence[Rests] = ()
    quotes: Sequence[Quote] = ()
    #: Sessions beside these.
    more: int = 0


class _Explaining:
    def __init__(self, settings: Settings, store: Store, until: float | None) -> None:
        self._settings, self._store, self._until = settings, store, until

    @cached_property
    def _outputs(self) -> Sequence[RawMemory]:
        """All that was extracted: megabytes, and seldom needed."""
        return self._store.outputs.raw_memories()

    @cached_property
    def _sample(self) -> tuple[Sequence[str], int]:
        """What some outputs say, and how many times as many there are."""
        one_in = max(self._store.outputs.count() // _SAMPLED, 1)
        return [output.text.casefold() for output in self._store.outputs.raw_memories(one_in=one_in)], one_in

    def said_of(self, spot: Spot) -> _Said:
        claim = claim_of(spot.place.text)
        if claims_nothing(spot.place.text, claim):
            return _Said("format")
        if rows := self._store.memory_lines.of(spot.place.text):
            return self._stored(rows)
        weighed = weights(claim.words, self._met(claim))
        found = self._rests(spot, claim, weighed)
        rests, quotes = self._searched(found[:_SESSIONS], claim, weighed)
        if quotes:
            support: Support = "quoted"
        else:
            least = least_share(weighed, SAYS_IT)
            support = "remembered" if any(each.share >= least for each in found) else "none"
        return _Said(support, rests, quotes, more=max(len(found) - _SESSIONS, 0))

    def _stored(self, rows: Sequence[MemoryLine]) -> _Said:
        """What was noted when the line was stored."""
        threads = list(dict.fromkeys(row.thread_id for row in rows))
        memories = {each: self._store.outputs.raw_memory(each) for each in threads[:_SESSIONS]}
        rests = [
            self._rest(_Found(each, True, 1.0, memory.source_updated_at if memory else None), "whole", noted=True)
            for each, memory in memories.items()
        ]
        quotes = [self._noted(row) for row in rows if row.speaker != "nobody"]
        support: Support = "quoted" if quotes else "unfound"
        return _Said(support, rests, quotes[:_QUOTES], more=max(len(threads) - _SESSIONS, 0))

    def _noted(self, row: MemoryLine) -> Quote:
        assert row.speaker != "nobody"
        return Quote(
            thread_id=row.thread_id,
            who=row.speaker,
            at_ms=None,
            line=row.line_no,
            item="function_call_output" if row.speaker == "tool" else "message",
            text=self._clean(row.quote),
            verbatim=True,
            share=1.0,
        )

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

    def _met(self, claim: Claim) -> Counter[str]:
        """How many outputs have each word, told by some of them where there are many."""
        texts, one_in = self._sample
        return Counter({word: one_in * sum(word in text for text in texts) for word in claim.words})

    def _rests(self, spot: Spot, claim: Claim, weighed: Mapping[str, float]) -> list[_Found]:
        """The sessions that the block names, those first that say it; where none of them does, others that do."""
        named = named_threads(spot, self._settings.root)
        outputs = {each: self._store.outputs.raw_memory(each) for each in named}
        found = [
            _found(output, claim, weighed, named=True) if output else _Found(each, True, 0.0, None)
            for each, output in outputs.items()
        ]
        least = least_share(weighed, SAYS_IT)
        if all(each.share < least for each in found):
            others = (output for output in self._outputs if output.thread_id not in outputs)
            likely = (output for output in others if share(weighed, output.text.casefold()) >= least)
            found += [_found(output, claim, weighed, named=False) for output in likely]
        return sorted(found, key=lambda each: (-each.share, -(each.at or 0)))

    def _searched(
        self, found: Sequence[_Found], claim: Claim, weighed: Mapping[str, float]
    ) -> tuple[list[Rests], tuple[Quote, ...]]:
        rests: list[Rests] = []
        quotes: list[Quote] = []
        for each in found:
            thread = self._store.threads.get(each.thread_id)
            reach: Reach | None = None
            if thread is None:
                reach = "gone"
            elif not rests or self._until is None or time.monotonic() < self._until:
                said, reach = read_quotes(
                    thread,
                    claim,
                    weighed,
                    most=_QUOTES_A_SESSION,
                    max_bytes=None if self._until is None else _MOST_BYTES,
                    max_line_bytes=self._settings.stage_one.max_line_bytes,
                    redact=self._clean,
                )
                quotes += said
            rests.append(self._rest(each, reach))
        return rests, tuple(best_first(quotes)[:_QUOTES])

    def _rest(self, each: _Found, reach: Reach | None, *, noted: bool = False) -> Rests:
        thread = self._store.threads.get(each.thread_id)
        output = self._store.outputs.get(each.thread_id)
        return Rests(
            thread_id=each.thread_id,
            agent=thread.agent if thread else "",
            cwd=thread.cwd if thread else "",
            rollout_path=thread.rollout_path if thread else "",
            at=each.at,
            named=each.named,
            noted=noted,
            share=round(each.share, 2),
            switched_off=thread is not None and thread.memory_mode != "enabled",
            engine=output.engine if output else None,
            extracted_at=output.generated_at if output else None,
            prompt=output.prompt if output else None,
            release=output.release if output else None,
            cost_usd=self._cost(each.thread_id) if output and output.engine != OFFLINE else None,
            reach=reach,
        )

    def _cost(self, thread_id: str) -> float | None:
        prices = [call.cost_usd for call in self._store.ledger.calls(thread_id=thread_id) if call.cost_usd is not None]
        return sum(prices) if prices else None

    def _clean(self, text: str) -> str:
        return redact(text, style=self._settings.memories.redaction)


def _found(output: RawMemory, claim: Claim, weighed: Mapping[str, float], *, named: bool) -> _Found:
    text = folded(output.text)
    has = 1.0 if any(quote in text for quote in claim.quotes) else share(weighed, text)
    return _Found(output.thread_id, named, has, output.source_updated_at)
