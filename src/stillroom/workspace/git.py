"""The `git` program as a store of objects.

git never sees the memory folder: we read the files and hand it their content. So no attribute, ignore rule, filter,
hook, nested repository or `.git` that somebody puts into the folder can mean anything.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from stillroom.errors import HistoryError, way_out
from stillroom.system import Room
from stillroom.workspace.program import call, failed, started
from stillroom.workspace.tree import DEFAULTS, Entry

BRANCH = "refs/heads/main"
AUTHOR = "Stillroom <noreply@stillroom.invalid>"
#: git writes a hundred objects as files, in as many folders, before it makes a pack of them.
_FILES_OF_A_COMMIT = 256
#: Contents that a new one is compared with, on the way into a pack; ten take half as long again and save a quarter.
PACK_WINDOW = 2
_LOCKS = (f"{BRANCH}.lock", "HEAD.lock", "packed-refs.lock")

_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfilemode = true\n"
#: The highest precedence there is: attributes from a tree or a machine say nothing.
_ATTRIBUTES = "* !text !eol !ident !filter !diff !working-tree-encoding !export-subst\n"


class Content(NamedTuple):
    """A file on its way into a commit."""

    data: bytes
    executable: bool


class Draft(NamedTuple):
    """A commit to be: how it differs from the one below it; None removes a path."""

    message: str
    changes: Mapping[str, Content | None]


class Repository(msgspec.Struct, frozen=True):
    """One bare repository."""

    git_dir: Path

    def create(self) -> None:
        """Lay out an empty repository; harmless on an existing one."""
        for folder in ("objects", "refs/heads", "info"):
            (self.git_dir / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.git_dir.chmod(0o700)
        for name, text in (("config", _CONFIG), ("info/attributes", _ATTRIBUTES), ("HEAD", f"ref: {BRANCH}\n")):
            (self.git_dir / name).write_text(text, encoding="utf-8", newline="\n")

    def head(self) -> str | None:
        """The commit at the tip; None when there is none, or git can't find one."""
        answer = self._call("rev-parse", "--verify", "--quiet", f"{BRANCH}^{{commit}}")
        return answer.stdout.decode("ascii").strip() if answer.returncode == 0 else None

    def loads(self) -> bool:
        """Whether the tip is a commit whose trees can be read. Behind a link may be anybody's work: that is none."""
        return (
            self.git_dir.is_dir()
            and not self.git_dir.is_symlink()
            and self._call("ls-tree", "-r", "--name-only", "HEAD").returncode == 0
        )

    def message(self, commit: str) -> str:
        """What was said of a commit."""
        return self.run("log", "-1", "--format=%B", commit).decode("utf-8", "replace")

    def last_with(self, trailer: str) -> tuple[int, str] | None:
        """The newest commit whose message has this line: when it was made, in seconds, and its message."""
        wanted = f"--grep=^{trailer}: "
        answer = self._call("log", "-1", "--first-parent", wanted, "--format=%ct%n%B")
        at, _, message = answer.stdout.decode("utf-8", "replace").partition("\n")
        return (int(at), message) if answer.returncode == 0 and at.isdecimal() else None

    def is_whole(self) -> bool:
        """Whether everything that the tip leads to is there and undamaged. Reads all of it."""
        return self._call("fsck", "--full", "--no-dangling", "--no-progress").returncode == 0

    def unlock(self) -> None:
        """Remove the locks that a killed git left. For whoever knows that no other git is at work."""
        for name in _LOCKS:
            (self.git_dir / name).unlink(missing_ok=True)

    def remove_stale_locks(self) -> None:
        """Remove locks older than the time after which we end a git: whoever made them is dead."""
        for lock in (self.git_dir / name for name in _LOCKS):
            try:
                age_ns = self._disk_time_ns() - lock.lstat().st_mtime_ns
                if age_ns > DEFAULTS.git_timeout_seconds * 1_000_000_000:
                    lock.unlink()
            except OSError:
                continue  # there is none; or git will say what is wrong with it

    def _disk_time_ns(self) -> int:
        """Now, by the clock that stamps the files there."""
        import tempfile  # most commands need none, and it takes longer to load than git to answer

        with tempfile.TemporaryFile(dir=self.git_dir) as file:
            return os.fstat(file.fileno()).st_mtime_ns

    def check_room(self, bytes_wanted: int) -> None:
        """Raises `HistoryError` when so many bytes more have no room on the disk."""
        room = Room(self.git_dir)
        files_fit = room.free_files is None or room.free_files >= _FILES_OF_A_COMMIT
        if not files_fit or room.free_bytes < bytes_wanted:
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            reason = f"`{self.git_dir}` has no room for another version: {full.strerror}"
            raise HistoryError(reason, hint=way_out(full, self.git_dir))

    def pack_loose(self, *, at_least: int, at_most: int) -> int:
        """Make one pack of the oldest objects that are files of their own, where there are `at_least` so many; how many
        went into it. Whoever reads meanwhile finds each in one place or the other."""
        loose = self._loose_objects()
        if len(loose) < at_least:
            return 0
        # In their order versions of one file lie side by side: looking at the next few is enough.
        chosen = sorted(loose, key=lambda path: path.stat().st_mtime_ns)[:at_most]
        names = "".join(f"{path.parent.name}{path.name}\n" for path in chosen).encode("ascii")
        pack = str(self.git_dir / "objects" / "pack" / "pack")
        self.run("pack-objects", "--quiet", f"--window={PACK_WINDOW}", pack, stdin=names)
        self.run("prune-packed", "--quiet")
        return len(chosen)

    def _loose_objects(self) -> list[Path]:
        return [
            path for path in (self.git_dir / "objects").glob("[0-9a-f][0-9a-f]/*") if not path.name.startswith("tmp_")
        ]

    def entries(self, commit: str) -> dict[str, Entry]:
        """Every file of a commit or tree."""
        found: dict[str, Entry] = {}
        for record in self.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            if record:
                about, _, path = record.partition(b"\t")
                mode, _, blob = about.split(b" ")
                found[os.fsdecode(path)] = Entry(blob.decode("ascii"), mode == b"100755")
        return found

    def blobs(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Contents by object id. Raises `HistoryError` when one is missing."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        answer = self.run("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in wanted).encode("ascii"))
        contents: dict[str, bytes] = {}
        at = 0
        for blob in wanted:
            end = answer.index(b"\n", at)
            about = answer[at:end].split(b" ")
            if len(about) != 3:
                raise HistoryError(f"`{self.git_dir}` has lost the object {blob}")
            size = int(about[2])
            contents[blob] = answer[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return contents

    def lines_with(self, texts: Iterable[str], commits: Iterable[str], path: str) -> Iterator[tuple[str, str]]:
        """The lines of a file that have one of the texts, each with the commit in which it stands."""
        wanted = [word for text in texts for word in ("-e", text)]
        options = ("--fixed-strings", "--text", "--null", "--no-color", "--threads=1")
        done = self._call("grep", *options, *wanted, *commits, "--", f":(literal){path}")
        if done.returncode not in (0, 1):  # 1: there is none
            raise failed("grep", done)
        for found in done.stdout.split(b"\n")[:-1]:
            place, _, line = found.partition(b"\0")
            yield place[: place.index(b":")].decode("ascii"), os.fsdecode(line)

    def blob_paths(self) -> dict[str, str]:
        """Every content that a version has, with a path of it; folders among them."""
        listed = self.run("rev-list", "--objects", BRANCH).decode("utf-8", "surrogateescape").splitlines()
        named = (line.partition(" ") for line in listed)
        return {name: path for name, _, path in named if path}

    def visit(self, visit: Callable[[str, str, bytes], None], ids: Iterable[str] | None = None) -> None:
        """Show objects one by one: id, type and content; without `ids` all that there are, reachable or not. Holds one
        at a time. Raises `HistoryError` when one is missing or damaged."""
        import tempfile

        with tempfile.TemporaryFile() as wanted:
            wanted.writelines(f"{each}\n".encode("ascii") for each in ids or ())
            wanted.seek(0)
            every = ("--batch-all-objects", "--unordered") if ids is None else ()
            with started("cat-file", "--batch", "--buffer", *every, git_dir=self.git_dir, stdin=wanted) as git:
                assert git.stdout is not None
                while head := git.stdout.readline():
                    about = head.decode("ascii", "replace").split()
                    if len(about) != 3:
                        raise HistoryError(f"`{self.git_dir}` has lost the object {about[0]}")
                    data = git.stdout.read(int(about[2]))
                    git.stdout.read(1)
                    visit(about[0], about[1], data)
        if git.returncode:
            raise HistoryError(f"`{self.git_dir}` can't be read as a whole")

    def commit(self, changes: Mapping[str, Content | None], *, parent: str | None, message: str, now: int) -> str:
        """Put one commit on top of `parent` and move the branch to it; None removes a path."""
        return self.commit_all([Draft(message, changes)], parent=parent, now=now)

    def commit_all(self, drafts: Sequence[Draft], *, parent: str | None, now: int) -> str:
        """Put commits on top of `parent`, one on the other, and move the branch to the last: all of them or none."""
        stream: list[bytes] = []
        for number, (message, changes) in enumerate(drafts):
            text = message.encode("utf-8", "replace")
            stream.append(
                f"commit {BRANCH}\nauthor {AUTHOR} {now} +0000\ncommitter {AUTHOR} {now} +0000\n".encode("ascii")
            )
            stream.append(b"data %d\n%s\n" % (len(text), text))
            # Later ones sit on what the branch is by then; fast-import moves the ref once, at the end.
            if parent is not None and number == 0:
                stream.append(f"from {parent}\n".encode("ascii"))
            stream += _lines(changes)
        stream.append(b"done\n")
        self.run("fast-import", "--quiet", "--done", "--date-format=raw", stdin=b"".join(stream))
        head = self.head()
        if head is None:
            raise HistoryError(f"git wrote no commit to `{self.git_dir}`")
        return head

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run one git command. Raises `HistoryError` with git's own words."""
        done = self._call(*arguments, stdin=stdin)
        if done.returncode != 0:
            raise failed(arguments[0], done)
        return done.stdout

    def _call(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return call(*arguments, git_dir=self.git_dir, stdin=stdin)


def _lines(changes: Mapping[str, Content | None]) -> Iterator[bytes]:
    """A commit's files as fast-import wants them."""
    # Removals first: a folder may take the place of a file.
    ordered = sorted(changes.items())
    for path, content in ordered:
        if content is None:
            yield b"D %s\n" % _quoted(path)
    for path, content in ordered:
        if content is not None:
            mode = b"100755" if content.executable else b"100644"
            yield b"M %s inline %s\ndata %d\n" % (mode, _quoted(path), len(content.data))
            yield content.data
            yield b"\n"


def _quoted(path: str) -> bytes:
    """A path as fast-import wants it."""
    raw = os.fsencode(path)
    if raw.isascii() and raw.decode("ascii").isprintable() and b'"' not in raw and b"\\" not in raw:
        return raw
    escaped = b"".join(b"\\%03o" % byte if byte < 32 or byte in b'"\\' or byte > 126 else bytes([byte]) for byte in raw)
    return b'"%s"' % escaped
