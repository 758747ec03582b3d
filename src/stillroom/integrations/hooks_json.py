"""The `hooks` object that Claude Code's settings and Codex's `hooks.json` share: put our entry in, take it out.

{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "stillroom-hook …"}]}]}}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stillroom.integrations.json_text import Path, append, check, remove, replace
from stillroom.integrations.programs import is_our_hook


def put_hook(text: str, event: str, handler: dict[str, object]) -> str:
    """The text with `handler` under `event`, behind everybody else's. If ours is there, only its command is renewed."""
    ours = list(our_handlers(check(text), event))
    if not ours:
        return append(text, ("hooks", event), {"hooks": [handler]})
    for path, _ in reversed(ours[1:]):
        text = remove(text, path)
    path, there = ours[0]
    renewed = {**there, "command": handler["command"]}
    return text if there == renewed else replace(text, path, renewed)


def take_hooks(text: str, *, keep: tuple[str, ...] = ()) -> str:
    """The text without our handlers, but for those of the events to keep."""
    hooks = check(text).get("hooks")
    for event in hooks if isinstance(hooks, dict) else ():
        if event not in keep:
            for path, _ in reversed(list(our_handlers(check(text), event))):
                text = _take(text, path)
    return text


def _take(text: str, path: Path) -> str:
    """Remove a handler, and its group with its matcher if it was alone in it."""
    group: Any = check(text)
    for key in path[:-2]:
        group = group[key]
    return remove(text, path if len(group["hooks"]) > 1 else path[:-2])


def our_handlers(settings: dict[str, Any], event: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Where our handlers of an event are, and what they say."""
    hooks = settings.get("hooks")
    groups = hooks.get(event) if isinstance(hooks, dict) else None
    for g, group in enumerate(groups if isinstance(groups, list) else ()):
        handlers = group.get("hooks") if isinstance(group, dict) else None
        for h, handler in enumerate(handlers if isinstance(handlers, list) else ()):
            if isinstance(handler, dict) and is_our_hook(handler.get("command")):
                yield ("hooks", event, g, "hooks", h), handler


__all__ = ["our_handlers", "put_hook", "take_hooks"]
