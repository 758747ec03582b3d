"""Which memory a shell command reads or searches, as a metric counts it (spec §2.3).

All or nothing: one command of the script that is not known, and nobody can tell what it did.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Literal

from stillroom.config import CITING
from stillroom.recall.usage.plain_script import VARIABLES, plain_commands
from stillroom.recall.usage.reading_commands import operands_of, paths_drawn_on

UsageKind = Literal["memory_md", "memory_summary", "raw_memories", "rollout_summaries", "skills"]

#: By what is in the path; the first that fits.
_KINDS: tuple[tuple[str, UsageKind], ...] = (
    ("memories/MEMORY.md", "memory_md"),
    ("memories/memory_summary.md", "memory_summary"),
    ("memories/raw_memories.md", "raw_memories"),
    ("memories/rollout_summaries/", "rollout_summaries"),
    ("memories/skills/", "skills"),
)
_NAMES = tuple(fragment.removeprefix("memories/").rstrip("/") for fragment, _ in _KINDS)
_ROOTS = ("/", "~", *(f"${name}" for name in VARIABLES))


def memories_usage_kinds_from_command(
    command: str, *, cwd: str | None = None, root: str | None = None, variables: Mapping[str, str] | None = None
) -> tuple[UsageKind, ...]:
    """The kinds of memory that a script reads or searches: for each of its commands every kind once.

    `cwd` is where it runs. With `root`, a memory folder of any name counts, not only one called `memories`; `variables`
    (`HOME`, `STILLROOM_HOME`) say where a path that begins with one of them leads.
    """
    if len(command) > CITING.max_command_chars or not _names_memory(command, cwd):
        return ()
    commands = plain_commands(command)
    if commands is None:
        return ()
    folder, talking = cwd or "", True
    kinds: list[UsageKind] = []
    for words in commands:
        if words[0] == "cd":
            folder = _beside(folder, (operands_of(words[1:]) or ["~"])[-1])
            continue
        # Talk ahead of the first command, and success after the last, change nothing.
        if (talking and words[0] == "echo") or (words == ["true"] and words is commands[-1]):
            continue
        talking = False
        paths = paths_drawn_on(words)
        if paths is None:
            return ()
        found = (usage_kind_of_path(_beside(folder, path), root=root, variables=variables) for path in paths)
        kinds += dict.fromkeys(kind for kind in found if kind is not None)
    return tuple(kinds)


def usage_kind_of_path(
    path: str, *, root: str | None = None, variables: Mapping[str, str] | None = None
) -> UsageKind | None:
    """What kind of memory lies at a path; None: none. The options are those of the function above."""
    path = path.replace("\\", "/")
    if "/../" in path or "/./" in path or "//" in path:
        path = posixpath.normpath(path)
    # A folder may be named without its slash.
    path = f"{path}/"
    if root is not None and (below := _below(path, root.rstrip("/"), variables or {})) is not None:
        path = f"memories/{below}"
    return next((kind for fragment, kind in _KINDS if fragment in path), None)


def _below(path: str, root: str, variables: Mapping[str, str]) -> str | None:
    start, slash, rest = path.partition("/")
    if start.startswith(("~", "$")):
        path = variables.get("HOME" if start == "~" else start[1:], start) + slash + rest
    return path[len(root) + 1 :] if path.startswith(f"{root}/") else None


def _names_memory(command: str, cwd: str | None) -> bool:
    """False only if no kind can be found: a quick look, as nearly every command of a session ends here."""
    if '"' in command or "'" in command:
        command = command.replace('"', "").replace("'", "")
    return any(name in command for name in _NAMES) or (cwd is not None and any(name in cwd for name in _NAMES))


def _beside(folder: str, path: str) -> str:
    return path if not folder or path.startswith(_ROOTS) else f"{folder}/{path}"
