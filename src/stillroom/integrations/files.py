"""Changes one settings file of somebody else's: read once, shown as a diff, written whole or not at all.

A link is followed and its target written, so that a folder of dotfiles keeps its links. Mode and owner stay. A file
that changed since it was read is left alone.
"""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from stillroom.errors import SettingsRefused
from stillroom.integrations.bounds import MAX_SETTINGS_BYTES
from stillroom.system import HAS_OWNERS, is_anothers


@dataclass(frozen=True, slots=True)
class Original:
    """A file as it was read; `data` is None when there was none."""

    path: Path
    target: Path
    data: bytes | None = None
    status: os.stat_result | None = None

    @property
    def text(self) -> str:
        """Its text; a byte order mark is not part of it. Raises `SettingsRefused` when it is no UTF-8."""
        try:
            return (self.data or b"").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SettingsRefused(f"`{self.path}` is no UTF-8: {error}") from error

    def encode(self, text: str) -> bytes:
        """`text` as this file writes it. Raises `SettingsRefused` for what UTF-8 can't say, as a path may be."""
        mark = b"\xef\xbb\xbf" if (self.data or b"").startswith(b"\xef\xbb\xbf") else b""
        try:
            return mark + text.encode()
        except UnicodeEncodeError as error:
            shown = text[error.start - 40 if error.start > 40 else 0 : error.end].encode("utf-8", "backslashreplace")
            raise SettingsRefused(f"`{self.path}` can't say what is no UTF-8: `…{shown.decode()}`") from error


def read_original(path: Path) -> Original:
    """The file behind `path`. Raises `SettingsRefused` for what can't be read, or is no plain file."""
    try:
        target = Path(os.path.realpath(path, strict=False))
        status = target.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SettingsRefused(f"`{path}` is no plain file")
        if status.st_size > MAX_SETTINGS_BYTES:
            raise SettingsRefused(f"`{path}` has {status.st_size:,} bytes: no settings file is that large")
        return Original(path, target, target.read_bytes(), status)
    except FileNotFoundError:
        return Original(path, target)
    except OSError as error:
        raise SettingsRefused(f"`{path}` can't be read: {error.strerror}") from error


def unified_diff(original: Original, after: bytes | None) -> str:
    """What changes, as `diff -u` shows it; None: the file goes."""
    old = original.text.splitlines(keepends=True)
    new = (after or b"").decode("utf-8-sig").splitlines(keepends=True)
    name = str(original.path)
    there, then = (name if original.data is not None else os.devnull), (name if after is not None else os.devnull)
    lines = difflib.unified_diff(old, new, there, then)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def check_writable(original: Original) -> None:
    """Raise `SettingsRefused`, with what to do, if the file is not ours to change."""
    folder = original.target.parent
    if original.status is not None:
        if not original.status.st_mode & 0o222 or not os.access(original.target, os.W_OK):
            raise SettingsRefused(
                f"`{original.path}` is read-only",
                hint=f"`chmod u+w {original.target}` if it is yours to change; some tools generate such files",
            )
        if is_anothers(original.status):
            raise SettingsRefused(f"`{original.path}` belongs to another user")
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SettingsRefused(f"`{folder}` is read-only: nothing can be written there")


def write(original: Original, after: bytes | None) -> None:
    """Put `after` in the file's place (None: remove it). Raises `SettingsRefused` if it is not as it was read."""
    check_writable(original)
    folder = original.target.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if after is None:
            _check_unchanged(original)
            original.target.unlink()
            return
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=f".{original.target.name}.", suffix=".stillroom")
        try:
            with open(descriptor, "wb") as file:
                file.write(after)
                file.flush()
                os.fsync(file.fileno())
                _take_over(file.fileno(), original.status)
            _check_unchanged(original)
            Path(name).replace(original.target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise SettingsRefused(f"`{original.path}` can't be written: {error.strerror}") from error


def _take_over(descriptor: int, status: os.stat_result | None) -> None:
    """Mode and owner; a new file of settings is for its owner only, as `mkstemp` made it."""
    if status is None or not HAS_OWNERS:
        return
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _check_unchanged(original: Original) -> None:
    try:
        now = original.target.read_bytes()
    except FileNotFoundError:
        now = None
    if now != original.data:
        raise SettingsRefused(f"`{original.path}` was changed meanwhile: nothing was written", hint="run it again")


__all__ = ["Original", "check_writable", "read_original", "unified_diff", "write"]
