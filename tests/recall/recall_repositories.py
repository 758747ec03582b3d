"""Real git repositories, as small as they can be."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
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
    for name, content in _made(remote, first, at):
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)
    return folder


@cache
def _made(remote: str | None, first: str, at: int) -> list[tuple[str, bytes | None]]:
    """All folders (None) and files of such a repository, parents first: git makes one of each kind."""
    with tempfile.TemporaryDirectory() as place:
        made = Path(place)
        git(made, "init", "-q", "--template=")
        git(made, "commit", "-q", "--allow-empty", "-m", first, at=at)
        if remote:
            git(made, "remote", "add", "origin", remote)
        return [
            (str(path.relative_to(made)), path.read_bytes() if path.is_file() else None)
            for path in sorted(made.rglob("*"))
        ]
