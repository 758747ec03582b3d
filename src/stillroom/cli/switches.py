"""`stillroom pause`, `resume` and `memories`: switches that a person has at hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from stillroom.cli.options import Flag, current_settings
from stillroom.cli.output import console, print_data, print_json, print_lines
from stillroom.clock import SystemClock
from stillroom.config import Settings
from stillroom.errors import ConfigError, RecordingError
from stillroom.pausing import pause, paused_since, resume, told_pause
from stillroom.recording.exporting.export import find_thread
from stillroom.store import Store
from stillroom.thread import MemoryMode
from stillroom.undoing.projects import Project, Switch, switch_project, switched_off_projects
from stillroom.wording import many, plain
from stillroom.workspace.tree import naming


class _Pause(msgspec.Struct, frozen=True):
    paused_since: str | None
    changed: bool


class _Thread(msgspec.Struct, frozen=True):
    thread_id: str
    memory_mode: MemoryMode
    changed: bool


class _Off(msgspec.Struct, frozen=True):
    switched_off: list[Project]


def pause_command(*, home: Path | None = None, json: bool = False) -> int:
    """Let no pass do anything until `stillroom resume`: nothing is read, extracted, consolidated or paid for.

    A pass that runs already sends nothing more, and ends with what it had begun. Sessions are still told what is
    remembered.

    ```
    stillroom pause
    ```

    Parameters
    ----------
    json
        Print `{paused_since, changed}` as JSON.
    """
    place = current_settings().home
    moment = datetime.fromtimestamp(SystemClock().now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with naming(str(place), "written"):
        changed = pause(str(place), moment)
    since = paused_since(str(place))
    if json:
        print_json(_Pause(since, changed))
    else:
        print_lines([(None, "passes are paused from now on" if changed or not since else told_pause(since))])
        print_lines([(None, "`stillroom resume` lets them run again")])
    return 0


def resume_command(*, home: Path | None = None, json: bool = False) -> int:
    """Let passes run again after `stillroom pause`.

    ```
    stillroom resume
    ```

    Parameters
    ----------
    json
        Print `{paused_since, changed}` as JSON.
    """
    place = current_settings().home
    with naming(str(place), "written"):
        changed = resume(str(place))
    if json:
        print_json(_Pause(None, changed))
    else:
        print_lines([(None, "passes run again" if changed else "passes were not paused")])
    return 0


def memories_command(
    *,
    off: Flag = False,
    on: Flag = False,
    cwd: Path | None = None,
    thread: str | None = None,
    json: Flag = False,
) -> int:
    """Switch the memory off, or on again, for a project: its sessions are told nothing and nothing is learnt of them.

    A repository is meant with all its worktrees and clones, a folder without git with everything below it. What is
    remembered of it already leaves the memory at the next consolidation, and comes back when it is switched on.
    Without `--off` and `--on` the projects that are off are listed.

    ```
    stillroom memories --off --cwd ~/src/secret
    stillroom memories                   # where is it off?
    stillroom memories --on --cwd ~/src/secret
    stillroom memories --off --thread 01a2273c-0036    # of one session nothing is learnt
    ```

    Parameters
    ----------
    off
        Switch it off.
    on
        Switch it on again.
    cwd
        A folder of the project. Default: the current folder.
    thread
        Instead of a project: one session, by the beginning of its id. Whatever its agent says of it, this counts.
    json
        Print what was done, or `{switched_off}`, as JSON.
    """
    settings = current_settings().impatient
    if off and on:
        raise ConfigError("`--off` and `--on` exclude each other")
    if thread is not None and cwd is not None:
        raise ConfigError("`--thread` and `--cwd` exclude each other")
    if thread is not None and not (off or on):
        raise ConfigError(
            "`--thread` needs `--off` or `--on`", hint=f"`stillroom explain {thread}` tells how it stands"
        )
    if thread is not None:
        return _switch_thread(settings, thread, on=on, json=json)
    if not off and not on:
        projects = switched_off_projects(settings)
        if json:
            print_json(_Off(projects))
        elif not projects:
            print_lines([(None, "the memory is switched off nowhere")])
        for project in [] if json else projects:
            print_data(_called(project))
        return 0
    done = switch_project(settings, cwd or Path(), on=on)
    print_json(done) if json else _tell(done, on=on)
    return 0


def _switch_thread(settings: Settings, beginning: str, *, on: bool, json: bool) -> int:
    clock = SystemClock()
    thread_id = find_thread(settings, beginning, clock=clock).thread_id
    with Store.open(settings.database, clock=clock, limits=settings.database_limits) as store:
        changed = store.threads.set_memory_mode(thread_id, "enabled" if on else "disabled")
        thread = store.threads.get(thread_id)
    if thread is None:
        raise RecordingError(f"`{thread_id}` was recorded since the last look", hint="`stillroom threads` takes it in")
    if json:
        print_json(_Thread(thread_id, thread.memory_mode, changed))
        return 0
    out = console()
    out.print(plain(f"the memory is switched {'on' if on else 'off'} for session {thread_id}"), markup=False)
    if on and thread.memory_mode != "enabled":
        out.print("the memory of its project is off all the same", style="yellow", markup=False)
    elif changed:
        out.print("the next consolidation goes by it", markup=False)
    return 0


def _tell(done: Switch, *, on: bool) -> None:
    out, state = console(), "on" if on else "off"
    said = f"the memory is {'' if done.changed else 'already '}switched {state} for {_called(done.project)}"
    out.print(plain(said), markup=False)
    if done.unsure:
        out.print(plain(f"its sessions could not be looked at: {done.unsure}; the next pass does"), style="yellow")
    elif done.remembered and not on:
        told = many(done.remembered, "session of it is", "sessions of it are")
        out.print(f"{told} in the memory until the next consolidation", style="yellow", markup=False)
        out.print(plain(f"to have them forgotten: stillroom forget --repo '{done.project.folder}'"), markup=False)
    else:
        told = many(done.threads, "session of it is", "sessions of it are") if done.threads else "no session of it is"
        out.print(f"{told} known", markup=False)


def _called(project: Project) -> str:
    remote = f" ({project.remote})" if project.remote else ""
    return f"{project.folder}{remote}" if project.is_git else f"{project.folder} and everything below it"
