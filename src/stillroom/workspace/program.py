"""Runs the `git` program, deaf to every configuration but ours."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from stillroom.errors import HistoryError, way_out
from stillroom.system import finding_programs
from stillroom.workspace.tree import DEFAULTS

_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.autocrlf=false"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "core.logAllRefUpdates=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "pack.compression=1"),
)


def call(
    *arguments: str, git_dir: Path, stdin: bytes = b"", folder: Path = Path("/")
) -> subprocess.CompletedProcess[bytes]:
    """Run one git command to its end. Raises `HistoryError` when it can't be started or takes too long."""
    timeout = DEFAULTS.git_timeout_seconds
    try:
        return subprocess.run(
            ["git", *_OPTIONS, *arguments],
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env=_environment(git_dir),
            cwd=folder,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HistoryError(f"`git {arguments[0]}` took more than {timeout} s") from error
    except OSError as error:
        raise _not_started(error) from error


@contextmanager
def started(*arguments: str, git_dir: Path, stdin: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """git at work for the block; it is over when the block is, whatever it wanted."""
    try:
        git = subprocess.Popen(
            ["git", *_OPTIONS, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(git_dir),
            cwd="/",
        )
    except OSError as error:
        raise _not_started(error) from error
    try:
        with git:
            yield git
    except BaseException:
        git.kill()
        raise


def failed(command: str, done: subprocess.CompletedProcess[bytes]) -> HistoryError:
    """What to raise for a command that did not do it, with git's own words."""
    said = done.stderr.decode("utf-8", "replace").strip()[-500:]
    full = os.strerror(errno.ENOSPC)
    hint = way_out(OSError(errno.ENOSPC, full), "") if full in said else None
    return HistoryError(f"`git {command}` failed with {done.returncode}: {said}", hint=hint)


def _not_started(error: OSError) -> HistoryError:
    if isinstance(error, FileNotFoundError):
        return HistoryError("the program `git` is not on the PATH", hint="install git")
    return HistoryError(f"`git` can't be started: {error.strerror}")


def _environment(git_dir: Path) -> dict[str, str]:
    return {
        **finding_programs(),
        "LC_ALL": "C",
        "HOME": os.devnull,
        "XDG_CONFIG_HOME": os.devnull,
        "GIT_DIR": str(git_dir),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
