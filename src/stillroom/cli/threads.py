"""`stillroom threads`: which sessions were found, and what becomes of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from stillroom.cli.moment import moment
from stillroom.cli.options import Flag, current_settings, option
from stillroom.cli.output import Line, print_data, print_json, print_lines
from stillroom.cli.progress import progress_bars
from stillroom.cli.rulings import remedy, why
from stillroom.cli.signals import until_stopped
from stillroom.clock import SystemClock
from stillroom.config import Settings
from stillroom.errors import ConfigError, WorkspaceError
from stillroom.extract.counting import count_threads
from stillroom.extract.register import RegisterReport, register_threads
from stillroom.homes import HOMES
from stillroom.pausing import paused_since
from stillroom.sessions.discovery import Broken
from stillroom.store import Question, Standing, Store
from stillroom.store.rules import State
from stillroom.undoing.projects import obey_switches
from stillroom.wording import plain, size

#: So many files that can't be read are told one by one; the rest is counted.
_BROKEN_TOLD = 5
#: Of a title: enough to know a session by.
_TITLE_CHARS = 60


class ThreadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A thread as `--json` prints it. Times in seconds since 1970."""

    agent: str
    version: str | None
    thread_id: str
    parent: str | None
    cwd: str
    repository: str | None
    branch: str | None
    created_at: int
    updated_at: int
    title: str
    path: str
    #: None: it lies in a database, or in many files.
    size_bytes: int | None
    #: None: the file was not read as a whole yet.
    messages: int | None
    tokens: int | None
    #: The file went on since they were counted.
    grown: bool
    state: State
    #: The next pass takes it.
    eligible: bool
    #: The rule that decided, what it found, and what would change it.
    rule: str | None
    why: str
    remedy: str | None
    #: When it may change by itself.
    until: int | None


class ThreadList(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    threads: list[ThreadRow]
    #: Threads that were left out because of `--limit`.
    left_out: int
    #: Files that can't be understood; empty with `--no-scan`.
    broken: tuple[Broken, ...]


def threads_command(
    *,
    agent: str | None = None,
    cwd: Path | None = None,
    max_results: Annotated[int | None, option("--limit", "-n", at_least=0)] = None,
    no_scan: Flag = False,
    count: Flag = False,
    json: Flag = False,
) -> int:
    """List the sessions that were found, newest first, with what the next pass does with each, and why.

    Messages and tokens are known of sessions that were read as a whole, because they were extracted or because of
    `--count`; a `+` says that the session went on since. Tokens are those of what a model would be given.

    ```
    stillroom threads --cwd . --limit 20
    stillroom threads --agent codex --count
    stillroom threads --json | jq '.threads[] | select(.state == "failed")'
    ```

    Parameters
    ----------
    agent
        Only sessions of this agent: `codex`, `claude-code`, …
    cwd
        Only sessions that ran in this folder or below it.
    max_results
        At most so many.
    no_scan
        Don't look for new sessions; show those that are known.
    count
        Read the sessions whose messages are not counted yet. That takes seconds for a gigabyte.
    json
        Print `{threads, left_out, broken}` as JSON.
    """
    settings = current_settings()
    if agent is not None and agent not in HOMES:
        raise ConfigError(f"`--agent {agent}` is not known", hint=f"it is one of: {', '.join(HOMES)}")
    clock = SystemClock()
    # What a scan finds is written down.
    open_store = Store.look if no_scan and not count else Store.open
    with open_store(settings.database, clock=clock, limits=settings.database_limits) as store:
        with progress_bars(wanted=not json) as listen:
            report, unsure = RegisterReport(), None
            if not no_scan:
                scan = register_threads(settings, store, on_progress=listen)
                report = asyncio.run(until_stopped(scan))
                unsure = _obeyed(settings, store)
            wanted = _wanted(settings, store, clock.now_ms(), agent, cwd)
            shown = wanted if max_results is None else wanted[:max_results]
            if count:
                uncounted = [each.thread for each in shown if _is_to_be_counted(each)]
                count_threads(uncounted, settings, store, on_progress=listen)
                shown = _wanted(settings, store, clock.now_ms(), agent, cwd)[: len(shown)]
        rows = [_row(each) for each in shown]
    left_out = len(wanted) - len(rows)
    if json:
        print_json(ThreadList(threads=rows, left_out=left_out, broken=report.broken))
    else:
        for row in rows:
            for line in _lines(row):
                print_data(plain(line))
        print_lines(_beside(rows, left_out, report.broken, narrowed=agent is not None or cwd is not None))
    if unsure:
        print_lines([("yellow", unsure)])
    return 0


def _obeyed(settings: Settings, store: Store) -> str | None:
    """Switch new sessions off with their projects; why that can't be done."""
    try:
        obey_switches(settings, store)
    except WorkspaceError as error:
        return f"{error} ({error.hint})"
    return None


def _wanted(settings: Settings, store: Store, now_ms: int, agent: str | None, cwd: Path | None) -> list[Standing]:
    """The threads that are asked for, newest first."""
    question = Question(
        memories=settings.memories,
        stage=settings.stage_one,
        now_ms=now_ms,
        paused_since=paused_since(str(settings.home)),
    )
    folder = str(cwd.absolute()).rstrip("/") if cwd else None
    return [
        each
        for each in store.standings.of_all(question)
        if (agent is None or each.thread.agent == agent)
        and (folder is None or each.thread.cwd == folder or each.thread.cwd.startswith(folder + "/"))
    ]


def _is_to_be_counted(standing: Standing) -> bool:
    """Sessions of a memory are never read."""
    if standing.decided is not None and standing.decided.rule == "memory_worker":
        return False
    return not standing.missing and (standing.messages is None or standing.grown)


def _row(standing: Standing) -> ThreadRow:
    thread, decided = standing.thread, standing.decided
    return ThreadRow(
        agent=thread.agent,
        version=thread.cli_version,
        thread_id=thread.thread_id,
        parent=thread.parent_thread_id,
        cwd=thread.cwd,
        repository=standing.repository,
        branch=thread.git_branch,
        created_at=thread.created_at_ms // 1000,
        updated_at=thread.updated_at,
        title=thread.title or thread.preview,
        path=thread.rollout_path,
        size_bytes=standing.size_bytes,
        messages=standing.messages,
        tokens=standing.tokens,
        grown=standing.grown,
        state=standing.state,
        eligible=standing.state == "next",
        rule=decided.rule if decided else None,
        why=why(decided) if decided else "the next pass takes it",
        remedy=remedy(decided) if decided and standing.state != "extracted" else None,
        until=decided.until if decided else None,
    )


def _beside(rows: Sequence[ThreadRow], left_out: int, broken: Sequence[Broken], *, narrowed: bool) -> Iterator[Line]:
    if not rows and not left_out:
        none = "no such session is known; `stillroom threads` shows all" if narrowed else "no session is known"
        yield "yellow", none
    if left_out:
        yield "yellow", f"and {left_out:,} more; a larger `--limit` shows them"
    for file in broken[:_BROKEN_TOLD]:
        where = "" if file.path in file.reason else f"`{file.path}`: "
        yield "yellow", f"not readable: {where}{file.reason}"
    if len(broken) > _BROKEN_TOLD:
        yield "yellow", f"and {len(broken) - _BROKEN_TOLD:,} more that are not readable"


def _lines(row: ThreadRow) -> Iterator[str]:
    """Three: what it is, where it ran, what becomes of it."""
    yield f"{row.thread_id}  {row.agent} {row.version or '-'}  {_amounts(row)}  {_titled(row)}".rstrip()
    yield "    " + "  ".join(_place(row))
    yield f"    {row.state.replace('_', ' ')}: {row.why}" + (f" ({row.remedy})" if row.remedy else "")


def _titled(row: ThreadRow) -> str:
    title = " ".join(row.title.split())
    return title if len(title) <= _TITLE_CHARS else title[: _TITLE_CHARS - 1] + "…"


def _amounts(row: ThreadRow) -> str:
    more = "+" if row.grown else ""
    messages = "-" if row.messages is None else f"{row.messages:,}{more}"
    tokens = "-" if row.tokens is None else f"{row.tokens:,}{more}"
    return f"{messages} messages  {tokens} tokens" + ("" if row.size_bytes is None else f"  {size(row.size_bytes)}")


def _place(row: ThreadRow) -> Iterator[str]:
    yield f"{moment(row.created_at)} - {moment(row.updated_at)}"
    yield row.cwd or "-"
    if row.repository:
        yield row.repository
    if row.branch:
        yield f"branch {row.branch}"
    if row.parent:
        yield f"begun by {row.parent}"
