"""Real clients from npm, installed once into a cache outside of what is committed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

CACHE = Path(os.environ.get("STILLROOM_NPM_CACHE", Path(__file__).resolve().parents[2] / ".cache" / "npm"))
INSTALL_SECONDS = 300


class ClientUnavailable(Exception):
    """The client is not here and can't be had: the message says why."""


def installed(package: str, version: str, pattern: str) -> Path:
    """The file `pattern` of this version of a package; installs it once. Raises `ClientUnavailable`.

    The packages' own install scripts are not run: what is wanted is the native program that they would link to.
    """
    prefix = CACHE / f"{package.rpartition('/')[2]}-{version}"
    if found := _found(prefix, pattern):
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise ClientUnavailable("`npm` is not installed")
    prefix.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(prefix)]
    try:
        done = subprocess.run(
            [*command, f"{package}@{version}"], capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClientUnavailable(f"`npm install` took more than {INSTALL_SECONDS} s") from error
    if done.returncode:
        raise ClientUnavailable(f"`npm install {package}@{version}`: {done.stderr.strip()[-400:]}")
    if found := _found(prefix, pattern):
        return found
    raise ClientUnavailable(f"`{package}@{version}` has no program for this machine")


def _found(prefix: Path, pattern: str) -> Path | None:
    return next(iter(sorted(prefix.glob(pattern))), None)
