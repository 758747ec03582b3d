"""`stillroom explain`: every rule about one session, and the one that decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stillroom.cli.options import Flag, current_settings
from stillroom.cli.output import Line, print_answer, print_json
from stillroom.cli.rulings import remedy, why
from stillroom.clock import Clock, SystemClock
from stillroom.config import Settings
from stillroom.errors import RecordingError
from stillroom.lanes import WHO
from stillroom.pausing import paused_since
from stillroom.recording.exporting.export import find_thread
from stillroom.store import Explanation, Question, Ruling, Store

_MARKS = {"passes": "ok", "refuses": "NO", "waits": "wait", "done": "done", "not_reached": "-"}


def explain_command(
    thread: str,
    /,
    *,
    cwd: Path | None = None,
    backfill: Flag = False,
    json: Flag = False,
) -> int:
    """Explain what becomes of a session: every rule about extracting, selecting and keeping it, in order.

    The rule that decided is marked, with the setting or the command that would change it. Shows what is stored;
    `stillroom threads` looks for new sessions first.

    ```
    stillroom explain 01a2273c-0036
    stillroom explain 01a2273c-0036 --backfill     # as `stillroom run --backfill` would see it
    ```

    Parameters
    ----------
    thread
        The thread's id, or as much of its beginning as no other id has; `stillroom threads` lists them.
    cwd
        Ask as `stillroom run --cwd` would.
    backfill
        Ask as `stillroom run --backfill` would.
    json
        Print every ruling as JSON.
    """
    settings = current_settings().impatient
    clock = SystemClock()
    try:
        found = find_thread(settings, thread, clock=clock)
    except RecordingError as error:
        raise _forgotten(settings, thread, clock) or error from None
    question = Question(
        memories=settings.memories,
        stage=settings.stage_one,
        now_ms=clock.now_ms(),
        cwd=str(cwd.absolute()) if cwd else None,
        backfill=backfill,
        paused_since=paused_since(str(settings.home)),
    )
    with Store.look(settings.database, clock=clock, limits=settings.database_limits) as store:
        explanation = store.standings.explain(found.thread_id, question)
    if explanation is None:
        raise RecordingError(
            f"`{found.thread_id}` was recorded since the last look", hint="`stillroom threads` takes it in"
        )
    if json:
        print_json(explanation)
        return 0
    print_answer(_lines(explanation))
    return 0


def _forgotten(settings: Settings, thread: str, clock: Clock) -> RecordingError | None:
    """Why nothing is known of it, if a person wanted that: of a whole id only, as a hash is all that is kept."""
    if not settings.database.exists():
        return None
    with Store.look(settings.database, clock=clock, limits=settings.database_limits) as store:
        if not store.forgetting.is_forgotten(thread):
            return None
    return RecordingError(f"`{thread}` was forgotten", hint="it is never learnt again, and nothing else is kept of it")


def _lines(explanation: Explanation) -> Iterator[Line]:
    standing = explanation.standing
    thread = standing.thread
    yield "bold", f"{thread.thread_id}  {thread.agent}  {thread.title or thread.preview}"
    yield None, f"{thread.rollout_path}"
    yield "bold", f"extraction: {standing.state.replace('_', ' ')}"
    yield from _rulings(explanation.extraction)
    yield "bold", f"in the memory: {'yes' if explanation.selected else 'no'}"
    yield from _rulings(explanation.selection)
    for out in explanation.withheld:
        yield "yellow", f"  out   {'line':<13} only {WHO[out.line.lane]} says: {out.line.text}"
        yield "yellow", f"{'':<21} what would change it: `stillroom review --trust {out.line.line_id}`"
    if explanation.retention:
        yield "bold", "kept:"
        yield from _rulings([explanation.retention])


def _rulings(rulings: Sequence[Ruling]) -> Iterator[Line]:
    decided = next((ruling for ruling in rulings if ruling.verdict != "passes"), None)
    for ruling in rulings:
        told = why(ruling) if ruling.verdict != "not_reached" else "an earlier rule decides"
        line = f"  {_MARKS[ruling.verdict]:<5} {ruling.rule:<13} {told}"
        if ruling is not decided:
            yield ("dim" if ruling.verdict == "not_reached" else None), line
            continue
        yield "yellow", f"{line}  <- decides"
        if way := remedy(ruling):
            yield "yellow", f"{'':<21} what would change it: {way}"
