"""Opens files in a person's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePath

from stillroom.errors import ConfigError

#: Editors that take `+12` ahead of a file for its twelfth line.
_TAKE_A_LINE = frozenset(
    {"vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "micro", "kak", "joe", "ne"}
)


def open_editor(files: Sequence[Path], *, line: int | None = None) -> None:
    """Wait until a person has edited them. Raises `ConfigError` when no editor is named, or it fails."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command:
        raise ConfigError("no editor is named", hint="set `EDITOR`, e.g. `EDITOR=nano`")
    try:
        words = shlex.split(command)
        at = [f"+{line}"] if line and words and PurePath(words[0]).name in _TAKE_A_LINE else []
        # No timeout: a person is at work. The editor is theirs, so it gets their environment.
        done = subprocess.run([*words, *at, *map(str, files)], check=False, env=dict(os.environ))
    except (OSError, ValueError) as error:
        raise ConfigError(f"`{command}` can't be started: {error}", hint="set `EDITOR` to another one") from error
    if done.returncode:
        raise ConfigError(f"`{command}` ended with {done.returncode}; nothing was changed")
