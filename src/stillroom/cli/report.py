"""A report for people: what was done, what was left and why, and what to do about it. On stderr; stdout is for data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import assert_never

from stillroom.cli.forecast import forecast_lines
from stillroom.cli.output import console
from stillroom.config import Settings, Source
from stillroom.consolidate.outcome import Consolidated, Failed, HeldForReview, NoChanges, Phase2Report, Skipped
from stillroom.extract.outcome import Failed as ThreadFailed
from stillroom.extract.outcome import Phase1Report
from stillroom.extract.outcome import Skipped as ThreadSkipped
from stillroom.homes import HOMES
from stillroom.models import AllowanceReport
from stillroom.pipeline import PipelineReport
from stillroom.recall.usage.counts import UsageReport
from stillroom.spending import Usage
from stillroom.store.records import Leaving, ThreadsLeft
from stillroom.wording import many, plain, span

_SKIPPED = {
    "feature_off": "memories are switched off (`memories.enabled = false`)",
    "paused": "passes are paused (`stillroom resume` lets them run again)",
    "ephemeral": "the session that started the pass is ephemeral",
    "sub_agent": "the session that started the pass is a sub-agent",
    "memory_worker": "the session that started the pass is a memory worker",
    "taking_back": "something is being taken back; the next pass goes on",
    "no_state_db": "the state database can't be used",
    "not_agreed": "the calls of a model would cost more than `ask_above_usd`, or are unpriced: `--yes` lets them",
}
#: So many failures are told one by one; the rest is counted.
_FAILURES_TOLD = 5


def print_report(report: PipelineReport, *, settings: Settings) -> None:
    """A few lines for each step that ran."""
    out = console()
    for style, text in _lines(report, settings):
        out.print(plain(text), style=style, markup=False)


def _lines(report: PipelineReport, settings: Settings) -> Iterator[tuple[str | None, str]]:
    yield from _steps(report, settings)
    if report.stopped:
        yield "bold red", f"stopped       {report.stopped.reason}"
        if report.stopped.hint:
            yield None, f"              hint: {report.stopped.hint}"


def _steps(report: PipelineReport, settings: Settings) -> Iterator[tuple[str | None, str]]:
    if report.finished:
        yield "yellow", f"finished      {report.finished}"
    if report.threads:
        threads = report.threads
        yield None, f"sessions      {threads.total:,} found, {threads.found:,} new or changed"
        if not threads.total:
            for source in settings.sources:
                yield "yellow", f"              {_looked_in(source)}"
        for broken in threads.broken[:_FAILURES_TOLD]:
            where = "" if broken.path in broken.reason else f"`{broken.path}`: "
            yield "yellow", f"              {where}{broken.reason}"
        if len(threads.broken) > _FAILURES_TOLD:
            yield "yellow", f"              and {len(threads.broken) - _FAILURES_TOLD:,} more"
    if report.skipped:
        style = "bold red" if report.failed else "yellow"
        yield style, f"skipped       {_SKIPPED[report.skipped]}" + (f": {report.detail}" if report.detail else "")
        if report.forecast:
            yield from forecast_lines(report.forecast)
        return
    if report.usage:
        yield from _usage(report.usage)
    for link in report.folder.removed_links if report.folder else ():
        yield "yellow", f"folder        removed the link {link.path} -> {link.target}"
    if report.reopened:
        yield None, f"again         {many(report.reopened, 'thread is', 'threads are')} extracted again"
    if report.retried:
        yield None, f"retry         {many(report.retried, 'job')} that failed may be tried again"
    if report.expired:
        yield None, f"expired       {many(len(report.expired), 'memory', 'memories')} that nobody used"
        yield from _left_names(report.expired)
    if report.guard and not report.guard.allowed:
        yield "yellow", f"guard         {report.guard.reason}; nothing was sent"
        return
    if report.forecast:
        yield from forecast_lines(report.forecast)
        yield None, "dry run       nothing was sent or changed"
    if report.extract:
        yield from _phase1(report.extract)
        if told := _left(report.extract.left, settings):
            yield None, f"left          {told}"
    if report.spending:
        yield from _spending(report.spending)
    if report.consolidate:
        yield from _phase2(report.consolidate, settings)
    if report.recall and report.recall.nothing and not _is_empty(report.consolidate):
        yield "yellow", f"recall        a session is told nothing: {report.recall.nothing}"


def _looked_in(source: Source) -> str:
    root = Path(source.root).expanduser()
    if not root.exists():
        variable = HOMES[source.format].variable
        remedy = f"set `{variable}`, or `[[sources]]`" if variable else "set `[[sources]]`"
        return f"there is no `{root}`: {remedy} in `config.toml`"
    return f"`{root}` holds none"


def _usage(usage: UsageReport) -> Iterator[tuple[str | None, str]]:
    """Nothing where nothing was used: most sessions cite no memory."""
    if usage.citing or usage.reads:
        counted = many(usage.counted, "use of a memory", "uses of memories")
        reads = many(sum(usage.reads.values()), "command")
        yield None, f"used          {counted} counted in {many(usage.citing, 'message')}; read by {reads}"
    for invalid in usage.invalid[:_FAILURES_TOLD]:
        yield "yellow", f"              `{invalid.cited}` is not counted: {invalid.reason}"
    if usage.invalid_total > _FAILURES_TOLD:
        yield "yellow", f"              and {usage.invalid_total - _FAILURES_TOLD:,} more"
    for broken in usage.broken[:_FAILURES_TOLD]:
        yield "yellow", f"              {broken.reason}"
    if usage.left:
        yield None, f"              {many(usage.left, 'session is', 'sessions are')} searched by the next pass"


def _phase1(report: Phase1Report) -> Iterator[tuple[str | None, str]]:
    if not report.claimed:
        yield None, "extracted     nothing" + ("" if _is_left(report.left) else ": no session is new")
        return
    yield (
        None,
        (
            f"extracted     {report.with_output:,} of {many(report.claimed, 'thread')} gave a memory"
            f", {report.no_output:,} none ({report.engine}, {report.duration_ms / 1000:.1f} s)"
        ),
    )
    yield from _tokens(report.usage)
    if report.read.bad_lines:
        yield "yellow", f"              {many(report.read.bad_lines, 'broken line')} passed over"
    if report.read.long_lines:
        yield (
            None,
            f"              {many(report.read.long_lines, 'long line')} cut by {many(report.read.cut_bytes, 'byte')}",
        )
    if report.capped:
        yield (
            "yellow",
            f"              {report.capped:,} left to a later pass: no more may be done now",
        )
    if report.busy:
        yield "yellow", f"              {report.busy:,} left to the next pass: clients are writing there"
    if report.lost_lease:
        yield "yellow", f"              {report.lost_lease:,} taken over by another process: dropped here"
    unwanted = Counter(outcome.reason for outcome in report.outcomes if isinstance(outcome, ThreadSkipped))
    for reason, count in unwanted.most_common(_FAILURES_TOLD):
        yield None, f"              {count:,} not looked into: {reason}"
    failures = Counter(outcome.reason for outcome in report.outcomes if isinstance(outcome, ThreadFailed))
    for reason, count in failures.most_common(_FAILURES_TOLD):
        yield "red", f"              {count:,} failed: {reason}"
    if report.fallbacks:
        meanwhile = "have the offline engine's memory until the model answers"
        yield "yellow", f"              {report.fallbacks:,} of them {meanwhile}"


def _tokens(usage: Usage | None) -> Iterator[tuple[str | None, str]]:
    if usage:
        yield None, f"              {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"


def _spending(spending: AllowanceReport) -> Iterator[tuple[str | None, str]]:
    if spending.run_tokens:
        day = f"today {spending.day_tokens:,} of {spending.day_cap:,}"
        yield None, f"spent         {spending.run_tokens:,} of {spending.run_cap:,} weighted tokens, {day}"
    if spending.reached:
        yield "bold yellow", f"capped        {spending.reason}: nothing more is sent"


def _left(left: ThreadsLeft, settings: Settings) -> str:
    memories = settings.memories
    reasons = (
        (left.waiting, "for the next pass"),
        (left.not_idle, f"active in the last {span(memories.idle_seconds)} (`--session ID` takes one)"),
        (left.too_old, f"older than {many(memories.max_rollout_age_days, 'day')} (--backfill takes them)"),
        (left.running, "with another pass, or one that was killed (its lease ends within the hour)"),
        (left.retry_later, "failed, tried again later (--retry: now)"),
        (left.given_up, "failed too often (--retry takes them)"),
        (left.current, "that started this pass"),
        (left.switched_off, "not to be remembered"),
        (left.archived, "archived"),
        (left.not_interactive, "without a person (exec, sub-agents, empty)"),
    )
    return ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)


def _is_left(left: ThreadsLeft) -> bool:
    return any((left.waiting, left.not_idle, left.too_old, left.running, left.retry_later, left.given_up))


def _phase2(report: Phase2Report, settings: Settings) -> Iterator[tuple[str | None, str]]:
    match report:
        case Skipped(status="skipped_no_input"):
            yield None, "consolidated  nothing: no session gives the memory anything now (`stillroom status` says more)"
        case Skipped(status="skipped_cooldown", until=until):
            yield None, f"consolidated  not now: the last time is too recent, again after {_time(until)}"
        case Skipped(status="skipped_running"):
            yield None, "consolidated  not now: another process is at it"
        case Skipped(status="skipped_held_for_review"):
            yield "yellow", "consolidated  not now: a result waits for you (`stillroom review`)"
        case Skipped(status="skipped_rejected"):
            yield None, "consolidated  nothing: you rejected what was made of the same sessions"
        case Skipped(until=until):
            yield "yellow", f"consolidated  not now: the last try failed, again after {_time(until)}"
        case NoChanges():
            yield None, f"consolidated  nothing: {_memories(report)}, no change"
            yield from _fallback(report)
        case Consolidated():
            jail = f", jail: {report.jail}" if report.jail else ""
            yield "green", f"consolidated  {_memories(report)} ({report.engine}{jail}) into {settings.root}"
            yield from _fallback(report)
            yield from _tokens(report.usage)
            if report.withheld:
                kept_out = "line that only a tool or the web says: it waits" if report.withheld == 1 else ""
                kept_out = kept_out or "lines that only tools or the web say: they wait"
                yield "yellow", f"              without {report.withheld:,} {kept_out} in `stillroom review`"
            if report.leaving:
                yield (
                    None,
                    f"              {many(len(report.leaving), 'memory', 'memories')} to leave with the next one:",
                )
                yield from _left_names(report.leaving)
            for path in report.kept_for_user:
                yield "yellow", f"              {path} was edited meanwhile: yours stays, taken up next time"
            for warning in report.warnings:
                yield "yellow", f"              {warning}"
        case HeldForReview():
            yield (
                "yellow",
                f"consolidated  {_memories(report)} ({report.engine}), held for you: `stillroom review`",
            )
            yield from _tokens(report.usage)
            for warning in report.warnings:
                yield "yellow", f"              {warning}"
        case Failed():
            yield "bold red", f"consolidated  failed ({report.status}): {report.reason}"
            after = f" after {_time(report.retry_at)}" if report.retry_at else " with the next pass"
            begun = report.status == "failed_workspace_commit"
            left = "what was begun is completed" if begun else "the folder is as it was; it is tried again"
            yield None, f"              {left}{after}"
            yield from _tokens(report.usage)
        case _:
            assert_never(report)


def _left_names(leaving: Sequence[Leaving]) -> Iterator[tuple[str | None, str]]:
    for each in leaving[:_FAILURES_TOLD]:
        yield None, f"              {each.told}"
    if len(leaving) > _FAILURES_TOLD:
        yield None, f"              and {len(leaving) - _FAILURES_TOLD:,} more (`--json` names them)"


def _fallback(report: NoChanges | Consolidated) -> Iterator[tuple[str | None, str]]:
    if report.fallback_reason:
        yield "red", f"              the model failed: {report.fallback_reason}"
        yield "yellow", "              the folder is the offline engine's until it is asked again (--retry: now)"


def _memories(report: NoChanges | Consolidated | HeldForReview) -> str:
    return many(report.inputs, "memory", "memories")


def _is_empty(report: Phase2Report | None) -> bool:
    return isinstance(report, Skipped) and report.status == "skipped_no_input"


def _time(seconds: int | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
