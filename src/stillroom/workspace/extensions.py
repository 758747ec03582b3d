"""Extensions: folders beside the memories whose notes and resources are further input (spec §1.9)."""

from __future__ import annotations

import calendar
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stillroom import folders
from stillroom.clock import DAY_SECONDS
from stillroom.errors import WorkspaceError
from stillroom.workspace.layout import EXTENSIONS
from stillroom.workspace.tree import names, opened, parent, shown, write_new

INSTRUCTIONS = f"{EXTENSIONS}/ad_hoc/instructions.md"

_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}", re.ASCII)


def seed_instructions(root: Path) -> bool:
    """Put the instructions for notes into the folder if there are none; whether it did. Edits are never touched."""
    text = Path(__file__).with_name("ad_hoc_instructions.md").read_bytes()
    with opened(root) as descriptor:
        try:
            with parent(descriptor, INSTRUCTIONS, create=True) as (folder, name):
                write_new(folder, name, text, executable=False, durable=False)
        except FileExistsError:
            return False
        except OSError as error:
            raise WorkspaceError(f"`{INSTRUCTIONS}` can't be created: {error.strerror}") from error
    return True


def stale_resources(root: Path, *, now: int, days: int) -> list[str]:
    """Dated resources of extensions that are `days` old or older: what `prune_resources` would delete."""
    with opened(root) as descriptor:
        return [shown(path) for path in _stale(descriptor, now=now, days=days)]


def prune_resources(root: Path, *, now: int, days: int) -> list[str]:
    """Delete the stale resources; their paths. What can't be deleted stays."""
    with opened(root) as descriptor:
        stale = list(_stale(descriptor, now=now, days=days))
        return [shown(path) for path in stale if _delete_file(descriptor, path)]


def _stale(descriptor: int, *, now: int, days: int) -> Iterator[str]:
    cutoff = now - days * DAY_SECONDS
    for extension in _names(descriptor, EXTENSIONS):
        folder = f"{EXTENSIONS}/{extension}"
        if "instructions.md" not in _names(descriptor, folder):
            continue
        for name in _names(descriptor, f"{folder}/resources"):
            moment = resource_timestamp(name)
            path = f"{folder}/resources/{name}"
            if moment is not None and moment <= cutoff and name.endswith(".md") and _is_file(descriptor, path):
                yield path


def resource_timestamp(name: str) -> int | None:
    """The seconds that a resource's first 19 characters say, in UTC; None when they say none."""
    if not _TIMESTAMP.fullmatch(name[:19]):
        return None
    try:
        return calendar.timegm(time.strptime(name[:19], "%Y-%m-%dT%H-%M-%S"))
    except ValueError:
        return None


def _is_file(descriptor: int, path: str) -> bool:
    try:
        with parent(descriptor, path, create=False) as (folder, name):
            return stat.S_ISREG(folders.status(folder, name).st_mode)
    except OSError:
        return False


def _delete_file(descriptor: int, path: str) -> bool:
    try:
        with parent(descriptor, path, create=False) as (folder, name):
            folders.unlink(folder, name)
    except OSError:
        return False
    return True


def _names(descriptor: int, path: str) -> list[str]:
    with _folder(descriptor, path) as folder:
        return [] if folder is None else sorted(names(folder))


@contextmanager
def _folder(descriptor: int, path: str) -> Iterator[int | None]:
    try:
        with parent(descriptor, f"{path}/x", create=False) as (folder, _):
            yield folder
    except OSError:
        yield None
