"""`stillroom review`: what a consolidation made and a person should see first."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from stillroom.cli.alone import store_alone
from stillroom.cli.editor import open_editor
from stillroom.cli.options import Flag, current_settings, flag
from stillroom.cli.output import console, print_data, print_json
from stillroom.clock import SystemClock
from stillroom.config import Settings
from stillroom.errors import ConfigError
from stillroom.lanes import WHO
from stillroom.reviewing.deciding import Accepted, accept, edit, reject
from stillroom.reviewing.showing import HeldReview, held_review
from stillroom.store import Store
from stillroom.store.records import Withheld
from stillroom.undoing.alone import alone
from stillroom.wording import many, plain


class _Answer(msgspec.Struct, frozen=True):
    held: HeldReview | None
    #: Lines that stay out of the memory because only a tool or the web said them.
    withheld: tuple[Withheld, ...] = ()
    accepted: Accepted | None = None
    rejected: bool = False


def review_command(
    *,
    accept_it: Annotated[bool, flag("--accept")] = False,
    reject_it: Annotated[bool, flag("--reject")] = False,
    edit_it: Annotated[bool, flag("--edit")] = False,
    trust: str | None = None,
    json: Flag = False,
) -> int:
    """Show what a consolidation made and what holds it back, or decide about it.

    With `review = "warnings"` or `"always"` under `[memories]` such a result waits here instead of coming into the
    memory folder. Until you decide, nothing is consolidated and nothing spent on it; sessions are still extracted.

    Lines that only a tool or the web said stay out of the memory, whatever the settings are. They are listed too, and
    `--trust` lets one in.

    ```
    stillroom review
    stillroom review --accept
    ```

    Parameters
    ----------
    accept_it
        Bring it into the memory folder, as one version of the history. Files that you changed since stay yours.
    reject_it
        Throw it away. The same sessions are not consolidated again until something about them changes.
    edit_it
        Open its changed files in `$VISUAL` or `$EDITOR`, then judge it again.
    trust
        The name of a line that stays out: let it in. The next consolidation has it.
    json
        Print `{held, withheld, accepted, rejected}` as JSON.
    """
    if accept_it + reject_it + edit_it + (trust is not None) > 1:
        raise ConfigError("only one of `--accept`, `--reject`, `--edit` and `--trust` can be had")
    settings = current_settings().impatient
    accepted = None
    if accept_it:
        accepted = _accept(settings)
    elif reject_it:
        with alone(settings.home):
            reject(settings)
    elif edit_it:
        edit(settings, open_editor)
    answer = _Answer(held_review(settings), _withheld(settings, trust), accepted, reject_it)
    print_json(answer) if json else _tell(answer)
    return 0


def _accept(settings: Settings) -> Accepted:
    clock = SystemClock()
    with store_alone(settings, clock) as store:
        return accept(settings, store, clock)


def _withheld(settings: Settings, trust: str | None) -> tuple[Withheld, ...]:
    """The lines that stay out, after one was let in. Raises `ConfigError` for a name that none has."""
    if not settings.database.is_file() and trust is None:
        return ()
    memories = settings.memories
    open_store = Store.look if trust is None else Store.open
    with open_store(settings.database, clock=SystemClock(), limits=settings.database_limits) as store:
        for _ in range(2):
            found = store.consolidation.select(
                limit=memories.max_raw_memories_for_consolidation, max_unused_days=memories.max_unused_days
            ).withheld
            if trust is None:
                return found
            if not any(each.line.line_id == trust for each in found):
                raise ConfigError(f"no line that stays out is named `{trust}`", hint="`stillroom review` lists them")
            store.consolidation.trust_line(trust)
            trust = None
    return found


def _tell(answer: _Answer) -> None:
    out = console()

    def say(text: str, style: str | None = None) -> None:
        out.print(plain(text), style=style, markup=False)

    if done := answer.accepted:
        say(f"accepted: {many(len(done.written), 'file')} written, {len(done.deleted):,} deleted", "green")
        for path in done.kept_for_user:
            say(f"{path} was edited meanwhile: yours stays", "yellow")
        return
    if answer.rejected:
        say("rejected: the same sessions are not consolidated again until something about them changes", "green")
        return
    for each in answer.withheld:
        order = ", an instruction" if each.line.instruction else ""
        say(f"out      {each.line.line_id}  {each.line.text}", "yellow")
        say(f"         only {WHO[each.line.lane]} says so{order}; session {each.thread_id} in {each.cwd}")
    if answer.withheld:
        say("--trust NAME lets a line in")
    found = answer.held
    if found is None:
        say("no result waits for you")
        return
    moment = datetime.fromtimestamp(found.at).astimezone().strftime("%Y-%m-%d %H:%M")
    say(f"held     since {moment}, made of {many(found.inputs, 'memory', 'memories')} by {found.engine}", "bold")
    if found.stale:
        say("         the memory went on since: it can't be accepted any more", "yellow")
    for finding in found.findings:
        where = f"{finding.path}:{finding.line}" if finding.line else finding.path
        say(f"{'error' if finding.fatal else 'warning':8} {where}: {finding.message} [{finding.rule}]", "yellow")
    print_data(found.diff, end="")
    say("--accept brings it into the memory, --edit opens it, --reject throws it away")
