"""`stillroom init` and `stillroom uninit`: show what would change in whose settings, ask, write."""

from __future__ import annotations

import difflib
import json as json_module
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console

from stillroom.cli.options import Flag, Yes, current_settings
from stillroom.config import Settings
from stillroom.errors import SettingsRefused, StillroomError
from stillroom.integrations.files import unified_diff
from stillroom.integrations.installing import AGENTS, Plan, apply, detected, plan_install, plan_removal
from stillroom.integrations.programs import Programs, installed_programs
from stillroom.wording import plain

_Planner = Callable[[str, Settings, Programs, Mapping[str, str]], Plan]


def init_command(
    *,
    agent: list[str] | None = None,
    dry_run: Flag = False,
    yes: Yes = False,
    json: Flag = False,
) -> int:
    """Install the hooks through which your agents' sessions are given the memory, and start passes.

    Shows each edit as a diff and asks before it writes; without a terminal to ask on it writes. Comments, order and
    indentation of your files stay, what was there is backed up under the home, and a second call changes nothing.
    Call it again after Stillroom or its home moved.

    ```
    stillroom init                       # every agent that is on this machine
    stillroom init --agent codex         # this one
    stillroom init --dry-run             # only show
    ```

    Parameters
    ----------
    agent
        `claude-code` or `codex`; may be given several times. Default: those that are installed.
    dry_run
        Show the edits and write nothing.
    yes
        Don't ask.
    json
        Print what was done as JSON on stdout, and don't ask.
    """
    settings = current_settings()
    return _work(plan_install, settings, agent, removing=False, dry_run=dry_run, ask=not (yes or json), json=json)


def uninit_command(
    *,
    agent: list[str] | None = None,
    dry_run: Flag = False,
    yes: Yes = False,
    json: Flag = False,
) -> int:
    """Take out what `stillroom init` put into your agents' settings, and nothing else.

    A file that nobody else changed is again what it was, byte for byte. The memory stays.

    ```
    stillroom uninit                     # every agent
    stillroom uninit --agent codex
    ```

    Parameters
    ----------
    agent
        `claude-code` or `codex`; may be given several times. Default: all of them.
    dry_run
        Show the edits and write nothing.
    yes
        Don't ask.
    json
        Print what was done as JSON on stdout, and don't ask.
    """
    settings = current_settings()
    names = agent or list(AGENTS)
    return _work(plan_removal, settings, names, removing=True, dry_run=dry_run, ask=not (yes or json), json=json)


def _work(
    planner: _Planner,
    settings: Settings,
    names: list[str] | None,
    *,
    removing: bool,
    dry_run: bool,
    ask: bool,
    json: bool,
) -> int:
    out = _Output(quiet=json)
    chosen = _chosen(names) if names else detected(os.environ)
    if not chosen:
        out.say("no agent found: neither `claude` nor `codex` is on the PATH, and neither has a home")
    programs = installed_programs(settings.home)
    results = []
    for name in chosen:
        plan = planner(name, settings, programs, os.environ)
        result = _shown(plan, out)
        if not dry_run and not plan.refused and (result["files"] or _is_ours_to_note(plan)):
            result.update(_written(plan, settings, out, removing=removing, ask=ask and bool(result["files"])))
        results.append(result)
    if chosen and not (removing or dry_run or (settings.root / "memory_summary.md").exists()):
        out.say("there is no memory yet: `stillroom run --backfill` distils the sessions that you already have")
    if json:
        print(json_module.dumps({"agents": results}, indent=2))
    return 1 if any(result["error"] for result in results) else 0


def _chosen(names: list[str]) -> list[str]:
    for name in names:
        if name not in AGENTS:
            near = difflib.get_close_matches(name, AGENTS, 1, 0.4)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            raise StillroomError(f"there is no agent `{name}`{meant}", hint=f"the agents are: {', '.join(AGENTS)}")
    return list(dict.fromkeys(names))


def _shown(plan: Plan, out: _Output) -> dict[str, Any]:
    """Print the plan; what it says, for `--json`."""
    out.title(AGENTS[plan.agent].title)
    files = []
    for edit in plan.edits:
        if edit.changes:
            diff = unified_diff(edit.original, edit.after)
            out.diff(diff)
            files.append({"path": str(edit.original.path), "diff": diff})
    if plan.refused:
        out.error(plan.refused)
    elif not files:
        out.say("nothing to change")
    for remark in plan.remarks:
        out.say(f"note: {remark}")
    error = {"message": str(plan.refused), "hint": plan.refused.hint} if plan.refused else None
    return {
        "agent": plan.agent,
        "files": files,
        "notes": list(plan.remarks),
        "written": False,
        "backups": [],
        "error": error,
    }


def _is_ours_to_note(plan: Plan) -> bool:
    """Nothing to write, but the manifest may not know the permission yet, or still."""
    return not any(edit.changes for edit in plan.edits)


def _written(plan: Plan, settings: Settings, out: _Output, *, removing: bool, ask: bool) -> dict[str, Any]:
    if ask and not out.agrees():
        out.say("left as it is")
        return {}
    try:
        backups = apply(plan, settings, removing=removing)
    except SettingsRefused as error:
        out.error(error)
        return {"error": {"message": str(error), "hint": error.hint}}
    changed = any(edit.changes for edit in plan.edits)
    for backup in backups:
        out.say(f"backup: {backup}")
    if changed:
        out.say("done")
    return {"written": changed, "backups": [str(backup) for backup in backups]}


class _Output:
    """Speaks to a person: diffs on stdout, the rest on stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._data = Console(highlight=False, soft_wrap=True)
        self._talk = Console(stderr=True, highlight=False, soft_wrap=True)

    def title(self, text: str) -> None:
        self.say(text, style="bold")

    def say(self, text: str, *, style: str = "") -> None:
        if not self._quiet:
            self._talk.print(plain(text), style=style, markup=False)

    def error(self, error: StillroomError) -> None:
        self.say(f"error: {error}", style="red")
        if error.hint:
            self.say(f"hint: {error.hint}")

    def diff(self, text: str) -> None:
        if self._quiet:
            return
        for line in text.splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
            self._data.print(plain(line.expandtabs()), style=style, markup=False)

    def agrees(self) -> bool:
        """The answer of whoever sits at the terminal; where nobody does, the command itself was the answer."""
        if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
            return True
        try:
            return self._talk.input("Write this? [y/N] ", markup=False).strip().lower() in ("y", "yes")
        except EOFError:
            return False
