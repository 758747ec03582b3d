"""How this machine installs a program."""

from __future__ import annotations

import shutil

_INSTALLERS = {
    "apt-get": "sudo apt-get install",
    "dnf": "sudo dnf install",
    "pacman": "sudo pacman -S",
    "zypper": "sudo zypper install",
    "apk": "sudo apk add",
    "brew": "brew install",
}


def how_to_install(package: str) -> str:
    """The command, where its package manager is known."""
    for program, words in _INSTALLERS.items():
        if shutil.which(program):
            return f"{words} {package}"
    return f"install the package `{package}`"


__all__ = ["how_to_install"]
