"""`stillroom doctor`: what is wrong, and what to do about it."""

from __future__ import annotations

import json as json_module
import os
from functools import partial

import msgspec
from rich.console import Console

from stillroom.cli.options import Flag, current_home
from stillroom.clock import SystemClock
from stillroom.insight.doctor.examine import Report, examine
from stillroom.insight.doctor.finding import Finding
from stillroom.integrations.hook_checks import check_hooks
from stillroom.wording import plain

_MARKS = {"ok": ("ok", "green"), "note": ("note", ""), "warning": ("warn", "yellow"), "error": ("WRONG", "red")}


def doctor_command(
    *,
    fix: Flag = False,
    model: Flag = False,
    json: Flag = False,
) -> int:
    """Look for what keeps Stillroom from working, and say what to do about each.

    Looks at the home and its permissions, the settings, the database and its leases, the history, what killed commands
    left, the sandbox, the hooks, and other memory systems. The exit code is 1 when something is wrong. Nothing is
    changed without `--fix`, and nothing outside of the home and the memory folder with it.

    ```
    stillroom doctor
    stillroom doctor --fix
    stillroom doctor --json | jq '.findings[] | select(.severity != "ok")'
    ```

    Parameters
    ----------
    fix
        Do what is safe: close the folders to others, give back what killed processes held, complete or clear what they
        left, begin a new history where it is gone or damaged.
    model
        Ask each configured model for one short answer. It is paid for, counted as any call, and within the caps.
    json
        Print everything that was looked at as JSON.
    """
    report = examine(
        current_home(),
        SystemClock(),
        environ=os.environ,
        further=partial(check_hooks, environ=os.environ),
        fix=fix,
        models=model,
    )
    if json:
        print(json_module.dumps(msgspec.to_builtins(report), indent=2))
    else:
        _tell(report)
    return 0 if report.is_well else 1


def _tell(report: Report) -> None:
    out = Console(highlight=False, soft_wrap=True)
    for each in report.findings:
        mark, style = _MARKS[each.severity]
        out.print(f"{mark:<6}", style=style, end="", markup=False)
        out.print(plain(f"{each.check:<15} {each.what}{_place(each)}"), markup=False)
        if each.fixed is not None:
            out.print(plain(f"{'':<21} fixed: {each.fixed}"), style="green", markup=False)
        elif each.not_fixed is not None:
            out.print(plain(f"{'':<21} could not be fixed: {each.not_fixed}"), style="red", markup=False)
        if each.remedy and each.severity != "ok" and each.fixed is None:
            out.print(plain(f"{'':<21} -> {each.remedy}"), markup=False)
    wrong = sum(each.is_wrong for each in report.findings)
    fixable = sum(each.is_wrong and each.fixable for each in report.findings)
    if not wrong:
        out.print("nothing is wrong", style="green", markup=False)
        return
    can = f"; `stillroom doctor --fix` mends {fixable:,} of it" if fixable else ""
    out.print(f"{wrong:,} to be done{can}", style="yellow", markup=False)


def _place(finding: Finding) -> str:
    return f" ({finding.where})" if finding.where and finding.where not in finding.what else ""
