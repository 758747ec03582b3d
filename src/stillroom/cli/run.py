"""`stillroom run`: one pass over the finished sessions."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Annotated

import msgspec

from stillroom.cli.forecast import agrees
from stillroom.cli.moment import parse_moment
from stillroom.cli.options import Flag, Yes, current_settings, option
from stillroom.cli.progress import progress_bars
from stillroom.cli.report import print_report
from stillroom.cli.signals import until_stopped
from stillroom.clock import Clock, FixedClock, SystemClock
from stillroom.errors import CommandLineError
from stillroom.pass_lock import take_pass_lock
from stillroom.pipeline import Options, PipelineReport, Trigger, encode_report, run_pipeline


def run_command(
    *,
    cwd: Path | None = None,
    sessions: Annotated[list[str] | None, option("--session")] = None,
    trigger_thread: str | None = None,
    ephemeral: Flag = False,
    backfill: Flag = False,
    upgrade: Flag = False,
    again: Flag = False,
    engine: str | None = None,
    retry: Flag = False,
    adopt: Flag = False,
    max_threads: Annotated[int | None, option("--limit", "-n", at_least=0)] = None,
    dry_run: Flag = False,
    yes: Yes = False,
    now: str | None = None,
    json: Flag = False,
) -> int:
    """Distil finished sessions into the memory folder: extract what is new, then consolidate.

    Takes sessions that are finished: their client said so, or they are quiet for `offline_idle_minutes`. A model takes
    at most `max_rollouts_per_startup` of them, quiet for `min_rollout_idle_hours`. It never touches the sessions
    themselves.

    ```
    stillroom run                        # what a hook does
    stillroom run --backfill             # everything that is finished, however old
    stillroom run --backfill --limit 20    # the newest 20 of it
    stillroom run --backfill --dry-run   # what that would send to a model, and what it costs
    stillroom run --session 019a0001     # this one, at once
    stillroom run --json | jq .extract
    ```

    Parameters
    ----------
    cwd
        Extract only sessions that ran in this folder or below it.
    sessions
        Extract only this session, by its id or the beginning of it, however old it is and without waiting until it is
        quiet; then consolidate at once. With `--again` also one that was extracted. May be repeated.
    trigger_thread
        The session that this pass is started from. It is never extracted; a sub-agent starts nothing.
    ephemeral
        The session that this pass is started from leaves no trace, so neither does the pass.
    backfill
        Ignore `max_rollout_age_days`, `max_rollouts_per_startup` and the pause of six hours after a consolidation.
    upgrade
        Extract again what the offline engine extracted, now that a model is configured: all of it, however old, and
        without the pause.
    again
        Extract again what gave nothing, and what another engine, or an older prompt or release, made. What there is
        stays until the new answer is there. Asks first where it costs more than `ask_above_usd`.
    engine
        With `--again` or `--session`: extract with this model, or `offline`, instead of `memories.extract_model`.
    retry
        Try again at once what failed: all of it, however often it did and however old it is, and nothing else.
    adopt
        Take over a memory folder that Codex, or another program, wrote memories into. What is in it is committed to
        `history.git` first; then the files that rest on sessions unknown to Stillroom go. Without it such a folder is
        refused.
    max_threads
        At most so many threads.
    dry_run
        Only tell how many sessions would be extracted, and what models would be sent and cost at list price. Nothing is
        sent or changed.
    yes
        Don't ask before the first calls of a model, whatever they cost (`ask_above_usd`).
    now
        Take this moment for the present: `2026-11-30T09:00:00Z`, or seconds since 1970.
    json
        Print the whole report as JSON on stdout.
    """
    if engine and not (again or sessions):
        raise CommandLineError("`--engine` goes with `--again` or `--session`", hint="stillroom run --again …")
    settings = current_settings()
    if engine:
        memories = msgspec.structs.replace(settings.memories, extract_model=engine)
        settings = msgspec.structs.replace(settings, memories=memories)
    clock: Clock = FixedClock(parse_moment(now)) if now else SystemClock()
    trigger = Trigger(thread_id=trigger_thread, ephemeral=ephemeral)
    options = Options(
        backfill=backfill,
        upgrade=upgrade,
        again=again,
        retry=retry,
        adopt=adopt,
        max_threads=max_threads,
        cwd=str(cwd.absolute()) if cwd else None,
        sessions=tuple(sessions or ()),
        dry_run=dry_run,
        agreed=yes,
    )
    if not dry_run:
        take_pass_lock(str(settings.home))  # until this process ends, whether or not another one has it
    gc.freeze()  # what is loaded is no garbage: to look for some in it again and again takes a tenth of a pass

    def run(options: Options) -> PipelineReport:
        with progress_bars(wanted=not json) as listen:
            work = run_pipeline(settings, trigger=trigger, options=options, clock=clock, on_progress=listen)
            return asyncio.run(until_stopped(work))

    report = run(options)
    if report.forecast and report.skipped == "not_agreed" and not json:
        agreed = agrees(report.forecast)
        if agreed is False:
            return 1
        if agreed:
            report = run(msgspec.structs.replace(options, agreed=True))
    if json:
        sys.stdout.write(encode_report(report) + "\n")
    else:
        print_report(report, settings=settings)
    return 1 if report.failed else 0
