"""Whose request it is: the tree, the thread, its parent and its context window, from the path or the headers.

Codex 0.171 sends `session-id` (the root's, from sub-agents too), `thread-id`, `x-codex-parent-thread-id` from
sub-agents, and `x-codex-window-id`. Claude Code sends `x-claude-code-session-id`.
"""

from __future__ import annotations

from dataclasses import dataclass

from stillroom.config import GATEWAY
from stillroom.service.http import Head, Malformed

#: What a client says to us only.
OURS = ("x-stillroom-session", "x-stillroom-thread", "x-stillroom-parent", "x-stillroom-window")
_MAIN = "main"


@dataclass(frozen=True, slots=True)
class Named:
    """Who asks."""

    tree: str
    thread: str
    parent: str | None
    window: str


def split_target(target: str) -> tuple[str | None, str]:
    """`/t/NAME/v1/responses` is the tree `NAME` and `/v1/responses`; any other path has no tree."""
    if not target.startswith("/t/"):
        return None, target
    name, slash, rest = target[3:].partition("/")
    if not name or not slash:
        raise Malformed("the path must be `/t/NAME/…`")
    return name, f"/{rest}"


def named(head: Head, *, tree: str | None, default_tree: str) -> Named:
    """The path wins, then our headers, then what agents send by themselves. Raises `Malformed` for a name of no use."""
    session = _first(head, "x-stillroom-session", "session-id", "x-claude-code-session-id")
    thread = _first(head, "x-stillroom-thread", "thread-id", "x-claude-code-session-id") or _MAIN
    parent = _first(head, "x-stillroom-parent", "x-codex-parent-thread-id")
    window = _first(head, "x-stillroom-window", "x-codex-window-id") or "1"
    found = Named(tree or session or default_tree, thread, parent if parent != thread else None, window)
    for name in (found.tree, found.thread, found.parent, found.window):
        if name is not None and (len(name) > GATEWAY.max_name_chars or not name.isprintable()):
            raise Malformed("a tree, thread or window has a name that can't be used")
    return found


def _first(head: Head, *names: str) -> str | None:
    return next((value for name in names if (value := head.get(name))), None)
