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
from dataclasses import dataclass
from functools import cached_property

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
#: Rules that `make` finds elsewhere, or makes up: nobody can tell what targets there are.
_OPEN_MAKEFILE = re.compile(r"^-?s?include\b|^[^\t#=\n]*[%$][^=\n]*:", re.MULTILINE)


@dataclass(slots=True)
class Moment:
    """When something was learnt about a repository, and at which commit, if the session noted it."""

    at: int  #: seconds
    commit: str | None = None


@dataclass
class Checker:
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
        facts += self._paths([anchor for anchor in wanted if anchor.kind == "path"])
        facts += self._commits([anchor for anchor in wanted if anchor.kind == "commit"])
        for anchor in wanted:
            if anchor.kind in ("symbol", "command"):
                if not self._has_time():
                    left.append(anchor)
                    continue
                state = self._symbol(anchor.text) if anchor.kind == "symbol" else self._command(anchor.text)
                facts.append(_fact(anchor, state))
        return facts, left

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
        deleted = self._deletions(missing.values()) if by_name is not None else {}
        known = self._exist([f"{commit}:{path}" for commit in self._baselines for path in missing.values()])
        for anchor, path in missing.items():
            same_name = (by_name or {}).get(path.rpartition("/")[2], [])
            was_there = path in deleted or any(f"{commit}:{path}" in known for commit in self._baselines)
            if any(f"{branch}:{path}" in elsewhere for branch in _OTHER_BRANCHES) or (anchor in names and same_name):
                facts.append(_fact(anchor, "fresh"))  # a name without a folder may be anywhere
            elif by_name is None or not was_there:
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
        lines = (told or b"").decode("utf-8", "replace").splitlines()
        if len(lines) != len(names):
            return set()
        return {name for name, line in zip(names, lines, strict=True) if line in ("blob", "tree", "commit")}

    def _by_name(self, names: Iterable[str]) -> dict[str, list[str]] | None:
        """Files of these names, wherever they are; None when git can't say."""
        told = self._ask("ls-files", "-z", "--cached", "--", *(f":(top,glob)**/{name}" for name in sorted(names)))
        if told is None:
            return None
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
        for part in (told or b"").decode("utf-8", "replace").split("\x01")[1:]:
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
            steps = (told or b"").decode("utf-8", "replace").split("\0")
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
        here = self._grep(name, "HEAD")
        if here is None:
            return "unknown"
        if here:
            return "fresh"
        known = [self._grep(name, commit) for commit in self._baselines]
        if not any(known):
            return "unknown"
        others = [self._grep(name, branch) for branch in _OTHER_BRANCHES if self._exist([branch])]
        return "fresh" if any(others) else "broken"

    def _grep(self, name: str, commit: str) -> bool | None:
        """Whether a text of that commit has the word; None when git can't say in time."""
        if not self._has_time():
            return None
        words = ("grep", "-q", "-I", "-w", "-F", "--no-textconv", "-e", name, commit)
        return does_git_find(self.git_dir, *words, timeout_seconds=self.timeout_seconds)

    def _command(self, command: str) -> State:
        words = command.split()
        file, pattern = self._runner(words)
        if file is None:
            return "unknown"
        if pattern.search(file):
            return "fresh"
        name = "package.json" if words[0] != "make" else self._makefile or ""
        for commit in self._baselines:
            then = self._ask("cat-file", "blob", f"{commit}:{name}")
            if then is not None and pattern.search(then.decode("utf-8", "replace")):
                return "broken"
        return "unknown"

    def _runner(self, words: Sequence[str]) -> tuple[str | None, re.Pattern[str]]:
        """The file that says what can be run, and what the name looks like in it."""
        target = re.escape(words[-1] if words[0] == "make" or len(words) == 2 else words[2])
        if words[0] != "make":
            # A name in `scripts`; where it stands elsewhere in the file, it only counts as fresh.
            return self._show("package.json"), re.compile(rf'"{target}"\s*:')
        pattern = re.compile(rf"^(?:[^\t#=:\n]*\s)?{target}(?:\s[^=:\n]*)?:(?!=)", re.MULTILINE)
        text = self._show(self._makefile) if self._makefile else None
        return (None if text is None or _OPEN_MAKEFILE.search(text) else text), pattern

    @cached_property
    def _makefile(self) -> str | None:
        there = self._exist([f"HEAD:{name}" for name in _MAKEFILES])
        return next((name for name in _MAKEFILES if f"HEAD:{name}" in there), None)

    def _show(self, path: str) -> str | None:
        told = self._ask("cat-file", "blob", f"HEAD:{path}")
        return None if told is None else told.decode("utf-8", "replace")

    # Git

    @cached_property
    def _head(self) -> str | None:
        told = self._ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
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
            if told and (commit := told.decode("ascii", "replace").strip()) not in found:
                found.append(commit)
        return [commit for commit in found if commit != self._head][-_MOST_MOMENTS:]

    def _ask(self, *words: str, stdin: bytes = b"") -> bytes | None:
        if not self._has_time():
            return None
        return ask_git(self.git_dir, *words, timeout_seconds=self.timeout_seconds, stdin=stdin)

    def _has_time(self) -> bool:
        return time.monotonic() < self.until


def _fact(anchor: Anchor, state: State, *, now: str | None = None) -> Fact:
    return Fact(kind=anchor.kind, text=anchor.text, state=state, now=now)
