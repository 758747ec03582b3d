"""`stillroom undo` and `redo`: a consolidation is taken back, and taken up again."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from stillroom.cli.alone import store_alone
from stillroom.cli.asking import agrees
from stillroom.cli.options import Flag, Yes, current_settings
from stillroom.cli.output import console, print_json, print_lines
from stillroom.clock import SystemClock
from stillroom.undoing.undo import Undone, UndoPreview, plan_undo, undo
from stillroom.undoing.versions import open_history
from stillroom.wording import many, plain

_SHOWN = 12


class _Answer(msgspec.Struct, frozen=True):
    #: None: there is no memory yet.
    preview: UndoPreview | None
    done: Undone | None


class _Redone(msgspec.Struct, frozen=True):
    sessions: int


def undo_command(
    version: str | None = None,
    /,
    *,
    discard_edits: Flag = False,
    dry_run: Flag = False,
    yes: Yes = False,
    json: Flag = False,
) -> int:
    """Take the last consolidation back, or a named one with everything after it.

    The memory folder becomes what it was before, with your own edits since. The sessions that came into it stay out
    until they go on, or until `stillroom redo`: the next pass does not do again what you undid. Once more undoes the
    one before. What is undone stays in the history.

    ```
    stillroom undo
    stillroom undo 3f2a61 --dry-run
    ```

    Parameters
    ----------
    version
        A consolidation of `stillroom log` (the first letters will do). Default: the last one that stands.
    discard_edits
        Give your edits up in files where they touch the same lines. They stay in the history.
    dry_run
        Only show what would go.
    yes
        Don't ask.
    json
        Print `{preview, done}` as JSON.
    """
    settings = current_settings().impatient
    if not settings.database.is_file():
        if json:
            print_json(_Answer(None, None))
        else:
            print_lines([("yellow", "there is no memory yet")])
        return 0
    clock = SystemClock()
    with store_alone(settings, clock) as store:
        history = open_history(settings)
        plan = plan_undo(settings, history, version, now=clock.now(), discard_edits=discard_edits)
        if not json:
            _show(plan.preview)
        if dry_run:
            if json:
                print_json(_Answer(plan.preview, None))
            return 0
        stopped = plan.preview.conflicts and not discard_edits
        if not (yes or stopped or agrees("Take this back?")):
            return 1
        done = undo(settings, store, plan)
    print_json(_Answer(plan.preview, done)) if json else _tell(done)
    return 0


def redo_command(*, home: Path | None = None, json: bool = False) -> int:
    """Let the next consolidation take up again what was undone.

    ```
    stillroom redo
    ```

    Parameters
    ----------
    json
        Print `{sessions}` as JSON: how many it concerns.
    """
    settings = current_settings().impatient
    sessions = 0
    if settings.database.is_file():
        with store_alone(settings, SystemClock()) as store:
            sessions = store.consolidation.redo()
    if json:
        print_json(_Redone(sessions))
    elif sessions:
        print_lines([(None, f"the next consolidation decides again about {many(sessions, 'session')}")])
    else:
        print_lines([(None, "nothing is held back by an undo")])
    return 0


def _show(preview: UndoPreview) -> None:
    out = console()

    def say(text: str, style: str | None = None) -> None:
        out.print(plain(text), style=style, markup=False)

    for version in preview.undone[:_SHOWN]:
        moment = datetime.fromtimestamp(version.at).astimezone().strftime("%Y-%m-%d %H:%M")
        say(f"undo   {version.commit[:10]}  {moment}  {version.subject}")
    for change in preview.changes[:_SHOWN]:
        say(f"file   {change}")
    if len(preview.changes) > _SHOWN:
        say(f"       and {len(preview.changes) - _SHOWN:,} more (--json lists all)")
    for version in preview.edits[:_SHOWN]:
        say(f"stays  {version.commit[:10]}  {version.subject}")
    for path in preview.conflicts:
        say(f"edits  {path}: your edits touch what is taken back", "yellow")


def _tell(done: Undone) -> None:
    out = console()
    out.print(
        f"taken back: {many(len(done.written), 'file')} written, {len(done.deleted):,} deleted",
        style="green",
        markup=False,
    )
    for path in done.kept_for_user:
        out.print(plain(f"{path} was edited meanwhile: yours stays"), style="yellow", markup=False)
    if done.held_out:
        stay = f"{many(done.held_out, 'session stays', 'sessions stay')} out"
        out.print(f"{stay} until a session goes on, or until `stillroom redo`", markup=False)
