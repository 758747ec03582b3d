"""Asks git about somebody's repository: reads objects and refs, whatever the repository's own settings say.

No hook, monitor, filter or program that the repository names is run, nothing is fetched, nothing is written.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from stillroom.system import finding_programs

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone would ask its server
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "log.showSignature=false"),  # would run the repository's `gpg.program`
)


def ask_git(place: str, *words: str, timeout_seconds: float, stdin: bytes = b"") -> bytes | None:
    """What git answers about the repository whose git directory is `place`; None when it can't say, or not in time."""
    done = _run(place, words, timeout_seconds, stdin)
    return None if done is None or done.returncode else done.stdout


def does_git_find(place: str, *words: str, timeout_seconds: float) -> bool | None:
    """Whether a command that looks for something finds it; None when it can't say, or not in time."""
    done = _run(place, words, timeout_seconds, b"")
    return None if done is None or done.returncode not in (0, 1) else done.returncode == 0


def _run(place: str, words: Sequence[str], timeout: float, stdin: bytes) -> subprocess.CompletedProcess[bytes] | None:
    command = ["git", *_OPTIONS, f"--git-dir={place}", *words]
    environment = {**_ENVIRONMENT, **finding_programs()}
    try:
        return subprocess.run(
            command, input=stdin, env=environment, capture_output=True, timeout=timeout, cwd="/", check=False
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):  # a text with NUL is no argument
        return None
