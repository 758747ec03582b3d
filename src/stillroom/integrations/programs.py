"""How an agent calls us: by absolute path, so that no virtual environment has to be on its `PATH`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stillroom.config import default_home

HOOK = "stillroom-hook"
PROGRAM = "stillroom"
_MODULES = {HOOK: "stillroom.integrations.hook", PROGRAM: "stillroom"}


@dataclass(frozen=True, slots=True)
class Programs:
    """The words that start the hook and the command of this installation."""

    hook: tuple[str, ...]
    stillroom: tuple[str, ...]

    def hook_command(self, agent: str, event: str) -> str:
        """A shell command, as hooks are written."""
        return shlex.join([*self.hook, agent, event])


def installed_programs(home: Path) -> Programs:
    """This installation's programs; a home other than the default one is named in every call."""
    at = () if home == default_home({}).absolute() else ("--home", str(home))
    return Programs(hook=(*_words(HOOK), *at), stillroom=_words(PROGRAM))


def _words(name: str) -> tuple[str, ...]:
    folders = [Path(sysconfig.get_path("scripts")), Path(sys.argv[0]).absolute().parent]
    for folder in folders:
        if os.access(folder / name, os.X_OK) and (folder / name).is_file():
            return (str(folder / name),)
    if found := shutil.which(name):
        return (str(Path(found).absolute()),)
    # `-P`: an agent starts this in any folder, which is no place to import from.
    return (sys.executable, "-P", "-m", _MODULES[name])


def is_our_hook(command: object) -> bool:
    """Whether a hook's command calls us, wherever the installation that wrote it was."""
    return isinstance(command, str) and _calls(command, HOOK)


def is_our_server(command: object, arguments: object) -> bool:
    """Whether an MCP server is ours."""
    words = [str(word) for word in (command, *(arguments if isinstance(arguments, list) else ()))]
    return "mcp" in words and _calls(shlex.join(words), PROGRAM)


def _calls(command: str, name: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:  # an open quote
        return False
    if not words:
        return False
    return Path(words[0]).name in (name, f"{name}.exe") or ("-m", _MODULES[name]) in pairwise(words)


def is_temporary(programs: Programs) -> bool:
    """Whether this runs from a cache (`uvx`, `pipx run`) that is cleaned up some day."""
    return any(part in programs.hook[0] for part in ("/uv/archive-v", "/pipx/.cache/", "/.cache/pipx/"))


__all__ = ["Programs", "installed_programs", "is_our_hook", "is_our_server", "is_temporary"]
