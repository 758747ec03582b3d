"""A consolidation's result that waits for a person: all its files, what was found wrong, and what it was made from.

It lies in `held/` of the review folder until it is accepted or rejected. Of a rejected one a digest of its inputs
stays, so that the same inputs are not made into the same again. There is never more than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stillroom.private_file import write_private
from stillroom.workspace.finding import Finding
from stillroom.workspace.git import Content
from stillroom.workspace.history import gather
from stillroom.workspace.layout import LINES, may_publish
from stillroom.workspace.tree import (
    DEFAULTS,
    DIFF_FILE,
    Entry,
    naming,
    opened,
    parent,
    remove_tree,
    write_new,
)

if TYPE_CHECKING:  # whoever looks whether something is held makes no copy
    from stillroom.workspace.staging import Staging

TREE, BASE = "tree", "base"
_HELD, _NEW, _GONE = "held", "held.new", "held.gone"
_ABOUT = "held.json"
_REJECTED = "rejected"
#: Digests kept; a rejected input rarely comes back after another was rejected.
_MAX_REJECTED = 50


class Version(msgspec.Struct, frozen=True):
    """An output that the result rests on."""

    thread_id: str
    source_updated_at: int  #: seconds


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the result."""

    at: int  #: seconds
    #: The commit that it was made against; None: there was none.
    baseline: str | None
    #: Of everything that the consolidator was shown.
    inputs: str
    engine: str
    selected: tuple[Version, ...]
    watermark: int
    findings: tuple[Finding, ...]
    #: Who made it, as the version that it becomes says: trailers by name. Its run is that of the consolidation.
    made_by: dict[str, str] = {}
    run: str | None = None

    @property
    def run_id(self) -> str:
        """Of the run that brings it into the folder: always the same, so that a killed one is known to have done so."""
        return self.run or f"{self.at}-{self.inputs[:8]}"


def digest(seen: Mapping[str, Entry], *, engine: str) -> str:
    """One name for everything that a consolidator is shown, and for who it is."""
    import hashlib

    rows = sorted((path, entry.blob, entry.executable) for path, entry in seen.items())
    return hashlib.sha256(_ascii([engine, rows]).encode("ascii")).hexdigest()


def changes_anything(staging: Staging) -> bool:
    """Whether the result differs from what the consolidator was shown, in what may be published."""
    _, after = gather(staging.path, staging.seen, limits=staging.limits, memory=staging.memory)
    before = {path: entry for path, entry in staging.seen.items() if may_publish(path) and path != LINES}
    return before != {path: entry for path, entry in after.files.items() if may_publish(path) and path != LINES}


def hold(review: Path, staging: Staging, held: Held) -> None:
    """Move the staging copy here. Killed meanwhile, nothing is held."""
    with naming(str(review), "written"):
        review.mkdir(mode=0o700, parents=True, exist_ok=True)
        review.chmod(0o700)
        new = review / _NEW
        remove_tree(new)
        new.mkdir(mode=0o700)
        (staging.path / DIFF_FILE).unlink(missing_ok=True)
        (new / BASE).mkdir(mode=0o700)
        put(new / BASE, staging.shown_files())
        staging.path.rename(new / TREE)
        _write(new / _ABOUT, held)
        discard(review)
        new.rename(review / _HELD)


def load(review: Path) -> Held | None:
    """What is held, if anything is. One that can't be read is none: the next consolidation takes its place."""
    try:
        written = (review / _HELD / _ABOUT).read_bytes()
    except OSError:
        return None
    import json

    try:
        return msgspec.convert(json.loads(written), type=Held)
    except ValueError:
        return None


def tree_of(review: Path) -> Path:
    """The files of the result, the inputs among them."""
    return review / _HELD / TREE


def base_of(review: Path) -> Path:
    """The same as the consolidator found them."""
    return review / _HELD / BASE


def put(folder: Path, files: Mapping[str, Content]) -> None:
    """Write files that are not there yet."""
    with opened(folder) as root:
        for path, content in files.items():
            with parent(root, path, create=True) as (descriptor, name):
                write_new(descriptor, name, content.data, executable=content.executable, durable=False)


def renew(review: Path, held: Held) -> None:
    """Keep what is now known of the result, after a person edited it."""
    with naming(str(review), "written"):
        _write(review / _HELD / _ABOUT, held)


def discard(review: Path) -> None:
    """Give the result up."""
    gone = review / _GONE
    remove_tree(gone)
    try:
        (review / _HELD).rename(gone)
    except FileNotFoundError:
        return
    remove_tree(gone)


def reject(review: Path, held: Held) -> None:
    """Give it up for good: the same inputs are not consolidated again."""
    kept = [line for line in _rejected(review) if line != held.inputs]
    with naming(str(review), "written"):
        _put(review / _REJECTED, "".join(f"{line}\n" for line in [*kept, held.inputs][-_MAX_REJECTED:]))
    discard(review)


def was_rejected(review: Path, inputs: str) -> bool:
    """Whether a person rejected what was made of these inputs."""
    return inputs in _rejected(review)


def forget(review: Path) -> None:
    """Delete everything: for whoever wants a text gone from this machine."""
    remove_tree(review)


def left_behind(review: Path) -> list[Path]:
    """What a killed process had half made or half deleted here, if none is at work."""
    parts = [review / name for name in (_NEW, _GONE) if (review / name).is_dir()]
    unreadable = (review / _HELD).is_dir() and load(review) is None
    return [*parts, review / _HELD] if unreadable else parts


def is_stale(held: Held, head: str | None) -> bool:
    """Whether the memory went on since: what is held was made for a folder that there is no more."""
    return held.baseline != head


def publishable(folder: Path) -> dict[str, bytes]:
    """The files of a folder that a consolidation writes for people and models to read."""
    contents, _ = gather(folder, {}, limits=DEFAULTS)
    return {path: content.data for path, content in contents.items() if may_publish(path) and path != LINES}


def _rejected(review: Path) -> list[str]:
    try:
        return (review / _REJECTED).read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return []


def _write(path: Path, held: Held) -> None:
    _put(path, _ascii(msgspec.to_builtins(held)))


def _ascii(value: object) -> str:
    """As JSON: names need not be UTF-8."""
    import json  # hardly ever is something held

    return json.dumps(value)


def _put(path: Path, text: str) -> None:
    write_private(path, text.encode("ascii"), durable=True)
