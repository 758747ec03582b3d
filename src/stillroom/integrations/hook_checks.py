"""Whether the hooks that bring memory to an agent are installed, and work: for `stillroom doctor`."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from stillroom.config import Settings
from stillroom.insight.doctor.finding import Found, found, ok
from stillroom.integrations.installing import AGENTS, Plan, detected, plan_install
from stillroom.integrations.journal import FAILURES
from stillroom.integrations.programs import installed_programs
from stillroom.integrations.starting import OFF

#: The hook gives up after two.
_TRY_SECONDS = 5
#: Older failures say nothing about now.
_RECENT_SECONDS = 24 * 3600
_LOG_TAIL_BYTES = 4096
#: What the log tells that is no failure.
_WANTED = "no pass is started: paused"


def check_hooks(settings: Settings, environ: Mapping[str, str]) -> Iterator[Found]:
    """Each agent that is here: is its hook there, does it call this Stillroom, does it start, did it fail lately?"""
    programs = installed_programs(settings.home)
    agents = detected(environ)
    if not agents:
        yield found("hooks", "note", "no agent that takes hooks is on this machine", remedy="stillroom init --help")
    works: Found | None = None
    for agent in agents:
        plan = plan_install(agent, settings, programs, environ)
        yield from _installed(agent, plan)
        if works is None and _is_installed(plan):
            works = _starts(programs.hook, agent, settings.home, environ)
    if works is not None:
        yield works
        yield from _lately(settings.home)


def _installed(agent: str, plan: Plan) -> Iterator[Found]:
    title, init = AGENTS[agent].title, f"stillroom init --agent {agent}"
    if plan.refused:
        yield found("hooks", "warning", f"{title}: {plan.refused}", remedy=plan.refused.hint)
    elif not _is_installed(plan):
        what = f"{title}: not installed, so its sessions are told nothing and start no pass"
        yield found("hooks", "note", what, remedy=init)
    else:
        changes = [str(edit.original.path) for edit in plan.edits if edit.changes]
        if changes:
            what = f"{title}: installed, but not as this Stillroom would: it moved, or its home did"
            yield found("hooks", "warning", what, where=changes[0], remedy=init)
        else:
            yield ok("hooks", f"{title}: installed", where=str(plan.edits[0].original.path))
        for remark in plan.remarks:
            yield found("hooks", "warning", f"{title}: {remark}", where=str(plan.edits[0].original.path))


def _is_installed(plan: Plan) -> bool:
    """Something of ours is in one of its files."""
    return any(not edit.is_first for edit in plan.edits)


def _starts(hook: tuple[str, ...], agent: str, home: Path, environ: Mapping[str, str]) -> Found:
    """Start it as the agent does, told to do nothing."""
    command = [*hook, agent, "session-start"]
    environment = {**environ, OFF: "off"}
    try:
        done = subprocess.run(
            command, input=b"{}", capture_output=True, timeout=_TRY_SECONDS, env=environment, cwd=home, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return found("hooks", "error", f"the hook doesn't start: {error}", where=hook[0], remedy="stillroom init")
    if done.returncode or done.stderr:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[-200:]
        what = f"the hook fails with {done.returncode}: {said}"
        return found("hooks", "error", what, where=shlex.join(command), remedy="stillroom init")
    return ok("hooks", "the hook starts", where=shlex.join(hook))


def _lately(home: Path) -> Iterator[Found]:
    """The last failure of the log, if it is of this day."""
    path = home / FAILURES
    try:
        with path.open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _LOG_TAIL_BYTES, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return
    oldest = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - _RECENT_SECONDS))
    failures = [line for line in lines if line[:20] > oldest and _WANTED not in line]
    if failures:
        moment, _, said = failures[-1].partition(" ")
        what = f"the hook failed {len(failures):,} times within a day, last at {moment}: {said}"
        yield found("hooks", "warning", what, where=str(path), remedy=f"tail '{path}'")


__all__ = ["check_hooks"]
