"""What a killed command or pass left, and what a person left switched off."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import assert_never

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.errors import WorkspaceError
from stillroom.insight.doctor.finding import Found, found, ok
from stillroom.undoing import unfinished
from stillroom.undoing.alone import alone
from stillroom.wording import many
from stillroom.workspace import held
from stillroom.workspace.history import History
from stillroom.workspace.recovery import left_behind, recover
from stillroom.workspace.tree import remove_tree


def check_leftovers(settings: Settings, clock: Clock) -> Iterator[Found]:
    """Something begun and not ended, copies of the folder."""
    yield from _unfinished(settings, clock)
    yield from _staging(settings)
    yield from _review(settings)


def _unfinished(settings: Settings, clock: Clock) -> Iterator[Found]:
    path = str(settings.home / unfinished.FILE)
    try:
        work = unfinished.begun(settings.home)
    except WorkspaceError as error:
        remedy = f"rm '{path}'  # then `stillroom forget` or `stillroom undo` again"
        yield found("unfinished", "error", str(error), where=path, remedy=remedy)
        return
    match work:
        case None:
            yield ok("unfinished", "nothing is half taken back")
        case unfinished.Forgetting(threads=threads):
            what = f"a `forget` of {many(len(threads), 'session')} was killed before its end"
            yield _to_finish(settings, clock, what, path)
        case unfinished.Undoing():
            yield _to_finish(settings, clock, "an `undo` was killed before its end", path)
        case unfinished.Redacting():
            yield _to_finish(settings, clock, "a `redact --retro` was killed before its end", path)
        case _:
            assert_never(work)


def _to_finish(settings: Settings, clock: Clock, what: str, path: str) -> Found:
    remedy = "stillroom doctor --fix  # or any pass finishes it"
    return found("unfinished", "warning", what, where=path, remedy=remedy, mend=partial(_finish, settings, clock))


def _finish(settings: Settings, clock: Clock) -> str:
    from stillroom.undoing.finishing import finish_if_begun  # with all the rules: half a second, and rarely needed

    return finish_if_begun(settings, clock) or "somebody else finished it"


def _staging(settings: Settings) -> Iterator[Found]:
    left = left_behind(settings.staging)
    number = len(left.half_published) + len(left.abandoned)
    if not number:
        yield ok("staging", "no killed run left anything")
        return
    half = f"; {len(left.half_published):,} half published, to be completed" if left.half_published else ""
    what = f"{many(number, 'killed run')} left a copy of the memory folder{half}"
    remedy = "stillroom doctor --fix  # or any consolidation clears it"
    clear = partial(_recover, settings)
    yield found("staging", "warning", what, where=str(settings.staging), remedy=remedy, mend=clear)


def _review(settings: Settings) -> Iterator[Found]:
    if held.load(settings.review):
        yield found("review", "note", "a consolidation's result waits for you", remedy="stillroom review")
    if left := held.left_behind(settings.review):
        what = "a killed run left a result there that can't be decided about"
        clear = partial(_clear_review, settings)
        remedy = "stillroom doctor --fix  # the next consolidation makes it again"
        yield found("review", "warning", what, where=str(left[0]), remedy=remedy, mend=clear)


def _clear_review(settings: Settings) -> str:
    with alone(settings.home, wait_seconds=0):
        left = held.left_behind(settings.review)
        for path in left:
            remove_tree(path)
    return f"cleared {len(left):,}"


def _recover(settings: Settings) -> str:
    """As a consolidation would: what was half published is completed, the rest goes."""
    history = History(settings.history, limits=settings.stage_two)
    with alone(settings.home, wait_seconds=0):
        report = recover(settings.staging, history, limits=settings.stage_two)
    if report.blocked:
        raise WorkspaceError("; ".join(report.blocked.values()))
    return f"completed {len(report.completed):,}, cleared {len(report.discarded):,}"


__all__ = ["check_leftovers"]
