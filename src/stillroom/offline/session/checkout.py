"""What git does to the lines that a session wrote: which it commits, puts aside, and takes away again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stillroom.offline.session import checks, shell
from stillroom.pattern import late
from stillroom.rollouts.events import Edit, Ran

Line = tuple[str, str]
"""A file's path, and one line of it."""

_GIT = late(r"git\s+(?:(?:-C|-c)\s+\S+\s+|-\S+\s+)*([a-z-]+)\b\s*(.*)$", re.DOTALL)
_SHOWN = late(r"^\[\S+(?: \([^)]*\))? ([0-9a-f]{7,40})\] (.*)$", re.MULTILINE)
"""What `git commit` prints: the branch, the commit and its subject."""
_SUBJECT = late(r"-[a-z]*m\s*(\"(?:\\.|[^\"\\])*\"|'[^']*'|\S+)|--message[= ](\"[^\"]*\"|'[^']*'|\S+)")
_REVERTED = late(r"Revert \"(.+)\"")
_TRUNKS = ("main", "master", "develop", "trunk", "-")
"""Branches that are there without the session having made them."""
_MAY_UNDO = late(r"git\b|\b(?:mv|cp)\b")
_COPIED_BACK = late(r"(?:mv|cp)\s+(?:-\S+\s+)*(\S+?)(?:\.(?:bak|orig|old|save|backup)|~)\s+\1$")
"""Puts back what a file had been before."""
_BACK = late(r"^(?:HEAD|@)(?:~(\d*)|(\^*))$")
"""A commit named by how far it lies behind the newest."""
_DIFF_CHARS = 20_000
"""Of one edit that are looked at: what a person decides on stands in a few lines."""


def lines_of(edit: Edit) -> tuple[set[Line], set[Line]]:
    """The lines that an edit added and did not only move, and those that it removed."""
    added, removed = ({(edit.path, text) for text in texts} for texts in changed(edit))
    return added - removed, removed - added


def changed(edit: Edit) -> tuple[list[str], list[str]]:
    """The text of every line that an edit added, and of every one that it removed, in order."""
    added: list[str] = []
    removed: list[str] = []
    for line in edit.diff[:_DIFF_CHARS].splitlines():
        text = line[1:].strip()
        # A line of CSS may begin with two of its own: only a header has a space behind them.
        if text and line[0] in "+-" and not line.startswith(("+++ ", "--- ")):
            (added if line[0] == "+" else removed).append(text)
    return added, removed


@dataclass(frozen=True, slots=True)
class _Commit:
    name: str  #: as far as it was shown
    subject: str
    lines: frozenset[Line]


class Checkout:
    """The lines that a session added, by where they stand: in the files only, in a commit, or put aside."""

    def __init__(self) -> None:
        self._loose: dict[Line, int] = {}  # with the turn that wrote it
        self._commits: list[_Commit] = []
        self._aside: list[dict[Line, int]] = []
        self._branches: dict[str, list[_Commit]] = {}  # made here, and not checked out now
        self._on = ""  # the branch made here that is checked out
        self._forked = 0  # commits before it began

    def edited(self, added: set[Line], removed: set[Line], *, turn: int = 0) -> None:
        """An edit was made."""
        for line in removed:
            self._loose.pop(line, None)
        self._loose.update(dict.fromkeys(added, turn))

    def ran(self, run: Ran) -> set[Line]:
        """What a command that succeeded took away for good. What was committed is safe from all but a few."""
        gone: set[Line] = set()
        if not run.command or not _MAY_UNDO.search(run.command):
            return gone
        for part in shell.parts(run.command):
            if match := _GIT.match(part.head):
                gone |= self._did(match[1], match[2], run)
            elif match := _COPIED_BACK.match(part.head):
                gone |= self._put_back([match[1].removeprefix("./")])
        return gone

    def _did(self, verb: str, rest: str, run: Ran) -> set[Line]:
        words = shell.words(rest)
        plain = [word for word in words if not word.startswith("-")]
        match verb:
            case "commit":
                self._commit(rest, run)
            case "switch" | "checkout" if self._is_branch(verb, words, plain):
                self._switch(plain[0], new=bool({"-b", "-B", "-c", "-C"} & set(words)))
            case "merge" | "rebase" if plain:
                self._commits += self._branches.pop(plain[0], [])
            case "branch" if {"-d", "-D", "--delete"} & set(words) and plain:
                return set().union(*(commit.lines for commit in self._branches.pop(plain[0], [])))
            case "checkout" | "restore" if "--staged" not in words or "--worktree" in words:
                return self._named(verb, words)
            case "reset" if "--hard" in words:
                gone = self._put_back(["."])
                back = self._behind(plain[0]) if plain else 0
                for commit in self._commits[len(self._commits) - back :] if back else []:
                    gone |= commit.lines
                del self._commits[len(self._commits) - (back or 0) :]
                return gone
            case "revert" if not {"--abort", "--continue", "--skip", "--quit"} & set(words):
                return self._revert(plain, run)
            case "stash":
                return self._stash(plain[0] if plain else "push")
        return set()

    def _commit(self, rest: str, run: Ran) -> None:
        shown = _SHOWN.search(checks.output_of(run))
        given = _SUBJECT.search(rest)
        subject = shown[2] if shown else (given[1] or given[2]).strip("'\"") if given else ""
        lines = frozenset(self._loose)
        if "--amend" in rest and self._commits:
            lines |= self._commits.pop().lines
        self._commits.append(_Commit(shown[1] if shown else "", subject, lines))
        self._loose = {}

    def _is_branch(self, verb: str, words: list[str], plain: list[str]) -> bool:
        if not plain or "--" in words:
            return False
        return verb == "switch" or bool({"-b", "-B"} & set(words)) or plain[0] in (*_TRUNKS, *self._branches, self._on)

    def _switch(self, name: str, *, new: bool) -> None:
        if not new and self._on and name != self._on:
            self._branches[self._on] = self._commits[self._forked :]
            del self._commits[self._forked :]
            self._on = ""
        if new or name in self._branches:
            self._on, self._forked = name, len(self._commits)
            self._commits += self._branches.pop(name, [])

    def _named(self, verb: str, words: list[str]) -> set[Line]:
        """`git checkout -- PATH` and `git restore PATH`."""
        if {"--ours", "--theirs"} & set(words):
            return set()
        paths = words[words.index("--") + 1 :] if "--" in words else [w for w in words if not w.startswith("-")]
        paths = [path.rstrip("/").removeprefix("./") for path in paths]
        return self._put_back(paths)

    def _put_back(self, paths: Sequence[str]) -> set[Line]:
        """Take the last turn's loose lines out of `paths`; the lines of earlier turns were committed out of sight.

        Who takes back an attempt means the attempt. What they had been content with before, they had mostly committed
        themselves, where no session shows it.
        """
        hit = [line for line in self._loose if any(path in ("", ".") or _is_in(line[0], path) for path in paths)]
        last = max((self._loose[line] for line in hit), default=0)
        gone = {line for line in hit if self._loose[line] == last}
        for line in gone:
            del self._loose[line]
        return gone

    def _behind(self, name: str) -> int | None:
        """How many commits of this session lie after the one that `name` stands for; None when nobody can tell."""
        if back := _BACK.match(name):
            count = int(back[1] or 1) if back[1] is not None else len(back[2])
            return min(count, len(self._commits))
        known = (
            i for i, c in enumerate(self._commits) if c.name and (c.name.startswith(name) or name.startswith(c.name))
        )
        index = next(known, None)
        if index is not None:
            return len(self._commits) - 1 - index
        # A place from before the session, as `origin/main` mostly is: all that was committed here lies after it.
        return len(self._commits) if name.startswith(("origin/", "upstream/")) else 0

    def _revert(self, plain: list[str], run: Ran) -> set[Line]:
        told = _REVERTED.search(checks.output_of(run))
        gone: set[Line] = set()
        for name in plain[:1] or ["HEAD"]:
            back = _BACK.match(name)
            named = [c for c in self._commits if c.name and (c.name.startswith(name) or name.startswith(c.name))]
            named = named or [c for c in self._commits if told is not None and c.subject == told[1]]
            if not named and back and (behind := self._behind(name)) is not None:
                named = self._commits[len(self._commits) - 1 - behind :][:1]
            for commit in named[-1:]:
                gone |= commit.lines
        self._commits.append(_Commit("", f'Revert "{told[1]}"' if told else "", frozenset()))
        return gone

    def _stash(self, verb: str) -> set[Line]:
        if verb in ("push", "save"):
            last = max(self._loose.values(), default=0)
            self._aside.append({line: turn for line, turn in self._loose.items() if turn == last})
            self._loose = {line: turn for line, turn in self._loose.items() if turn != last}
        elif verb in ("pop", "apply") and self._aside:
            self._loose.update(self._aside.pop())
        elif verb in ("drop", "clear") and self._aside:
            return set(self._aside.pop())
        return set()


def _is_in(path: str, named: str) -> bool:
    return bool(named) and (path == named or path.endswith("/" + named) or path.startswith(named + "/"))
