"""What models did lately: phases that failed, answers that are empty where there is much to say."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import islice

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.errors import StillroomError
from stillroom.extract.engine import RulesEngine, redactor
from stillroom.insight.doctor.finding import Found, found, ok
from stillroom.insight.status import PassLine, pass_line
from stillroom.stopping import Stop
from stillroom.store import Store
from stillroom.wording import many

_PASSES = 5
#: Sessions without a memory that the offline engine looks at: each is read.
_LOOKED_AT = 5
_MUCH = 3
"""Points of a session that are more than chance."""
_RICH = 2
"""So many of them are no chance."""
_TOLD_CHARS = 300
_NO_TOOLS = "called none of its tools"


def check_phases(settings: Settings, clock: Clock) -> Iterator[Found]:
    """How the last passes ended, and whether a model's empty answers can be right. Calls no model."""
    if not settings.database.exists():
        return
    with Store.open(settings.database, clock=clock, limits=settings.database_limits) as store:
        lines = [pass_line(record) for record in store.ledger.last_passes(_PASSES)]
        wrong = [*_extraction(lines), *_consolidation(lines), *_empty(settings, store)]
    yield from wrong or [ok("phases", "nothing failed in the last pass")]


def _extraction(lines: list[PassLine]) -> Iterator[Found]:
    line = next((each for each in lines if each.with_output or each.no_output or each.failed), None)
    if line is None or not line.failed:
        return
    of = line.with_output + line.no_output + line.failed
    meanwhile = f"; {line.fallbacks:,} have the offline engine's memory meanwhile" if line.fallbacks else ""
    why = f": {line.failure[:_TOLD_CHARS]}" if line.failure else ""
    what = f"{line.failed:,} of {many(of, 'session')} failed in the last extraction{why}{meanwhile}"
    yield found("phases", "warning", what, remedy="stillroom run --retry  # when the cause is mended")


def _consolidation(lines: list[PassLine]) -> Iterator[Found]:
    line = next((each for each in lines if each.consolidation not in (None, "skipped")), None)
    if line is None or not (line.consolidation == "failed" or line.is_fallback):
        return
    reason = (line.reason or "")[:_TOLD_CHARS]
    what = f"the last consolidation failed ({line.consolidation_status}): {reason}"
    if line.is_fallback:
        what = f"the folder is {reason}"
    remedy = "stillroom run --retry  # when the cause is mended"
    if _NO_TOOLS in reason:
        remedy = 'set `consolidation_model` to a model that calls tools, or to "offline"'
    yield found("phases", "warning", what, remedy=remedy)


def _empty(settings: Settings, store: Store) -> Iterator[Found]:
    """A model that says of rich sessions that there is nothing in them."""
    count, newest = store.extraction.empty_answers(limit=_LOOKED_AT)
    if not newest:
        return
    engine = RulesEngine(settings, redact=redactor(settings), forgotten=store.forgetting.exchange_check())
    rich = [thread_id for thread_id in newest if _points(thread_id, store, engine) >= _MUCH]
    if len(rich) < min(_RICH, len(newest)):
        return
    what = (
        f"{settings.memories.extract_model} found nothing in {many(count, 'session')}; of the newest {len(newest)} the"
        f" offline engine finds {_MUCH} points and more in {len(rich)}"
    )
    remedy = f"stillroom run --again --session {shlex.quote(rich[0])}  # with `--engine` by another model"
    yield found("phases", "warning", what, remedy=remedy)


def _points(thread_id: str, store: Store, engine: RulesEngine) -> int:
    thread = store.threads.get(thread_id)
    if thread is None:
        return 0
    try:
        draft = engine.open(thread, stop=Stop()).extract().draft
    except StillroomError:  # it can't be read any more
        return 0
    lines = draft.raw_memory.splitlines() if draft else []
    return sum(1 for _ in islice((line for line in lines if line.startswith("- ")), _MUCH))


__all__ = ["check_phases"]
