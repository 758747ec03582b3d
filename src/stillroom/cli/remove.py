"""`stillroom rm`: one statement goes, for good."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from stillroom.cli.alone import store_alone
from stillroom.cli.asking import agrees
from stillroom.cli.options import WORDS, Flag, Yes, current_settings
from stillroom.cli.output import Line, print_json, print_lines
from stillroom.clock import SystemClock
from stillroom.errors import CommandLineError
from stillroom.undoing.removing import RemovalPreview, Removed, plan_removal, remove
from stillroom.wording import many

_SHOWN = 12


class _Answer(msgspec.Struct, frozen=True):
    #: None: there is no memory yet.
    preview: RemovalPreview | None
    done: Removed | None


def rm_command(
    words: Annotated[list[str] | None, WORDS] = None,
    /,
    *,
    dry_run: Flag = False,
    yes: Yes = False,
    json: Flag = False,
) -> int:
    """Remove one statement from the memory for good.

    It goes from every file of the memory folder and from what was extracted of sessions, and no later run brings it
    back, whichever engine makes it: what remains is a hash of its words. Only you do, by saying it again in a session
    that begins later. `stillroom undo` takes the removal back. To forget whole sessions: `stillroom forget`.

    ```
    stillroom rm MEMORY.md:34
    stillroom rm "releases go out on Tuesdays"
    stillroom rm memory_summary.md:12 --dry-run
    ```

    Parameters
    ----------
    words
        The line, as `FILE:LINE`, or words of the statement. If several statements have them, they are listed.
    dry_run
        Only show what would go.
    yes
        Don't ask. Needed where nobody is at a terminal.
    json
        Print `{preview: {statement, places, sessions}, done}` as JSON.
    """
    asked = " ".join(words or ()).strip()
    if not asked:
        raise CommandLineError("which statement?", hint="`stillroom rm MEMORY.md:34`, or words of it")
    settings = current_settings().impatient
    if not any(path.exists() for path in (settings.database, settings.root)):
        if json:
            print_json(_Answer(None, None))
        else:
            print_lines([("yellow", "there is no memory yet")])
        return 0
    clock = SystemClock()
    with store_alone(settings, clock) as store:
        plan = plan_removal(settings, store, asked, now=clock.now())
        if not json:
            print_lines(_previewed(plan.preview))
        if dry_run:
            if json:
                print_json(_Answer(plan.preview, None))
            return 0
        if not yes and not agrees("Remove this for good?"):
            return 1
        done = remove(settings, store, plan)
    if json:
        print_json(_Answer(plan.preview, done))
        return 0
    lines: list[Line] = [
        ("green", f"removed from {many(len(plan.preview.places), 'place')}; `stillroom undo` brings it back")
    ]
    lines += [
        ("yellow", f"{path} was edited meanwhile: the next run takes it out there") for path in done.kept_for_user
    ]
    print_lines(lines)
    return 0


def _previewed(preview: RemovalPreview) -> Iterator[Line]:
    yield "bold", f"remove  {preview.statement}"
    for place in preview.places[:_SHOWN]:
        yield None, f"from    {place.path}:{place.line}: {place.text.strip()[:100]}"
    if len(preview.places) > _SHOWN:
        yield None, f"        and {len(preview.places) - _SHOWN:,} more (--json lists all)"
    if preview.sessions:
        yield None, f"        and from what was extracted of {many(len(preview.sessions), 'session')}"
