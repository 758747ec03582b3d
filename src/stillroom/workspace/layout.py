"""Makes the memory folder ready, or says why it is not ours to write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from stillroom import folders
from stillroom.config import StageTwo
from stillroom.errors import FolderRefused
from stillroom.workspace.artifacts import RAW_MEMORIES, SUMMARIES
from stillroom.workspace.scanning import links_below, unseen
from stillroom.workspace.tree import DEFAULTS, DIFF_FILE, names, naming, opened, shown

HANDBOOK = "MEMORY.md"
SUMMARY = "memory_summary.md"
SKILLS = "skills"
EXTENSIONS = "extensions"
#: Hashes of the lines that were generated, for the next consolidation alone: no person or model is shown it.
LINES = ".stillroom-lines"

#: Nobody else uses these names: one of them makes it a memory folder, whatever else a person keeps in it.
_OURS = frozenset({SUMMARY, RAW_MEMORIES, SUMMARIES, LINES})
#: Ours too, but many others': no proof of anything.
_COMMON = frozenset({HANDBOOK, SKILLS, EXTENSIONS, DIFF_FILE})
_STATE = frozenset({"state.sqlite3", "history.git"})
#: What Codex keeps in its home beside its memory folder.
_SESSIONS = frozenset({"sessions", "archived_sessions"})


def may_publish(path: str) -> bool:
    """Whether the agent's version of a path goes into the folder. All else is written by code, or a person's."""
    return path in (HANDBOOK, SUMMARY, LINES) or path.startswith(f"{SKILLS}/")


class RemovedLink(msgspec.Struct, frozen=True):
    """A link that was in the folder, and where it led."""

    path: str
    target: str


class LayoutReport(msgspec.Struct, frozen=True):
    """What preparing the folder did."""

    created: bool = False
    removed_links: tuple[RemovedLink, ...] = ()


def prepare_folder(root: Path, *, limits: StageTwo = DEFAULTS) -> LayoutReport:
    """Create the folder with `rollout_summaries/` and take every link out of it, following none.

    Raises `FolderRefused`, having changed nothing, when it is a link, no folder, or somebody else's.
    """
    created = _create(root)
    with opened(root) as descriptor:
        if not created:
            _check_ours(root, descriptor, limits)
        if not os.access(root, os.W_OK | os.X_OK):
            raise FolderRefused(f"`{root}` can't be written", hint=f"chmod u+rwx '{root}'")
        removed = tuple(_remove_links(descriptor))
        with naming(SUMMARIES, "created"):
            _make_folder(root, descriptor)
    return LayoutReport(created, removed)


def has_artifacts(root: Path) -> bool:
    """Whether both files that readers need are there: `MEMORY.md`, and a summary whose first line is `v1`."""
    handbook, summary = root / HANDBOOK, root / SUMMARY
    if handbook.is_symlink() or not handbook.is_file() or summary.is_symlink() or not summary.is_file():
        return False
    with summary.open("rb") as file:
        return file.readline(16).rstrip(b"\n") == b"v1"


def _create(root: Path) -> bool:
    if root.is_symlink():
        raise FolderRefused(
            f"the memory folder `{root}` is a link to `{root.readlink()}`",
            hint="set `memories.root` to the folder itself",
        )
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700)
    except FileExistsError as error:
        if root.is_dir():
            return False
        raise FolderRefused(f"`{root}` is not a folder", hint="move the file away, or set `memories.root`") from error
    except OSError as error:
        raise FolderRefused(f"`{root}` can't be created: {error.strerror}") from error
    return True


def _check_ours(root: Path, descriptor: int, limits: StageTwo) -> None:
    present = names(descriptor)
    hint = "set `memories.root` to a folder of its own"
    if Path.home().resolve().is_relative_to(root.resolve()):
        raise FolderRefused(f"`{root}` holds the home directory", hint=hint)
    if state := sorted(present & _STATE):
        raise FolderRefused(f"`{root}` holds `{state[0]}`: it is Stillroom's home, not a memory folder", hint=hint)
    if sessions := sorted(present & _SESSIONS):
        raise FolderRefused(
            f"`{root}` holds `{sessions[0]}`: it is an agent's home, not a memory folder",
            hint=f"set `memories.root` to `{root / 'memories'}`",
        )
    if not present & _OURS:
        if ".git" in present:
            raise FolderRefused(f"`{root}` is a git repository without memories", hint=hint)
        unrelated = sorted(name for name in present - _COMMON if not unseen(name))
        if len(unrelated) > limits.max_unrelated_entries:
            some = ", ".join(f"`{shown(name)}`" for name in unrelated[:3])
            raise FolderRefused(f"`{root}` holds {len(unrelated)} entries and no memories: {some}, …", hint=hint)


def _remove_links(descriptor: int) -> list[RemovedLink]:
    removed: list[RemovedLink] = []
    for folder, name, path in links_below(descriptor):
        with naming(path, "removed"):
            target = folders.target(folder, name)
            folders.unlink(folder, name)
        removed.append(RemovedLink(shown(path), shown(target)))
    return removed


def _make_folder(root: Path, descriptor: int) -> None:
    try:
        folders.make_folder(descriptor, SUMMARIES)
    except FileExistsError as error:
        if not stat.S_ISDIR(folders.status(descriptor, SUMMARIES).st_mode):
            raise FolderRefused(f"`{root / SUMMARIES}` is not a folder", hint="move the file away") from error
