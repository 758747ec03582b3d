"""Real git repositories, as small as they can be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "LC_ALL": "C",
}


def git(folder: Path, *words: str, at: int = 1_700_000_000) -> str:
    stamp = f"{at} +0000"
    environment = {**_ENVIRONMENT, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
    command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()


def repository(folder: Path, *, remote: str | None = None, first: str = "first", at: int = 1_700_000_000) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "--template=")
    git(folder, "commit", "-q", "--allow-empty", "-m", first, at=at)
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder
