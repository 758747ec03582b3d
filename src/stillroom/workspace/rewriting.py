"""Changes what every version of the history says, and leaves no object behind that says it still.

The versions are written anew on the same branch, from the first on; those before the first change come out as they
were. Then everything that no version leads to is deleted. Killed at any point, doing it again comes to the same end.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping

import msgspec

from stillroom.workspace.git import AUTHOR, BRANCH, PACK_WINDOW, Repository
from stillroom.workspace.journal import Checkpoint
from stillroom.workspace.tree import blob_id

Change = Callable[[bytes], bytes | None]
"""A file's new content, or the same; None: the file was never there."""


class Rewritten(msgspec.Struct, frozen=True):
    """What became of a history."""

    #: Contents that are different now.
    contents: int = 0
    #: Versions by their old names, where they have new ones; None: nothing of it was left.
    commits: Mapping[str, str | None] = {}


def rewrite(
    repository: Repository,
    change: Change,
    *,
    is_gone: Callable[[str], bool],
    message: str,
    now: int,
    checkpoint: Checkpoint,
) -> Rewritten:
    """Put every content through `change`, leave out every path that `is_gone`, and say so in a last version.

    Without anything to change no version is written, but what no version leads to goes all the same.
    """
    new: dict[str, bytes | None] = {}

    def visit(name: str, kind: str, data: bytes) -> None:
        if kind == "blob" and (changed := change(data)) != data:
            new[name] = changed

    paths = repository.blob_paths()
    repository.visit(visit, ids=paths)
    commits: Mapping[str, str | None] = {}
    if new or any(map(is_gone, paths.values())):
        before = repository.run("rev-list", "--reverse", BRANCH).decode("ascii").split()
        stream = _Stream(new, is_gone)
        exported = repository.run("fast-export", "--no-data", "--reencode=no", BRANCH)
        written = b"".join(stream.rewritten(exported, message=message, now=now))
        checkpoint("history read")
        repository.run("fast-import", "--quiet", "--force", "--done", "--date-format=raw", stdin=written)
        checkpoint("history written")
        after = repository.run("rev-list", "--reverse", BRANCH).decode("ascii").split()
        commits = dict(zip(before, (None if n is None else after[n] for n in stream.places), strict=True))
    discard_unreachable(repository, checkpoint=checkpoint)
    return Rewritten(len(new), commits)


def discard_unreachable(repository: Repository, *, checkpoint: Checkpoint) -> None:
    """Delete every object that the tip does not lead to, and what killed gits left."""
    repository.unlock()
    git_dir = repository.git_dir
    for pack in (git_dir / "objects" / "pack").glob("*.keep"):
        pack.unlink()
    repository.run("repack", "-a", "-d", "-q", "-n", f"--window={PACK_WINDOW}", "--no-write-bitmap-index")
    checkpoint("history packed")
    repository.run("prune", "--expire=now")
    for left in [*git_dir.glob("fast_import_crash_*"), *git_dir.glob("objects/pack/tmp_*"), git_dir / "logs"]:
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    checkpoint("history pruned")


class _Stream:
    """What `fast-export` wrote, on its way to `fast-import`."""

    def __init__(self, new: Mapping[str, bytes | None], is_gone: Callable[[str], bool]) -> None:
        self._new = new
        self._is_gone = is_gone
        #: Of each version that there was: the place of the one that took its place; None: there is none.
        self.places: list[int | None] = []
        #: The files of the version at hand, as the new history has them.
        self._present: dict[bytes, bytes] = {}

    def rewritten(self, exported: bytes, *, message: str, now: int) -> Iterator[bytes]:
        yield f"reset {BRANCH}\n".encode("ascii")
        last: int | None = None
        written = 0
        for head, text, changes in _commits(exported):
            kept = list(self._kept(changes))
            if kept or (not changes and text is not None):
                yield from _commit(head, text, kept, mark=written + 1, parent=last)
                last = written = written + 1
            self.places.append(None if last is None else last - 1)
        said = message.encode("utf-8", "replace")
        who = f"{AUTHOR} {now} +0000".encode("ascii")
        yield from _commit([b"author " + who, b"committer " + who], said, [], mark=written + 1, parent=last)
        yield b"done\n"

    def _kept(self, changes: list[bytes]) -> Iterator[bytes]:
        for line in changes:
            kind, _, rest = line.partition(b" ")
            if kind == b"D":
                if self._present.pop(rest, None) is not None:
                    yield line + b"\n"
                continue
            mode, blob, path = rest.split(b" ", 2)
            content = self._new.get(blob.decode("ascii"), blob)
            if content is None or self._is_gone(_unquoted(path)):
                if self._present.pop(path, None) is not None:
                    yield b"D %s\n" % path
                continue
            entry = mode + b" " + (blob if content is blob else blob_id(content).encode("ascii"))
            if self._present.get(path) == entry:
                continue
            self._present[path] = entry
            if content is blob:
                yield line + b"\n"
            else:
                yield b"M %s inline %s\ndata %d\n%s\n" % (mode, path, len(content), content)


def _unquoted(path: bytes) -> str:
    """A path as git writes it: in quotes when a character could end the line or the quotes."""
    if path.startswith(b'"'):
        path = _ESCAPED.sub(lambda match: _escaped(match[1]), path[1:-1])
    return os.fsdecode(path)


def _escaped(said: bytes) -> bytes:
    return bytes([int(said, 8)]) if said.isdigit() else _LETTERS.get(said, said)


_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def _commit(
    head: list[bytes], text: bytes | None, changes: list[bytes], *, mark: int, parent: int | None
) -> Iterator[bytes]:
    yield f"commit {BRANCH}\nmark :{mark}\n".encode("ascii")
    yield from (line + b"\n" for line in head)
    yield b"data %d\n%s\n" % (len(text or b""), text or b"")
    if parent is not None:
        yield b"from :%d\n" % parent
    yield from changes
    yield b"\n"


def _commits(exported: bytes) -> Iterator[tuple[list[bytes], bytes | None, list[bytes]]]:
    """Author and committer, message, and changes of each version, oldest first."""
    at = 0
    head: list[bytes] | None = None
    text: bytes | None = None
    changes: list[bytes] = []
    while at < len(exported):
        end = exported.index(b"\n", at)
        line = exported[at:end]
        at = end + 1
        if line.startswith(b"commit "):
            if head is not None:
                yield head, text, changes
            head, text, changes = [], None, []
        elif head is None:
            continue
        elif line.startswith(b"data ") and text is None:
            size = int(line[5:])
            text = exported[at : at + size]
            at += size
        elif line.startswith((b"author ", b"committer ")):
            head.append(line)
        elif line.startswith((b"M ", b"D ")):
            changes.append(line)
    if head is not None:
        yield head, text, changes
