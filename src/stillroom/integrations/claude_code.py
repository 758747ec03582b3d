"""Claude Code: hooks and one permission in `settings.json` of its home.

What the real one does (2.1.332) is told in `docs/decisions/0006-how-memory-reaches-an-agent.md`.
"""

from __future__ import annotations

from pathlib import Path

from stillroom.integrations.hooks_json import put_hook, take_hooks
from stillroom.integrations.json_text import append, check, remove
from stillroom.integrations.programs import Programs

AGENT = "claude-code"
#: Without a matcher every start: new, resumed, cleared, and after compaction.
EVENTS = {"SessionStart": "session-start", "SessionEnd": "session-end"}
#: The hook itself gives up after two.
TIMEOUT_SECONDS = 10


def settings_with_us(text: str, programs: Programs, root: Path, *, former_rule: str | None) -> str:
    """The settings with our hooks, and with leave to read the memory folder; `former_rule` is one that we added before.

    Without that leave each look into the folder is a question to the user, and in `claude -p` a refusal.
    """
    text = text if text.strip() else "{}\n"
    for event, name in EVENTS.items():
        handler = {"type": "command", "command": programs.hook_command(AGENT, name), "timeout": TIMEOUT_SECONDS}
        text = put_hook(text, event, handler)
    text = take_hooks(text, keep=tuple(EVENTS))
    if former_rule and former_rule != read_rule(root):
        text = _without_rule(text, former_rule)
    return text if allows_reading(text, root) else append(text, ("permissions", "allow"), read_rule(root))


def settings_without_us(text: str, *, rule: str | None) -> str:
    """The settings without our hooks, and without the rule that we added."""
    text = take_hooks(text)
    return _without_rule(text, rule) if rule else text


def has_our_hooks(text: str) -> bool:
    """Whether we are installed there."""
    return bool(text.strip()) and take_hooks(text) != text


def allows_reading(text: str, root: Path) -> bool:
    """Whether the memory folder may be read without a question."""
    return bool(text.strip()) and read_rule(root) in _allowed(text)


def remarks(text: str) -> list[str]:
    """What in the settings keeps memory from reaching a session."""
    settings = check(text) if text.strip() else {}
    return ["`disableAllHooks` is on in these settings: no hook runs"] if settings.get("disableAllHooks") else []


def read_rule(root: Path) -> str:
    """Claude Code's rule for reading below `root`; `//` is the root of the file system."""
    return f"Read(/{root}/**)"


def _allowed(text: str) -> list[object]:
    permissions = check(text).get("permissions")
    allowed = permissions.get("allow") if isinstance(permissions, dict) else None
    return allowed if isinstance(allowed, list) else []


def _without_rule(text: str, rule: str) -> str:
    allowed = _allowed(text)
    return remove(text, ("permissions", "allow", allowed.index(rule))) if rule in allowed else text
