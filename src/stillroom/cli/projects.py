"""`stillroom projects`: which folders are one project?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from stillroom.cli.options import Flag, current_settings, flag
from stillroom.cli.output import Line, print_answer, print_json, print_lines
from stillroom.clock import SystemClock
from stillroom.errors import ConfigError
from stillroom.store import Store
from stillroom.undoing.declaring import ProjectFolders, join, list_projects, set_apart, take_back
from stillroom.wording import many

_SHOWN = 5


class _Answer(msgspec.Struct, frozen=True):
    projects: list[ProjectFolders]


class _Said(msgspec.Struct, frozen=True):
    #: What are one project now.
    folders: list[str]


def projects_command(
    folders: list[Path] | None = None,
    /,
    *,
    join_them: Annotated[bool, flag("--join")] = False,
    apart: Flag = False,
    undo: Flag = False,
    json: Flag = False,
) -> int:
    """List the projects that sessions ran in, or say which folders are one project, and which are apart.

    Worktrees, sub-folders, clones and renamed folders of a repository are one project by themselves, and a folder
    without git is one alone. Where that is not what you mean, say so: it holds from the next session on, for what is
    told, for searches, for `memories --off` and for `forget --repo`. Nothing that is remembered changes.

    ```
    stillroom projects                                     # all that are known
    stillroom projects --join ~/notes-old ~/notes          # a folder without git that moved
    stillroom projects --join ~/src/shop ~/src/shop-infra  # two repositories that share their memory
    stillroom projects --join ~/papers                     # a folder without git, and all below it
    stillroom projects --apart ~/src/mono/packages/api     # a part of a repository, with a memory of its own
    stillroom projects --undo ~/src/mono/packages/api      # as if nothing had been said of it
    ```

    Parameters
    ----------
    folders
        Folders of projects. They need not be there any more.
    join_them
        These are one project.
    apart
        This is a project of its own, with all below it.
    undo
        What was said of this folder holds no more.
    json
        Print `{projects}`, or `{folders}` that are one now, as JSON.
    """
    settings = current_settings().impatient
    named = folders or []
    if (wants := join_them + apart + undo) > 1:
        raise ConfigError("`--join`, `--apart` and `--undo` exclude each other")
    if bool(wants) != bool(named) or (named[1:] and not join_them):
        hint = "name one folder; with `--join` all that are one project"
        raise ConfigError("a folder goes with `--join`, `--apart` or `--undo`, and these with a folder", hint=hint)
    with Store.look(settings.database, clock=SystemClock(), limits=settings.database_limits) as store:
        if not wants:
            _show(list_projects(settings, store), json=json)
            return 0
        if join_them:
            said = join(settings, store, named)
        else:
            said = [set_apart(settings, named[0]) if apart else take_back(settings, store, named[0])]
    if json:
        print_json(_Said(said))
        return 0
    told = "what was said of it holds no more" if undo else "one project from now on"
    print_lines([(None, folder) for folder in said] + [("green", told)])
    return 0


def _show(projects: Sequence[ProjectFolders], *, json: bool) -> None:
    if json:
        print_json(_Answer(list(projects)))
    elif not projects:
        print_lines([("yellow", "no session is known yet: `stillroom threads` looks for them")])
    else:
        print_answer(_lines(projects))


def _lines(projects: Sequence[ProjectFolders]) -> Iterator[Line]:
    for project in projects:
        notes = [project.remote] if project.remote else []
        notes += ["joined by you"] if project.is_joined else []
        notes += ["set apart by you"] if project.part else []
        notes += ["switched off"] if project.is_off else []
        about = f"  ({', '.join(notes)})" if notes else ""
        yield "bold", f"{project.name}{about}"
        yield None, f"    {many(project.sessions, 'session')}, {project.remembered:,} remembered"
        for folder in project.folders[:_SHOWN]:
            yield None, f"    {folder}"
        if (more := len(project.folders) - _SHOWN) > 0:
            yield None, f"    and {more:,} more (--json lists all)"
