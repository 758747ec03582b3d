"""`stillroom status`: what it knows, did, spent and would do next, on one screen."""

from __future__ import annotations

from collections.abc import Iterator

from stillroom.cli.moment import moment
from stillroom.cli.options import Flag, Verbose, current_settings
from stillroom.cli.output import Line, print_answer, print_json
from stillroom.cli.rulings import why
from stillroom.clock import DAY_SECONDS, SystemClock
from stillroom.config import OFFLINE
from stillroom.insight.facts import Facts
from stillroom.insight.status import PassLine, Spent, Status, read_status
from stillroom.store import Store
from stillroom.wording import many, size

_STATES = {
    "next": "next",
    "extracted": "extracted",
    "no_output": "without output",
    "expired": "expired",
    "waiting": "waiting",
    "running": "running",
    "failed": "failed",
    "excluded": "excluded",
}
_EXCLUDED = {
    "enabled": "memories are switched off",
    "mode": "not to be remembered",
    "project": "switched off, with their project",
    "missing": "their files are gone",
    "archived": "archived",
    "preview": "no person said a word",
    "memory_worker": "sessions of the memory itself",
    "source": "no person at the other end",
    "age": "too old (`stillroom run --backfill` takes them)",
    "scan_limit": "beyond the newest that a pass looks at",
    "forgotten": "forgotten",
}
_FACTS = {"fresh": "fresh", "moved": "moved", "broken": "broken", "unknown": "that git knows nothing of"}
_TOLD_FAILURES = 5
_TOLD_GONE = 5
_TOLD_UNKNOWN = 8


def status_command(
    *,
    verbose: Verbose = False,
    json: Flag = False,
) -> int:
    """Show what Stillroom knows, what it did last, what it spent, and what the next pass would do.

    Shows what is stored; `stillroom threads` looks for new sessions first, and `stillroom explain` tells of one.

    ```
    stillroom status
    stillroom status -v                  # also which memories leave
    stillroom status --json | jq .spent_today
    ```

    Parameters
    ----------
    verbose
        Name every memory that leaves within a week.
    json
        Print everything as JSON.
    """
    settings = current_settings().impatient
    clock = SystemClock()
    with Store.look(settings.database, clock=clock, limits=settings.database_limits) as store:
        status = read_status(settings, store, clock)
    if json:
        print_json(status)
        return 0
    print_answer(_lines(status, verbose=verbose))
    return 0


def _lines(status: Status, *, verbose: bool) -> Iterator[Line]:
    yield from _state(status)
    yield from _threads(status)
    yield from _next(status)
    yield from _memory(status, verbose=verbose)
    yield from _spending(status)
    yield from _reading(status)


def _state(status: Status) -> Iterator[Line]:
    models = {status.extract_model, status.consolidation_model}
    by = (
        "by the offline engine" if models == {OFFLINE} else f"{status.extract_model}, then {status.consolidation_model}"
    )
    yield None, f"home          {status.home}; distilled {by}"


def _threads(status: Status) -> Iterator[Line]:
    if not status.agents:
        yield "yellow", "sessions      none known yet: `stillroom threads` looks for them"
    for each in status.agents:
        states = ", ".join(f"{each.states[state]:,} {word}" for state, word in _STATES.items() if state in each.states)
        stored = f", {size(each.bytes)}" if each.bytes else ""
        yield None, f"{each.agent:<13} {many(each.threads, 'session')}{stored}: {states}"
    if status.excluded:
        reasons = ", ".join(f"{count:,} {_EXCLUDED.get(rule, rule)}" for rule, count in status.excluded.items())
        yield None, f"excluded      {reasons}"
    for failed in status.failed[:_TOLD_FAILURES]:
        yield "red", f"failed        {failed.thread_id}: {why(failed.decided)} (`{failed.decided.command}`)"
    if status.failed_threads > _TOLD_FAILURES:
        yield "red", f"              and {status.failed_threads - _TOLD_FAILURES:,} more"
    for held in status.running:
        lease = held.decided.values
        yield None, f"running       {held.thread_id} by {lease['worker']}, lease until {moment(lease['lease_until'])}"


def _next(status: Status) -> Iterator[Line]:
    waiting = f"; {status.waiting_threads:,} wait" if status.waiting_threads else ""
    if status.waiting_until:
        waiting += f", the first until {moment(status.waiting_until)}"
    stopped = [each for each in status.obstacles if each.kind in ("switched_off", "paused", "switches_unreadable")]
    for each in stopped:
        yield "yellow", f"next pass     does nothing: {each.told} (`{each.remedy}`){waiting}"
    if not stopped:
        yield None, f"next pass     extracts {many(status.next_threads, 'session')}{waiting}"
        yield from _consolidation(status)
    for each in status.obstacles:
        if each not in stopped:
            yield "yellow", f"              but {each.told} (`{each.remedy}`)"
    for line in status.passes:
        yield ("red" if line.reason and not line.skipped else None), f"pass          {moment(line.at)}  {_pass(line)}"


def _consolidation(status: Status) -> Iterator[Line]:
    found = status.consolidation
    until = moment(found.until)
    match found.state:
        case "never" if status.worth.outputs or status.next_threads:
            yield None, "              and consolidates for the first time, if there is something to remember"
        case "never":
            yield None, "              and has nothing to consolidate"
        case "running":
            yield None, f"              a consolidation is running, lease until {until}"
        case "failed":
            again = (
                f"tried again after {until}, or with `stillroom run --retry`" if found.until else "it is tried again"
            )
            yield "red", f"              the last consolidation failed: {found.last_error}; {again}"
        case "held":
            yield "yellow", "              no consolidation: a result waits for you (`stillroom review`)"
        case "resting":
            yield None, f"              no consolidation until {until}: the last one is less than six hours ago"
        case "due":
            yield None, "              and consolidates"
        case "up_to_date":
            yield None, "              everything extracted so far is consolidated"


def _pass(line: PassLine) -> str:
    if line.skipped:
        return f"skipped: {line.skipped.replace('_', ' ')}" + (f" ({line.reason})" if line.reason else "")
    failed = f", {line.failed:,} failed" if line.failed else ""
    if line.fallbacks:
        failed += f" ({line.fallbacks:,} by the offline engine meanwhile)"
    told = f"{line.with_output:,} extracted, {line.no_output:,} without output{failed}"
    ended = f"; consolidation: {line.consolidation.replace('_', ' ')}" if line.consolidation else ""
    if line.consolidation == "skipped" and line.consolidation_status:
        ended += f" ({line.consolidation_status.removeprefix('skipped_').replace('_', ' ')})"
    return f"{told}{ended}" + (f": {line.reason}" if line.reason else "")


def _leaving(status: Status, *, verbose: bool) -> Iterator[Line]:
    if not status.leaving:
        return
    days = max(((status.leaving[0].at or status.at) - status.at) // DAY_SECONDS, 0)
    when = f"from {many(days, 'day')} on" if days else "with the next pass"
    more = "" if verbose else " (`stillroom status -v` names them)"
    leave = many(len(status.leaving), "memory leaves", "memories leave")
    yield "yellow", f"leaving       {leave} within a week unless a session is given them, {when}{more}"
    for each in status.leaving if verbose else ():
        yield None, f"              {moment(each.at)}  {each.told}"


def _memory(status: Status, *, verbose: bool) -> Iterator[Line]:
    folder, worth = status.folder, status.worth
    if not folder.exists:
        yield "yellow", f"memory        none yet in {folder.path}"
    else:
        known = (("MEMORY.md", folder.handbook_bytes), ("memory_summary.md", folder.summary_bytes))
        sizes = ", ".join(f"{name} {size(count)}" for name, count in known if count) or "nothing to tell a session"
        yield None, f"memory        {folder.path}: {many(folder.files, 'file')}, {size(folder.bytes)} ({sizes})"
    if worth.outputs:
        lately = (
            f"{worth.used_lately:,} of them in the last 30 days" if worth.used_lately else "none in the last 30 days"
        )
        used = f"cited {many(worth.citations, 'time')}, {lately}" if worth.citations else "not cited yet"
        yield None, f"worth         rests on {worth.selected:,} of {many(worth.outputs, 'extracted session')}; {used}"
    yield from _leaving(status, verbose=verbose)
    if worth.undone:
        yield (
            "yellow",
            f"undone        {many(worth.undone, 'session stays', 'sessions stay')} out of it (`stillroom redo`)",
        )
    yield from _facts(status.facts)
    for told in status.told:
        cut = f", {size(told.left_out_bytes)} left out" if told.left_out_bytes else ""
        yield None, f"told          {moment(told.at)}  {told.agent} in {told.cwd}: {many(told.tokens, 'token')}{cut}"


def _facts(facts: Facts) -> Iterator[Line]:
    if not facts.repositories:
        return
    states = ", ".join(f"{facts.states[state]:,} {word}" for state, word in _FACTS.items() if state in facts.states)
    left = f", {facts.left:,} not looked at yet" if facts.left else ""
    where = f"of {many(facts.repositories, 'repository', 'repositories')}, looked at {moment(facts.checked_at)}"
    since = f"; {facts.changed_since:,} of them changed since" if facts.changed_since else ""
    yield None, f"facts         {states or 'none'}{left} {where}{since}"
    for gone in facts.gone[:_TOLD_GONE]:
        became = f"is {gone.now} now" if gone.now else "is gone"
        yield ("yellow" if gone.now else "red"), f"              the {gone.kind} {gone.text} {became} in {gone.folder}"


def _spending(status: Status) -> Iterator[Line]:
    if not status.spent and {status.extract_model, status.consolidation_model} == {OFFLINE}:
        return
    if not status.spent_today:
        yield None, "spent today   nothing"
    for label, found in (("spent today", status.spent_today), ("in all", status.spent)):
        for each in found:
            yield None, f"{label:<13} {_spent(each)}"


def _spent(each: Spent) -> str:
    failed = f" ({each.failed_calls:,} failed)" if each.failed_calls else ""
    unpriced = f", {each.unpriced_calls:,} of unknown price" if each.unpriced_calls else ""
    tokens = f"{each.usage.input_tokens:,} tokens in, {each.usage.output_tokens:,} out"
    return (
        f"{each.phase} by {each.model}: {many(each.calls, 'call')}{failed}, {tokens}, ${each.cost_usd:,.2f}{unpriced}"
    )


def _reading(status: Status) -> Iterator[Line]:
    for each in status.reads:
        if each.bad_lines or each.long_lines:
            told = f"{many(each.bad_lines, 'broken line')}, {each.long_lines:,} long ({size(each.cut_bytes)} cut out)"
            yield "yellow", f"{each.agent:<13} {told} in {many(each.threads, 'session')}"
    for kind in status.unknown[:_TOLD_UNKNOWN]:
        told = f"{many(kind.records, 'record')} of an unknown kind `{kind.kind}` in {many(kind.threads, 'session')}"
        yield "yellow", f"{kind.agent:<13} {kind.version or 'version unknown'}: {told}"
    if len(status.unknown) > _TOLD_UNKNOWN:
        yield "yellow", f"              and {len(status.unknown) - _TOLD_UNKNOWN:,} more unknown kinds"
