"""`stillroom coverage`: how much of what happened lately the memory has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from stillroom.cli.moment import moment
from stillroom.cli.options import Flag, current_settings, option
from stillroom.cli.output import Line, print_answer, print_json
from stillroom.cli.progress import progress_bars
from stillroom.clock import SystemClock
from stillroom.insight.coverage.counted import Count
from stillroom.insight.coverage.coverage import Amounts, Coverage, Lost, Worst, read_coverage
from stillroom.store import Store
from stillroom.wording import many, size

_PARTS_TOLD = 8
_TITLE_CHARS = 60


def coverage_command(
    *,
    days: Annotated[int, option(at_least=1)] = 30,
    json: Flag = False,
) -> int:
    """Show how much of what users said, of what failed and of what was changed lately the memory has.

    Words are compared, not meanings: a share says where to look, not how good the memory is. Sessions are read once,
    and again when they, what was extracted of them, or the memory folder changed. `stillroom threads` looks for new
    sessions first.

    ```
    stillroom coverage
    stillroom coverage --days 7 --json | jq .worst
    ```

    Parameters
    ----------
    days
        Sessions that were active in so many days.
    json
        Print everything as JSON.
    """
    settings = current_settings().impatient
    clock = SystemClock()
    with (
        Store.look(settings.database, clock=clock, limits=settings.database_limits) as store,
        progress_bars(wanted=not json) as listen,
    ):
        coverage = read_coverage(settings, store, clock, days=days, on_progress=listen)
    if json:
        print_json(coverage)
        return 0
    print_answer(_lines(coverage))
    return 0


def _lines(found: Coverage) -> Iterator[Line]:
    states = ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in found.states.items())
    yield None, f"sessions      since {moment(found.since)}: {states or 'none'}"
    if found.not_looked_at:
        rules = ", ".join(f"{count:,} by the rule `{rule}`" for rule, count in found.not_looked_at.items())
        yield None, f"              not looked at: {rules}"
    if found.threads:
        yield "bold", f"of {many(found.threads, 'session')}          in what was extracted    in the folder"
        yield None, f"  words       {_share(found.amounts.words)}"
        yield None, f"  failures    {_share(found.amounts.failures)}"
        yield None, f"  files       {_share(found.amounts.files)}"
    for label, parts in (("agent", found.agents), ("project", found.projects)):
        for part in parts[:_PARTS_TOLD] if len(parts) > 1 else ():
            yield None, f"{label:<13} {part.name}: {many(part.threads, 'session')}, {_short(part.amounts)}"
        if len(parts) > _PARTS_TOLD:
            yield None, f"              and {len(parts) - _PARTS_TOLD:,} more"
    yield lost_line(found.lost)
    for worst in found.worst:
        yield "yellow", f"lacks most    {_worst(worst)}"
    if found.worst:
        yield None, "              `stillroom explain THREAD` tells what became of one"


def lost_line(lost: Lost) -> Line:
    """What was lost to cuts, in one line."""
    parts = [f"{many(lost.long_lines, 'long line')} ({size(lost.cut_bytes)} cut out)"] if lost.long_lines else []
    parts += [many(lost.bad_lines, "broken line")] if lost.bad_lines else []
    parts += [f"{many(lost.unreadable, 'session')} that can't be read"] if lost.unreadable else []
    if lost.shortened:
        parts.append(
            f"{many(len(lost.shortened), 'session')} that did not fit the model ({', '.join(lost.shortened[:3])})"
        )
    if lost.not_in_folder:
        parts.append(f"{many(lost.not_in_folder, 'session')} that the folder does not name")
    if lost.withheld:
        parts.append(f"{many(lost.withheld, 'line')} that only a tool or the web says (`stillroom review`)")
    return ("yellow" if parts else None), f"lost to cuts  {', '.join(parts) or 'nothing'}"


def _share(count: Count) -> str:
    if not count.total:
        return "none"
    return f"{_of(count.extracted, count.total):<24} {_of(count.folder, count.total)}"


def _of(some: int, total: int) -> str:
    return f"{some:,} of {total:,} ({some / total:.0%})"


def _short(amounts: Amounts) -> str:
    named = (("word", amounts.words), ("failure", amounts.failures), ("file", amounts.files))
    shares = (f"{count.folder / count.total:.0%} of {many(count.total, name)}" for name, count in named if count.total)
    return f"the folder has {', '.join(shares)}" if any(count.total for _, count in named) else "nothing to remember"


def _worst(worst: Worst) -> str:
    title = " ".join(worst.title.split())[:_TITLE_CHARS]
    rule = f" ({worst.rule})" if worst.rule and worst.state not in ("extracted", "no_output") else ""
    words = worst.amounts.words
    return (
        f"{worst.thread_id}  {worst.agent} in {worst.project}: {worst.state.replace('_', ' ')}{rule}, "
        f"{words.total - max(words.extracted, words.folder):,} of {many(words.total, 'word')} nowhere  {title}"
    )
