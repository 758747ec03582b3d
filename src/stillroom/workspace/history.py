"""The history of the memory folder: one commit a consolidation, in a git directory outside of the folder.

The tip is the baseline: what was last consolidated. Looking (`changes`, `diff`) writes nothing into it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from stillroom.config import StageTwo
from stillroom.errors import HistoryError
from stillroom.workspace.git import EMPTY_TREE, Content, Repository
from stillroom.workspace.tree import DEFAULTS, Entry, Scan, scan

ChangeStatus = Literal["A", "M", "D"]


class Change(NamedTuple):
    """One path that differs from the baseline."""

    status: ChangeStatus
    path: str


@dataclass(frozen=True, slots=True)
class EnsureReport:
    """What it took to have a usable baseline."""

    #: The folder's content became the baseline, unseen by any agent.
    adopted: bool = False
    #: Where an unusable history was put aside.
    moved_aside: Path | None = None


def compare(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> list[Change]:
    """Differences of content or executable bit, by path. No renames."""
    changes = [Change("D", path) for path in old.keys() - new.keys()]
    for path, entry in new.items():
        known = old.get(path)
        if known is None:
            changes.append(Change("A", path))
        elif known != entry:
            changes.append(Change("M", path))
    return sorted(changes, key=lambda change: change.path)


class History:
    """The baseline and what came before it."""

    def __init__(self, git_dir: Path, *, limits: StageTwo = DEFAULTS) -> None:
        self.repository = Repository(git_dir)
        self._limits = limits

    @property
    def git_dir(self) -> Path:
        return self.repository.git_dir

    def ensure(self, folder: Path, *, now: int) -> EnsureReport:
        """Make sure that there is a baseline.

        Without a usable one the folder as it is becomes it, and the report says so.
        """
        if self.repository.loads():
            return EnsureReport()
        aside = self._move_aside(now)
        self.repository.create()
        present = scan(folder, limits=self._limits)
        self.commit(folder, "Take the folder as it is", now=now)
        return EnsureReport(adopted=bool(present.files), moved_aside=aside)

    def head(self) -> str | None:
        """The baseline commit."""
        return self.repository.head()

    def baseline(self) -> dict[str, Entry]:
        """The files of the baseline."""
        return self.repository.entries("HEAD")

    def changes(self, folder: Path) -> list[Change]:
        """How the folder differs from the baseline."""
        return compare(self.baseline(), scan(folder, limits=self._limits).files)

    def diff(self, folder: Path, *, max_bytes: int) -> str:
        """The unified diff from the baseline to the folder, cut to `max_bytes` as the format wants it."""
        with tempfile.TemporaryDirectory(prefix="stillroom-diff-") as scratch:
            draft = self.draft(Path(scratch) / "git")
            return bounded(draft.diff(draft.record(folder).commit), max_bytes=max_bytes)

    def commit(self, folder: Path, message: str, *, now: int) -> str | None:
        """Make the folder the baseline; None when it already is."""
        head = self.head()
        changes, _ = _contents(folder, {} if head is None else self.baseline(), self._limits)
        if head is not None and not changes:
            return None
        return self.repository.commit(changes, parent=head, message=message, now=now)

    def draft(self, git_dir: Path) -> Draft:
        """A scratch repository on top of this one: what is recorded there never reaches this one."""
        return Draft(Repository(git_dir, borrow=self.git_dir), self.head(), self._limits)

    def _move_aside(self, now: int) -> Path | None:
        if not self.git_dir.is_symlink() and not self.git_dir.exists():
            return None
        for attempt in range(1000):
            aside = self.git_dir.with_name(f"{self.git_dir.name}.broken-{now}" + (f"-{attempt}" if attempt else ""))
            if not aside.exists() and not aside.is_symlink():
                self.git_dir.rename(aside)
                return aside
        raise HistoryError(f"`{self.git_dir}` is unusable and can't be moved aside")


class Recorded(NamedTuple):
    """A folder as it was at one moment."""

    commit: str
    scan: Scan


@dataclass(frozen=True, slots=True)
class Draft:
    """Commits that are not history yet."""

    repository: Repository
    parent: str | None
    limits: StageTwo

    def record(self, folder: Path) -> Recorded:
        """Keep what the folder holds now."""
        self.repository.create()
        known = {} if self.parent is None else self.repository.entries(self.parent)
        changes, present = _contents(folder, known, self.limits)
        commit = self.repository.commit(changes, parent=self.parent, message="draft", now=0)
        return Recorded(commit, present)

    def diff(self, commit: str) -> bytes:
        """From the baseline to a recorded folder, in the form of the diff file."""
        return plain(self.repository.patch(self.parent or EMPTY_TREE, commit))


_HEADER = re.compile(
    rb"^(diff --git [^\n]*\n)((?:(?:old mode|new mode|new file mode|deleted file mode) [^\n]*\n)*)"
    rb"(?:index [^\n]*\n)?(?:(--- [^\n]*?)\t?\n(\+\+\+ [^\n]*?)\t?\n)?",
    re.MULTILINE,
)
_HUNK = re.compile(rb"^(@@ -[0-9,]+ \+[0-9,]+ @@)[^\n]*$", re.MULTILINE)


def plain(patch: bytes) -> bytes:
    """Drop what git adds to a unified diff: index lines, hunk titles, tabs after names with blanks.

    Lines of content begin with a blank, `+`, `-` or a backslash, so they can't be mistaken for a header.
    """

    def header(match: re.Match[bytes]) -> bytes:
        names = b"%s\n%s\n" % (match[3], match[4]) if match[3] else b""
        return match[1] + match[2] + names

    return _HUNK.sub(rb"\1", _HEADER.sub(header, patch))


def bounded(diff: bytes, *, max_bytes: int) -> str:
    """Lossy UTF-8, cut at a character boundary; what is cut is said."""
    text = (
        diff[: max_bytes + 4].decode("utf-8", "replace") if len(diff) > max_bytes else diff.decode("utf-8", "replace")
    )
    raw = text.encode("utf-8")
    if len(raw) <= max_bytes and len(diff) <= max_bytes:
        return text
    return raw[:max_bytes].decode("utf-8", "ignore") + f"\n\n[workspace diff truncated at {max_bytes} bytes]"


def _contents(folder: Path, known: Mapping[str, Entry], limits: StageTwo) -> tuple[dict[str, Content | None], Scan]:
    """What has to be written so that `known` becomes the folder."""
    changes: dict[str, Content | None] = {}

    def visit(path: str, data: bytes, entry: Entry) -> None:
        if known.get(path) != entry:
            changes[path] = Content(data, entry.executable)

    present = scan(folder, limits=limits, visit=visit)
    changes.update(dict.fromkeys(known.keys() - present.files.keys()))
    return changes, present
