"""A thread's rollout, read once: text for a model, events for the offline engine. Blocking; called in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import assert_never

import msgspec

from stillroom.config import ExtractionInput, StageOne
from stillroom.extract.external import ExternalContext
from stillroom.extract.outcome import ReadTotals
from stillroom.sessions.dedup import without_exchanges
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.evidence import render_evidence
from stillroom.sessions.feedback_filter import FeedbackFilter
from stillroom.sessions.item import Item
from stillroom.sessions.readers import open_thread
from stillroom.sessions.render import render_string, render_texts
from stillroom.sessions.rendered import Rendered
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import Decoder, ItemStream
from stillroom.sessions.truncate import BYTES_PER_TOKEN
from stillroom.stopping import Stop
from stillroom.store.records import ThreadRead
from stillroom.thread import MemoryMode, Thread

Redact = Callable[[str], str]
Forgotten = Callable[[bytes], bool]
"""Whether a forgotten session had this exchange."""


class ReadText(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a model is given it."""

    rendered: Rendered
    read: ReadTotals
    unknown: dict[str, int]
    memory_mode: MemoryMode | None  #: what the session's own later metadata says


class ReadEvents(msgspec.Struct, frozen=True, kw_only=True):
    """A session as the offline engine is given it."""

    events: list[Said | Ran]
    read: ReadTotals
    unknown: dict[str, int]
    memory_mode: MemoryMode | None


def read_text(
    thread: Thread,
    *,
    form: ExtractionInput,
    token_limit: int,
    refuse_external: bool,
    stage: StageOne,
    redact: Redact,
    root: Path,
    forgotten: Forgotten | None = None,
    stop: Stop | None = None,
) -> ReadText:
    """Render the rollout within `token_limit`, without what it was told of the memory at `root`, nor what it repeats
    of forgotten sessions.

    Raises `RolloutError`; `Stopped` when `stop` is asked for.
    """
    external, echo = ExternalContext(), FeedbackFilter(root)
    with _opened(thread, stage, stop=stop).heard(echo.told.add_lines) as items:
        if form == "string" and not refuse_external and forgotten is None:
            rendered = render_texts(echo.texts(items.texts()), token_limit=token_limit, redact=redact)
        else:
            watched = external.watch(items) if refuse_external else items
            rendered = _renderer(form)(echo.items(_known(watched, forgotten)), token_limit=token_limit, redact=redact)
    return ReadText(
        rendered=rendered,
        read=_totals(items.stats, rendered.source_bytes),
        unknown=items.stats.unknown,
        memory_mode=_mode(items.stats, external),
    )


def read_thread_events(
    thread: Thread,
    *,
    refuse_external: bool,
    stage: StageOne,
    redact: Redact,
    root: Path,
    forgotten: Forgotten | None = None,
    stop: Stop | None = None,
) -> ReadEvents:
    """Read what happened, already redacted, without what it was told of the memory at `root`, nor what it repeats of
    forgotten sessions. Raises `RolloutError`; `Stopped` when `stop` is asked for."""
    external, measured, echo = ExternalContext(), _Measured(), FeedbackFilter(root)
    with _opened(thread, stage, stop=stop).heard(echo.told.add_lines) as items:
        watched = external.watch(items) if refuse_external else items
        events = read_events(_redacted(echo.items(_known(measured.watch(watched), forgotten)), redact))
    return ReadEvents(
        events=events,
        read=_totals(items.stats, measured.bytes),
        unknown=items.stats.unknown,
        memory_mode=_mode(items.stats, external),
    )


def count_thread(thread: Thread, *, stage: StageOne) -> ThreadRead:
    """What the rollout holds, by reading all of it. Raises `RolloutError`."""
    with _opened(thread, stage) as items:
        size = sum(len(text) + 1 for text in items.texts())
    return thread_read(_totals(items.stats, size), items.stats.unknown)


def thread_read(read: ReadTotals, unknown: dict[str, int]) -> ThreadRead:
    """What the store keeps of a reading."""
    return ThreadRead(
        messages=read.messages,
        tokens=read.tokens,
        bad_lines=read.bad_lines,
        long_lines=read.long_lines,
        cut_bytes=read.cut_bytes,
        unknown=unknown,
    )


def rollout_token_limit(context_window: int | None, stage: StageOne, *, prompt_tokens: int = 0) -> int:
    """The share of the window that is the rollout's (spec §1.4): 70 % of its effective 95 %; 150,000 without one.

    In a small window it is what our own words (`prompt_tokens`) and the answer leave.
    """
    if context_window is None or context_window <= 0:
        return stage.fallback_rollout_tokens
    effective = context_window * stage.effective_context_window_percent // 100
    left = context_window - context_window * stage.reply_window_percent // 100 - prompt_tokens
    return max(1, min(effective * stage.context_window_percent // 100, left))


def _known(items: Iterable[Item], forgotten: Forgotten | None) -> Iterable[Item]:
    """Those that may be known."""
    return items if forgotten is None else without_exchanges(items, forgotten)


def _renderer(form: ExtractionInput) -> Callable[..., Rendered]:
    match form:
        case "string":
            return render_string
        case "evidence":
            return render_evidence
        case _:
            assert_never(form)


def _opened(thread: Thread, stage: StageOne, *, stop: Stop | None = None) -> ItemStream[Decoder]:
    items = open_thread(thread, max_line_bytes=stage.max_line_bytes)
    return items if stop is None else items.heard(lambda lines: stop.check())


def _mode(stats: ReadStats, external: ExternalContext) -> MemoryMode | None:
    return "polluted" if external.seen else stats.memory_mode


def _redacted(items: Iterable[Item], redact: Redact) -> Iterator[Item]:
    # Ahead of the offline engine: it cuts, lower-cases and joins words, and a cut secret is not recognised any more.
    for item in items:
        text = item.raw.decode()
        clean = redact(text)
        yield item if clean is text else msgspec.structs.replace(item, raw=clean.encode())


class _Measured:
    """How large the items were that went by."""

    def __init__(self) -> None:
        self.bytes = 0

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            self.bytes += len(item.raw) + 1  # and a comma
            yield item


def _totals(stats: ReadStats, size: int) -> ReadTotals:
    return ReadTotals(
        bytes=stats.bytes,
        items=stats.kept,
        messages=stats.messages,
        tokens=-(-size // BYTES_PER_TOKEN),
        bad_lines=stats.bad_lines,
        long_lines=stats.long_lines,
        cut_bytes=stats.cut_bytes,
    )
