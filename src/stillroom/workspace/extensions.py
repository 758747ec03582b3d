"""Extensions: folders beside the memories whose notes and resources are further input (spec §1.9)."""

from __future__ import annotations

import calendar
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from stillroom.errors import WorkspaceError
from stillroom.workspace.layout import EXTENSIONS
from stillroom.workspace.tree import names, opened, parent, shown, write_new

INSTRUCTIONS = f"{EXTENSIONS}/ad_hoc/instructions.md"

_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}", re.ASCII)
_DAY_SECONDS = 86_400


def seed_instructions(root: Path) -> bool:
    """Put the instructions for notes into the folder if there are none; whether it did. Edits are never touched."""
    text = resources.files("stillroom.workspace").joinpath("ad_hoc_instructions.md").read_bytes()
    with opened(root) as descriptor:
        try:
            with parent(descriptor, INSTRUCTIONS, create=True) as (folder, name):
                write_new(folder, name, text, executable=False, durable=False)
        except FileExistsError:
            return False
        except OSError as error:
            raise WorkspaceError(f"`{INSTRUCTIONS}` can't be created: {error.strerror}") from error
    return True


def prune_resources(root: Path, *, now: int, days: int) -> list[str]:
    """Delete dated resources of extensions that are `days` old or older; their paths. What can't be deleted stays."""
    cutoff = now - days * _DAY_SECONDS
    pruned: list[str] = []
    with opened(root) as descriptor:
        for extension in _names(descriptor, EXTENSIONS):
            folder = f"{EXTENSIONS}/{extension}"
            if "instructions.md" not in _names(descriptor, folder):
                continue
            for name in _names(descriptor, f"{folder}/resources"):
                moment = resource_timestamp(name)
                if moment is None or moment > cutoff or not name.endswith(".md"):
                    continue
                path = f"{folder}/resources/{name}"
                if _delete_file(descriptor, path):
                    pruned.append(shown(path))
    return pruned


def resource_timestamp(name: str) -> int | None:
    """The seconds that a resource's first 19 characters say, in UTC; None when they say none."""
    if not _TIMESTAMP.fullmatch(name[:19]):
        return None
    try:
        return calendar.timegm(time.strptime(name[:19], "%Y-%m-%dT%H-%M-%S"))
    except ValueError:
        return None


def _delete_file(descriptor: int, path: str) -> bool:
    try:
        with parent(descriptor, path, create=False) as (folder, name):
            if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                return False
            os.unlink(name, dir_fd=folder)
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
