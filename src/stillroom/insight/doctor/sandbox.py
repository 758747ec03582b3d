"""Where the tools of the consolidation agent would run, and how to have them confined better."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from stillroom.config import OFFLINE, Memories, Settings
from stillroom.insight.doctor.finding import Found, Severity, found, ok
from stillroom.insight.doctor.packages import how_to_install
from stillroom.sandbox.jail import Level
from stillroom.sandbox.probe import LevelReport, probe

#: Each has a shell for the agent; the last level has none.
_CONFINED = ("bwrap", "landlock", "seatbelt")
#: Switches of Linux distributions that keep namespaces from programs such as bubblewrap: file, what it says then, the
#: setting that allows them.
_SWITCHES = (
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
)


def check_sandbox(settings: Settings) -> Iterator[Found]:
    """The level in force. The offline engine needs none: then nothing is wrong, whatever it is."""
    yield level_found(settings.memories, probe(until_one_works=settings.memories.jail == "auto"))


def level_found(memories: Memories, probed: Iterable[LevelReport]) -> Found:
    """What these levels come to. With `auto` none is told of that is weaker than the first that works."""
    asked = memories.jail
    reports = {report.level: report for report in probed}
    is_used = memories.consolidation_model != OFFLINE
    unused = "" if is_used else " (not needed: the offline engine consolidates)"
    best = next((level for level, report in reports.items() if report.available), None)
    if asked != "auto" and not reports[asked].available:
        what = f"`memories.jail` asks for `{asked}`, which can't be had: {reports[asked].reason}{unused}"
        remedy = _raise(reports) if asked == "bwrap" else 'set `memories.jail = "auto"`'
        return found("sandbox", "error" if is_used else "note", what, remedy=remedy)
    level = asked if asked != "auto" else best
    if level is None:
        what = f"none works on this machine{unused}: " + "; ".join(each.reason for each in reports.values())
        return found("sandbox", "error" if is_used else "note", what, remedy=_raise(reports))
    if level in ("bwrap", "seatbelt"):
        return ok("sandbox", f"{level}, the strongest{unused}")
    if asked != "auto" and best != level:
        remedy = f'set `memories.jail = "auto"` for `{best}`'
        return found("sandbox", "note", f"{level}, as `memories.jail` asks{unused}", remedy=remedy)
    severity: Severity = "warning" if is_used and level not in _CONFINED else "note"
    less = "file tools only, no shell" if level == "files" else "no namespaces"
    what = f"{level} ({less}){unused}: {_why_not_best(reports)}"
    return found("sandbox", severity, what, remedy=_raise(reports))


def _why_not_best(reports: Mapping[Level, LevelReport]) -> str:
    return reports["seatbelt" if sys.platform == "darwin" else "bwrap"].reason


def _raise(reports: Mapping[Level, LevelReport]) -> str | None:
    """The command that gets the strongest level on this machine; only Linux has one to choose."""
    if sys.platform != "linux":
        return None
    reason = reports["bwrap"].reason
    if "not installed" in reason:
        return how_to_install("bubblewrap")
    for path, off, setting in _SWITCHES:
        if _says(path) == off:
            return f"sudo sysctl -w {setting}  # lets bubblewrap make namespaces"
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "start the container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
    return "bwrap --unshare-all --ro-bind / / true  # says why namespaces can't be had" if reason else None


def _says(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


__all__ = ["check_sandbox"]
