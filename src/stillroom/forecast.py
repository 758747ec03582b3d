"""What a pass would send to models, and what that costs at list price, before anything is sent.

Phase 1 is measured: each session is read and cut as it would be sent. Its answers, and the work of the consolidation
agent, are estimates; what earlier passes spent takes their place as soon as there were any.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from stillroom.config import OFFLINE, Settings
from stillroom.errors import RolloutError
from stillroom.extract.prompt import input_prompt, prompt_tokens, system_prompt
from stillroom.extract.reading import read_text, rollout_token_limit
from stillroom.models.prices import Price, context_window_of, price_of
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.rollouts.redact import redact
from stillroom.spending import Phase, Usage
from stillroom.store import Question, SpendingTotal, Store
from stillroom.thread import Thread

_BYTES_PER_TOKEN = 4
#: Two texts of a page each, and a little reasoning: what a model answers about one session.
_REPLY_TOKENS = 2_000
#: The agent's instructions, the lists and diffs that it reads first, and what it writes beside the memory.
_AGENT_BASE_TOKENS = 10_000
#: A usual run; each request sends again what was read before, nearly all of it from the prompt cache.
_AGENT_REQUESTS = 25
#: Costs something wherever a call does.
_A_CALL = Usage(input_tokens=1_000_000, output_tokens=1_000_000)


class PhaseForecast(msgspec.Struct, frozen=True, kw_only=True):
    """What one phase would send."""

    model: str
    #: Phase 1: sessions. Phase 2: memories of sessions that the agent reads.
    inputs: int
    usage: Usage
    #: US dollars at list price; None: not known. A server on this machine costs nothing.
    cost_usd: float | None
    #: No call of this model is on record.
    first: bool


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass would do with models."""

    #: Sessions that would be extracted, by whoever does it.
    threads: int
    #: Of these, sessions that can't be read.
    unreadable: int
    extract: PhaseForecast
    #: None: there is nothing to consolidate.
    consolidate: PhaseForecast | None
    #: `memories.max_weighted_tokens_per_run`.
    run_cap: int
    #: Of both phases.
    weighted_tokens: int
    #: US dollars; None: the price of a model is not known.
    cost_usd: float | None

    @property
    def phases(self) -> tuple[PhaseForecast, ...]:
        return (self.extract, *([self.consolidate] if self.consolidate else []))

    @property
    def first(self) -> bool:
        """A model would be called for the first time."""
        return any(phase.first for phase in self.phases)


def may_need_consent(settings: Settings, store: Store, *, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a pass is to be asked for, as far as it can be told without reading sessions: a model is configured that
    was never called, and one costs something. Raises `ConfigError` for a model that can't be used."""
    spent, models = store.ledger.spending(), _models(settings)
    if not any(_is_new(name, spent) for name in models):
        return False
    costs_nothing = all(price_of(name, settings, environ=environ)(_A_CALL) == 0 for name in models)
    return not costs_nothing or settings.memories.ask_above_usd < 0  # below nothing: always ask


def needs_consent(forecast: Forecast, settings: Settings, *, always: bool = False) -> bool:
    """Whether a person should be asked before the first calls of a model; `always`: before later ones too."""
    if not (forecast.first or always):
        return False
    if (cost := forecast.cost_usd) is None:
        return forecast.weighted_tokens > settings.memories.ask_above_weighted_tokens
    return cost > settings.memories.ask_above_usd


def forecast(
    settings: Settings,
    store: Store,
    question: Question,
    *,
    on_progress: ProgressListener = silent,
    environ: Mapping[str, str] = os.environ,
) -> Forecast:
    """Of the pass that `question` asks for. Blocking: reads every session that a model would be sent.

    Raises `ConfigError` for a model that can't be used.
    """
    threads = [standing.thread for standing in store.standings.of_all(question) if standing.state == "next"]
    spent = store.ledger.spending()
    extract, unreadable = _extraction(settings, threads, spent, on_progress, environ)
    consolidate = _consolidation(settings, store, question, threads, unreadable, spent, environ)
    phases = [extract, *([consolidate] if consolidate else [])]
    costs = [phase.cost_usd for phase in phases if phase.cost_usd is not None]
    return Forecast(
        threads=len(threads),
        unreadable=unreadable,
        extract=extract,
        consolidate=consolidate,
        run_cap=settings.memories.max_weighted_tokens_per_run,
        weighted_tokens=sum(phase.usage.weighted_tokens for phase in phases),
        cost_usd=sum(costs) if len(costs) == len(phases) else None,
    )


def _extraction(
    settings: Settings,
    threads: Sequence[Thread],
    spent: Sequence[SpendingTotal],
    on_progress: ProgressListener,
    environ: Mapping[str, str],
) -> tuple[PhaseForecast, int]:
    """Phase 1, and how many sessions can't be read."""
    name = settings.memories.extract_model
    if name == OFFLINE:
        return _phase(name, len(threads), Usage(), spent, settings, environ), 0
    window = context_window_of(name, settings, environ=environ)
    limit = rollout_token_limit(window, settings.stage_one, prompt_tokens=prompt_tokens())
    sent_bytes, unreadable = 0, 0
    for number, thread in enumerate(threads, 1):
        try:
            sent_bytes += _sent_bytes(thread, limit, settings)
        except RolloutError:
            unreadable += 1
        on_progress(Progress(stage="price", done=number, total=len(threads)))
    readable = len(threads) - unreadable
    usage = Usage(
        input_tokens=sent_bytes // _BYTES_PER_TOKEN,
        output_tokens=readable * (_average(spent, "extract", name).output_tokens or _REPLY_TOKENS),
    )
    return _phase(name, readable, usage, spent, settings, environ), unreadable


def _sent_bytes(thread: Thread, token_limit: int, settings: Settings) -> int:
    memories = settings.memories
    clean = partial(redact, style=memories.redaction)
    text = read_text(
        thread,
        form=memories.extraction_input,
        token_limit=token_limit,
        refuse_external=memories.disable_on_external_context,
        stage=settings.stage_one,
        redact=clean,
        root=settings.root,
    )
    if text.memory_mode not in (None, "enabled"):
        return 0  # such a session is not sent
    user = input_prompt(
        thread, text.rendered, form=memories.extraction_input, redact=clean, output=memories.extraction_output
    )
    return len(system_prompt(memories.extraction_output).encode()) + len(user.encode("utf-8", "replace"))


def _consolidation(
    settings: Settings,
    store: Store,
    question: Question,
    threads: Sequence[Thread],
    unreadable: int,
    spent: Sequence[SpendingTotal],
    environ: Mapping[str, str],
) -> PhaseForecast | None:
    """The agent reads every memory that it was given once; what it read is sent again with each request."""
    if _waits(settings, store, question):
        return None
    memories = settings.memories
    limit = memories.max_raw_memories_for_consolidation
    # What is extracted again takes the place of what there is.
    again, extracted = {thread.thread_id for thread in threads}, len(threads) - unreadable
    there = store.consolidation.select(limit=limit, max_unused_days=memories.max_unused_days).on_disk
    inputs = [output for output in there if output.thread_id not in again]
    if not extracted and (not inputs or _is_consolidated(store)):
        return None
    name = memories.consolidation_model
    new = min(extracted, limit)
    count = min(len(inputs) + new, limit)  # the newest take the place of others
    if name == OFFLINE:
        return _phase(name, count, Usage(), spent, settings, environ)
    told = sum(len(output.raw_memory) + len(output.rollout_summary) for output in inputs) // _BYTES_PER_TOKEN
    read = min(told + new * _REPLY_TOKENS, settings.stage_two.max_conversation_bytes // _BYTES_PER_TOKEN)
    cached = _AGENT_REQUESTS * (_AGENT_BASE_TOKENS + read // 2)
    usage = Usage(
        input_tokens=min(_AGENT_BASE_TOKENS + read + cached, settings.stage_two.max_total_tokens),
        cached_input_tokens=min(cached, settings.stage_two.max_total_tokens),
        output_tokens=_AGENT_BASE_TOKENS + read // 2,
    )
    return _phase(name, count, usage, spent, settings, environ)


def _waits(settings: Settings, store: Store, question: Question) -> bool:
    """Whether a hook's pass would consolidate nothing yet: the last time was less than six hours ago."""
    job = store.consolidation.job()
    if job is None or job.finished_at is None or job.last_error is not None or question.is_unbounded:
        return False
    return job.finished_at <= question.now < job.finished_at + settings.consolidating.success_cooldown_seconds


def _is_consolidated(store: Store) -> bool:
    job = store.consolidation.job()
    return job is not None and (job.input_watermark or 0) <= (job.last_success_watermark or 0)


def _phase(
    name: str,
    inputs: int,
    usage: Usage,
    spent: Sequence[SpendingTotal],
    settings: Settings,
    environ: Mapping[str, str],
) -> PhaseForecast:
    price: Price = price_of(name, settings, environ=environ)
    return PhaseForecast(
        model=name,
        inputs=inputs,
        usage=usage,
        cost_usd=price(usage) if usage != Usage() else 0.0,
        first=_is_new(name, spent) and usage != Usage(),
    )


def _models(settings: Settings) -> set[str]:
    return {settings.memories.extract_model, settings.memories.consolidation_model} - {OFFLINE}


def _is_new(name: str, spent: Sequence[SpendingTotal]) -> bool:
    return name != OFFLINE and all(total.model != name or total.calls == total.failed_calls for total in spent)


def _average(spent: Sequence[SpendingTotal], phase: Phase, model: str) -> Usage:
    """What an answer of the model used so far."""
    totals = [total for total in spent if (total.phase, total.model) == (phase, model)]
    answered = sum(total.calls - total.failed_calls for total in totals)
    if not answered:
        return Usage()
    return Usage(output_tokens=sum(total.usage.output_tokens for total in totals) // answered)
