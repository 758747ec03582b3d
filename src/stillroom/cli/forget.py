"""`stillroom forget`: sessions, and everything that rests on them alone, are gone for good."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from stillroom.cli.alone import store_alone
from stillroom.cli.asking import agrees
from stillroom.cli.moment import parse_moment
from stillroom.cli.options import Flag, Yes, current_settings
from stillroom.cli.output import Line, print_json, print_lines
from stillroom.clock import SystemClock
from stillroom.errors import ConfigError
from stillroom.undoing.choosing import Choice
from stillroom.undoing.forgetting import Forgotten, forget
from stillroom.undoing.planning import Preview, plan_forgetting, still_there
from stillroom.undoing.residue import Left
from stillroom.wording import many

#: So many are shown one by one.
_SHOWN = 12


class _Answer(msgspec.Struct, frozen=True):
    preview: Preview
    done: Forgotten | None


def forget_command(
    threads: list[str] | None = None,
    /,
    *,
    repo: str | None = None,
    match: str | None = None,
    since: str | None = None,
    dry_run: Flag = False,
    yes: Yes = False,
    json: Flag = False,
) -> int:
    """Forget sessions for good: what was made of them, and every line that rests on them alone.

    Shows what goes and asks. Then it is taken out of the memory folder, all its versions, the state database, the
    search index and the logs, and every byte under the home is looked at once more: what is left is said, with exit
    code 1. Only hashes stay, so that the same sessions are never learnt again. The sessions' own files are not touched.

    ```
    stillroom forget 01a2273c-2009       # one session, by the beginning of its id
    stillroom forget --repo ~/src/secret
    stillroom forget --match "Project Falcon" --dry-run
    stillroom forget --since 2026-11-29T18:00 --yes
    ```

    Parameters
    ----------
    threads
        Ids of sessions, or how they begin. Their sub-agents go with them.
    repo
        All sessions of a project: a folder of it, or the name of its repository.
    match
        All sessions whose memory says this, in upper or lower case, and every line of the memory that does.
    since
        All sessions that were active since then: `2026-11-29T18:00`, or seconds since 1970.
    dry_run
        Only show what would go.
    yes
        Don't ask.
    json
        Print `{preview, done}` as JSON.
    """
    choice = Choice(
        threads=tuple(threads or ()),
        repository=repo,
        match=match,
        since_ms=None if since is None else parse_moment(since),
    )
    if choice == Choice():
        raise ConfigError("nothing is named", hint="name sessions, or use --repo, --match or --since")
    settings = current_settings().impatient
    if not any(path.exists() for path in (settings.database, settings.root, settings.history)):
        print_lines([("yellow", "there is no memory yet")])
        if json:
            print_json(_Answer(Preview(threads=(), lines=(), files=(), undecided=()), None))
        return 0
    clock = SystemClock()
    with store_alone(settings, clock) as store:
        plan = plan_forgetting(settings, store, choice, now=clock.now())
        left = still_there(settings, plan) if plan.preview.is_empty else []
        if not json:
            _show(plan.preview)
            print_lines(lines_left(tuple(left)))
        if dry_run or (plan.preview.is_empty and all(each.kind == "said" for each in left)):
            if json:
                print_json(_Answer(plan.preview, None))
            return 0
        if not yes and not agrees("Forget all this for good?"):
            return 1
        done = forget(settings, store, plan)
    print_json(_Answer(plan.preview, done)) if json else _tell(done)
    return 0 if done.is_complete else 1


def _show(preview: Preview) -> None:
    print_lines(_previewed(preview))


def _previewed(preview: Preview) -> Iterator[Line]:
    if preview.is_empty:
        yield "yellow", "nothing of it is remembered"
    for thread in preview.threads[:_SHOWN]:
        day = datetime.fromtimestamp(thread.updated_at).astimezone().strftime("%Y-%m-%d")
        yield None, f"session  {thread.thread_id}  {day}  {thread.cwd}  {thread.title[:60]}"
    yield from _rest(len(preview.threads))
    for path in preview.files[:_SHOWN]:
        yield None, f"file     {path}"
    yield from _rest(len(preview.files))
    telling = [line for line in preview.lines if not line.text.startswith(("#", "- rollout_summaries/"))]
    for line in telling[:_SHOWN]:
        yield None, f"line     {line.path}: {line.text.strip()[:100]}"
    yield from _rest(len(telling))
    if plain := len(preview.lines) - len(telling):
        yield None, f"         with {many(plain, 'heading or reference', 'headings and references')} to them"
    if preview.undecided:
        rest = "line rests" if len(preview.undecided) == 1 else "lines rest"
        stay = f"{len(preview.undecided):,} {rest} on it among other sessions"
        yield None, f"{stay}; what becomes of it, the next consolidation decides:"
        for line in preview.undecided[:_SHOWN]:
            yield "yellow", f"stays    {line.path}: {line.text.strip()[:100]}"
        yield from _rest(len(preview.undecided))


def _rest(count: int) -> Iterator[Line]:
    if count > _SHOWN:
        yield None, f"         and {count - _SHOWN:,} more (--json lists all)"


def _tell(done: Forgotten) -> None:
    print_lines(_done(done))


def _done(done: Forgotten) -> Iterator[Line]:
    counted = f"{many(done.threads, 'session')}, {many(done.files, 'file')}, {many(done.lines, 'line')}"
    contents = f"{many(done.old_contents, 'content')} of the history"
    yield ("green" if done.is_complete else None), f"forgotten: {counted}, {contents}"
    yield from lines_left(done.left)
    for path in done.restless:
        yield "bold red", f"left: {path} was being changed all the time"
    if done.log_in_use:
        yield "bold red", "left: the database's log, which another process reads"
    if not done.is_complete:
        yield None, "end what uses these places, or delete them; then say it again"
    elif done.undecided or done.lines:
        yield None, "the next consolidation puts counts and lists right"


def lines_left(left: tuple[Left, ...]) -> Iterator[Line]:
    """Places, never what is in them."""
    for each in left:
        if each.kind == "said":
            yield "yellow", f"stays: {each.place} speaks of it, as you set or switched something there"
            continue
        what = {"name": "in its name", "content": f"{many(each.count, 'time')}", "unreadable": "can't be read"}[
            each.kind
        ]
        yield "bold red", f"left: {each.place} ({what})"
