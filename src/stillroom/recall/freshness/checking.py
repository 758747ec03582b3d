"""Asks one repository what became of the facts that memory has about it.

Broken is said only of what was there once: at a commit of the time in which it was learnt, or by the commit that
deleted it. What git never saw (generated, ignored, of a library) is unknown, and so is everything that git can't say in
time.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from stillroom.recall.freshness.anchors import Anchor
from stillroom.recall.freshness.stored import Fact, State
from stillroom.recall.projects.questions import ask_git, does_git_find

#: What may hold what the current branch lacks.
_OTHER_BRANCHES = ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master")
#: Commits that deleted something, looked at for the ones that are asked about.
_MOST_DELETIONS = 200
#: A file that was renamed more often than this since is called broken.
_MOST_RENAMES = 4
#: Times at which sessions ran; more add nothing.
_MOST_MOMENTS = 3
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
#: Rules from elsewhere: nobody can tell what targets there are.
_INCLUDES = ("include ", "-include ", "sinclude ")
#: A larger file of commands is none.
_MOST_FILE_BYTES = 512 * 1024


class _NoAnswer(Exception):
    """git could not say, or not in time: nothing follows from it."""


class Moment(msgspec.Struct):
    """When something was learnt about a repository, and at which commit, if the session noted it."""

    at: int  #: seconds
    commit: str | None = None


class Checker(msgspec.Struct, dict=True):
    """One repository, asked until `until` on the monotonic clock."""

    place: str
    folder: str
    git_dir: str
    moments: Sequence[Moment]
    until: float
    timeout_seconds: float

    def check(self, wanted: Iterable[Anchor]) -> tuple[list[Fact], list[Anchor]]:
        """What became of each, and those for which there was no time."""
        facts: list[Fact] = []
        left: list[Anchor] = []
        wanted = list(wanted)
        if not self._has_time() or self._head is None:
            return [], wanted
        together = [anchor for anchor in wanted if anchor.kind in ("path", "commit")]
        for some in (together, *([anchor] for anchor in wanted if anchor.kind in ("symbol", "command"))):
            try:
                facts += self._facts(some)
            except _NoAnswer:
                if self._has_time():
                    facts += [_fact(anchor, "unknown") for anchor in some]
                else:
                    left += some
        return facts, left

    def _facts(self, wanted: Sequence[Anchor]) -> list[Fact]:
        facts = self._paths([anchor for anchor in wanted if anchor.kind == "path"])
        facts += self._commits([anchor for anchor in wanted if anchor.kind == "commit"])
        facts += [_fact(anchor, self._symbol(anchor.text)) for anchor in wanted if anchor.kind == "symbol"]
        return facts + [_fact(anchor, self._command(anchor.text)) for anchor in wanted if anchor.kind == "command"]

    # Paths

    def _paths(self, wanted: Sequence[Anchor]) -> list[Fact]:
        facts: list[Fact] = []
        inside = {anchor: relative for anchor in wanted if (relative := self._relative(anchor.text)) is not None}
        facts += [_fact(anchor, "unknown") for anchor in wanted if anchor not in inside]
        names = {anchor: path for anchor, path in inside.items() if "/" not in path}
        there = self._exist([f"HEAD:{path}" for path in inside.values()])
        missing: dict[Anchor, str] = {}
        for anchor, path in inside.items():
            if f"HEAD:{path}" in there or os.path.lexists(f"{self.folder}/{path}"):
                facts.append(_fact(anchor, "fresh"))
            else:
                missing[anchor] = path
        if not missing:
            return facts
        elsewhere = self._exist([f"{branch}:{path}" for branch in _OTHER_BRANCHES for path in missing.values()])
        by_name = self._by_name({path.rpartition("/")[2] for path in missing.values()})
        deleted = self._deletions(missing.values())
        known = self._exist([f"{commit}:{path}" for commit in self._baselines for path in missing.values()])
        for anchor, path in missing.items():
            same_name = by_name.get(path.rpartition("/")[2], [])
            was_there = path in deleted or any(f"{commit}:{path}" in known for commit in self._baselines)
            if any(f"{branch}:{path}" in elsewhere for branch in _OTHER_BRANCHES) or (anchor in names and same_name):
                facts.append(_fact(anchor, "fresh"))  # a name without a folder may be anywhere
            elif not was_there:
                facts.append(_fact(anchor, "unknown"))
            elif renamed := self._renamed(path, deleted):
                facts.append(_fact(anchor, "moved", now=renamed))
            elif len(same_name) == 1:
                facts.append(_fact(anchor, "moved", now=same_name[0]))
            else:
                facts.append(_fact(anchor, "broken"))
        return facts

    def _relative(self, path: str) -> str | None:
        """Below the top of the work tree; None for what is elsewhere."""
        if path.startswith("/"):
            if not path.startswith(f"{self.folder}/"):
                return None
            path = path[len(self.folder) + 1 :]
        return path if path.isprintable() and not set(path) & set("\\*?[:") else None

    def _exist(self, names: Sequence[str]) -> set[str]:
        """Which of these objects there are."""
        if not names:
            return set()
        stdin = "".join(f"{name}\n" for name in names).encode("utf-8", "replace")
        told = self._ask("cat-file", "--batch-check=%(objecttype)", stdin=stdin)
        lines = told.decode("utf-8", "replace").splitlines()
        if len(lines) != len(names):
            raise _NoAnswer
        return {name for name, line in zip(names, lines, strict=True) if line in ("blob", "tree", "commit")}

    def _by_name(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Files of these names, wherever they are."""
        told = self._ask("ls-files", "-z", "--cached", "--", *(f":(top,glob)**/{name}" for name in sorted(names)))
        found: dict[str, list[str]] = {}
        for path in told.decode("utf-8", "replace").split("\0"):
            if path:
                found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    def _deletions(self, paths: Iterable[str]) -> dict[str, str]:
        """The last commit that took each of these paths away; a rename takes it away too."""
        patterns = [f":(top,glob)**/{path}" if "/" not in path else f":(top,literal){path}" for path in sorted(paths)]
        options = (
            "--no-renames",
            "--diff-filter=D",
            "--name-only",
            "--no-ext-diff",
            "--no-textconv",
            "--format=%x01%H",
        )
        told = self._ask("log", f"--max-count={_MOST_DELETIONS}", "-z", *options, "HEAD", "--", *patterns)
        found: dict[str, str] = {}
        for part in told.decode("utf-8", "replace").split("\x01")[1:]:
            commit, *names = (name.strip("\n") for name in part.split("\0"))
            for name in names:
                if name:
                    found.setdefault(name, commit)
                    found.setdefault(name.rpartition("/")[2], commit)
        return found

    def _renamed(self, path: str, deleted: dict[str, str]) -> str | None:
        """Where it is now, as far as git follows it."""
        for _ in range(_MOST_RENAMES):
            commit = deleted.get(path)
            if commit is None:
                return None
            options = ("-r", "-M", "-z", "--no-commit-id", "--name-status", "--diff-filter=R", "--no-ext-diff")
            told = self._ask("diff-tree", *options, commit)
            steps = told.decode("utf-8", "replace").split("\0")
            pairs = dict(zip(steps[1::3], steps[2::3], strict=False))
            path = next((new for old, new in pairs.items() if old == path or old.endswith(f"/{path}")), "")
            if not path:
                return None
            if self._exist([f"HEAD:{path}"]):
                return path
            deleted = self._deletions([path])
        return None

    # Commits, symbols, commands

    def _commits(self, wanted: Sequence[Anchor]) -> list[Fact]:
        """A commit that is not there may be another repository's: it is broken only if a session here ended at it."""
        there = self._exist([anchor.text for anchor in wanted])
        ended_at = [moment.commit for moment in self.moments if moment.commit]
        facts = []
        for anchor in wanted:
            was_here = any(commit.startswith(anchor.text) for commit in ended_at)
            facts.append(_fact(anchor, "fresh" if anchor.text in there else "broken" if was_here else "unknown"))
        return facts

    def _symbol(self, name: str) -> State:
        if self._grep(name, "HEAD"):
            return "fresh"
        if not any(self._grep(name, commit) for commit in self._baselines):
            return "unknown"
        there = self._exist(_OTHER_BRANCHES)
        return "fresh" if any(self._grep(name, branch) for branch in there) else "broken"

    def _grep(self, name: str, commit: str) -> bool:
        """Whether a text of that commit has the word."""
        if not self._has_time():
            raise _NoAnswer
        words = ("grep", "-q", "-I", "-w", "-F", "--no-textconv", "-e", name, commit)
        found = does_git_find(self.git_dir, *words, timeout_seconds=self.timeout_seconds)
        if found is None:
            raise _NoAnswer
        return found

    def _command(self, command: str) -> State:
        words = command.split()
        name = self._makefile if words[0] == "make" else "package.json"
        here = self._show(f"HEAD:{name}") if name else None
        if here is None:
            return "unknown"
        there_now = _can_run(words, here)
        if there_now is not False:
            return "fresh" if there_now else "unknown"
        then = (self._show(f"{commit}:{name}") for commit in self._baselines)
        return "broken" if any(text is not None and _can_run(words, text) for text in then) else "unknown"

    @cached_property
    def _makefile(self) -> str | None:
        there = self._exist([f"HEAD:{name}" for name in _MAKEFILES])
        return next((name for name in _MAKEFILES if f"HEAD:{name}" in there), None)

    def _show(self, name: str) -> str | None:
        """A file of a version; None where it has none, or one that is far too large."""
        if not self._exist([name]) or int(self._ask("cat-file", "-s", name)) > _MOST_FILE_BYTES:
            return None
        return self._ask("cat-file", "blob", name).decode("utf-8", "replace")

    # Git

    @cached_property
    def _head(self) -> str | None:
        words = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        told = ask_git(self.git_dir, *words, timeout_seconds=self.timeout_seconds)
        return None if told is None else told.decode("ascii", "replace").strip()

    @cached_property
    def _baselines(self) -> list[str]:
        """Commits of the time in which something was learnt here: where sessions ended, else what was newest then."""
        noted = list(dict.fromkeys(moment.commit for moment in self.moments if moment.commit))
        there = self._exist([commit for commit in noted if re.fullmatch(r"[0-9a-f]{7,64}", commit)])
        found = [commit for commit in noted if commit in there]
        times = sorted({moment.at for moment in self.moments})
        for at in dict.fromkeys([*times[:1], *times[-1:]]):
            told = self._ask("rev-list", "--max-count=1", f"--before={at}", "HEAD")
            if (commit := told.decode("ascii", "replace").strip()) and commit not in found:
                found.append(commit)
        return [commit for commit in found if commit != self._head][-_MOST_MOMENTS:]

    def _ask(self, *words: str, stdin: bytes = b"") -> bytes:
        told = None
        if self._has_time():
            told = ask_git(self.git_dir, *words, timeout_seconds=self.timeout_seconds, stdin=stdin)
        if told is None:
            raise _NoAnswer
        return told

    def _has_time(self) -> bool:
        return time.monotonic() < self.until


def _can_run(words: Sequence[str], text: str) -> bool | None:
    """Whether a Makefile has the target, or a `package.json` the script; None when the text doesn't tell."""
    if words[0] != "make":
        script = words[1] if len(words) == 2 else words[2]
        # Where the name stands elsewhere in the file, it only counts as there.
        return re.search(rf'"{re.escape(script)}"\s{{0,9}}:', text) is not None
    is_open = False
    for line in text.splitlines():
        head, colon, rest = line.partition(":")
        is_open = is_open or line.startswith(_INCLUDES)
        if colon and not rest.startswith("=") and not head.startswith(("\t", "#")) and "=" not in head:
            if words[1] in head.split():
                return True
            is_open = is_open or "%" in head or "$" in head
    return None if is_open else False


def _fact(anchor: Anchor, state: State, *, now: str | None = None) -> Fact:
    return Fact(kind=anchor.kind, text=anchor.text, state=state, now=now)
