"""What we changed in whose files, in `STILLROOM_HOME/integrations.json`: so that it can be undone to the byte."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from stillroom.errors import SettingsRefused
from stillroom.private_file import write_private

FILE = "integrations.json"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One file as it was before we came, and as we left it."""

    #: sha256 of what we wrote.
    after: str
    #: The copy of what was there before; None: there was no file.
    backup: str | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `init` changed and `uninit` has not undone."""

    changes: dict[str, Change] = {}
    #: The permission that we added to Claude Code's settings.
    read_rule: str | None = None


def load_manifest(home: Path) -> Manifest:
    """The manifest; an empty one if there is none, or if it can't be read: then files are edited, not restored."""
    try:
        return msgspec.json.decode((home / FILE).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return Manifest()


def save_manifest(home: Path, manifest: Manifest) -> None:
    """Write it. An empty one leaves no file. Raises `SettingsRefused`."""
    path = home / FILE
    try:
        if manifest == Manifest():
            path.unlink(missing_ok=True)
            return
        write_private(path, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    except OSError as error:
        raise SettingsRefused(f"`{path}` can't be written: {error.strerror}", hint="`uninit` needs it") from error


def digest(data: bytes) -> str:
    """How a file's content is told from another's."""
    return hashlib.sha256(data).hexdigest()


__all__ = ["Change", "Manifest", "digest", "load_manifest", "save_manifest"]
