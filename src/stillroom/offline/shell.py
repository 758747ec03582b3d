"""Command lines: their parts, what each is a run of, whether it only looks, and how it ended."""

from __future__ import annotations

import re
from functools import lru_cache

from stillroom.sessions.events import Ran

_LOOKS = re.compile(
    r"^(?:ls|cat|bat|sed -n|nl|head|tail|grep|egrep|rg|ag|find|fd|df|du|pwd|echo|printf|which|type|wc|tree|stat|file"
    r"|less|jq|yq|sort|uniq|diff|cd|pushd|popd|export|set|true|sleep|env|date|ps|id|awk|cut|xxd|findstr|dir|test -|\["
    r"|ping|dig|lsof|free|uname|hostname|whoami|journalctl|Get-Content|Get-ChildItem|Select-String"
    r"|git (?:log|status|diff|show|branch|blame|grep|rev-parse|ls-files|remote|stash list|worktree list|describe)"
    r"|(?:docker|podman|kubectl) (?:ps|images|logs|inspect|get|describe|top|version)"
    r"|(?:npm|pnpm|yarn|pip|cargo|go|gh|brew|apt)"
    r" (?:ls|list|view|show|info|outdated|why|freeze|tree|search|env|version))\b"
)
#: A word of the shell's own language: a script, and no command of the project.
_KEYWORD = re.compile(
    r"^(?:for|while|until|if|elif|else|then|do|done|fi|case|esac|select|function)\b|^[{}()]|\(\)\s*\{"
)
_SETS = re.compile(
    r"^(?:(?:export|local|declare|readonly)\s+)?\w+=(?:\"[^\"]*\"|'[^']*'|\$\(.*\)|\S*)$"
    r"|^(?:break|continue|return|exit|shift|wait|trap|read|unset|exec)\b"
)
_CHORES = re.compile(
    r"^(?:mkdir|rm|cp|mv|ln|touch|chmod|chown|sed -i|tee|curl|wget|ssh|scp|rsync|open|xdg-open|kill|pkill|killall|tar"
    r"|unzip|zip|source|alias|gh (?:pr|issue|run|api)|apply_patch"
    r"|git (?:mv|rm|add|commit|push|checkout|switch|restore|stash|pull|fetch|merge|rebase|reset|revert|clone"
    r"|cherry-pick|tag|clean|apply))\b"
)
#: A program on the command line is no command of the project.
_TYPED_IN = re.compile(r"^(?:perl -i|python[\d.]*|node|ruby|perl|php|deno|bun)\b.*?\s(?:-c|-e|-r|-p|--eval)(?:\s|$)")
#: Runs that tell whether the work is right, or that a project needs to be worked on.
VERIFIES = re.compile(
    r"(?<![a-z])(?:tests?|pytest|jest|vitest|rspec|ctest|check|lint|ruff|eslint|mypy|tsc|typecheck|clippy|vet|fmt|format|build"
    r"|compile|verify|ci|e2e|bench|migrat\w*|gen\w*|deploy|release|sync|install|up|start|serve|run|seed|validate|plan|package"
    r"|make|docs?)(?![a-z])",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"^(?:/\S*/)?(?:ba|z)?sh -l?c (\"|')(.*)\1$", re.DOTALL)
_PREFIX = re.compile(
    r"^(?:(?:export )?\w+=(?:\"[^\"]*\"|'[^']*'|\S+)\s+"
    r"|(?:sudo|time|npx|uv run|poetry run|pnpm exec|bundle exec|pixi run|timeout \d+\w?)\s+)+"
)
_ELSEWHERE = re.compile(r"^git (?:-C \S+ |--git-dir[= ]\S+ |--no-pager |-c \S+ )+")
_PIECES = re.compile(r"""((?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^'"&|;])+|\|(?!\|)|&(?!&))|(&&|\|\||;)""")
_HAS_VERBS = frozenset(
    "npm pnpm yarn bun cargo go make just docker kubectl git python python3 node bash sh uv mix dotnet".split()  # noqa: SIM905
)
_BAD = re.compile(
    r"\b[1-9]\d* (?:failed|errors?|failures?)\b|\bFAILED\b|^(?:error|fatal)(?:\[\w+\])?:|Traceback \(most", re.M
)
UNDOES = re.compile(
    r"git (?:checkout (?:--|HEAD|[\w./-]+/)|restore\b|revert\b|reset --hard|stash(?!\s+(?:list|pop|apply|show)))"
)
_COMMITS = re.compile(r"(?:^|&&|;)\s*git\s+(?:-\S+\s+\S+\s+)*commit\b")
_MESSAGE = re.compile(r"(?:\s-[a-z]*m|--message)(?:\s+|=)(?:\"((?:\\.|[^\"\\])*)\"|'([^']*)')", re.DOTALL)
_TITLE = re.compile(
    r"(?:gh\s+pr|glab\s+mr)\s+create\b.*?(?:-t|--title)(?:\s+|=)(?:\"((?:\\.|[^\"\\])*)\"|'([^']*)')", re.DOTALL
)
_COMMITTED = re.compile(r"^\[[\w/.-]+(?: \([\w-]+\))? [0-9a-f]{7,}\] (.+)$", re.MULTILINE)
_BAD_CHARS = 4000


def unwrapped(command: str) -> str:
    """The line that a shell was given: `bash -lc '…'`."""
    found = _WRAPPED.match(command.strip())
    return found[2].replace("'\"'\"'", "'") if found else command.strip()


@lru_cache(maxsize=4096)
def parts(command: str) -> tuple[str, ...]:
    """A command line split at `&&`, `||` and `;`. Nothing of scripts: several lines, heredocs, loops and conditions.

    >>> parts("cd api && make test; echo done")
    ('cd api', 'make test', 'echo done')
    """
    command = unwrapped(command)
    if "<<" in command or "\n" in command or len(command) > 2000:
        return ()
    found = [""]
    for text, joint in _PIECES.findall(command):
        if joint:
            found.append("")
        else:
            found[-1] += text
    stripped = [part for each in found if (part := each.strip())]
    return () if any(map(_KEYWORD.search, stripped)) else tuple(stripped)


def is_loop(command: str) -> bool:
    """Whether a line is a script with a loop or a condition: what failed in it is not known."""
    pieces = [text.strip() for text, joint in _PIECES.findall(unwrapped(command)) if not joint]
    return any(map(_KEYWORD.search, pieces))


def base(part: str) -> str:
    """What a command is a run of, without options and redirections: `npm run build`, `pytest tests/a.py`."""
    words = [
        word
        for word in _PREFIX.sub("", part).partition("|")[0].split()
        if not word.startswith("-") and not re.match(r"\d*[<>]", word)
    ]
    return " ".join(words[: 3 if words and words[0] in _HAS_VERBS else 2])


def only_looks(part: str) -> bool:
    """Whether what it prints is read again when it is needed."""
    return _SETS.match(part) is not None or _LOOKS.match(_bare(part)) is not None


def _bare(part: str) -> str:
    """A command without what it is started by, and `git` without the folder it is told to work in."""
    return _ELSEWHERE.sub(r"git ", _PREFIX.sub("", part))


def is_chore(part: str) -> bool:
    """Whether it keeps house or is for one moment: files moved, things committed or fetched, a program typed in."""
    bare = _bare(part)
    return _CHORES.match(bare) is not None or _TYPED_IN.match(bare) is not None


def telling(command: str) -> list[str]:
    """The parts of a command that do something."""
    return [part for part in parts(command) if not only_looks(part)]


def passed(run: Ran) -> bool | None:
    """How it ended; None: the record does not say, or it still ran. A pipeline hides the codes of all but its last."""
    if run.exit_code is None and run.ok is None:
        return None
    good = run.exit_code == 0 if run.exit_code is not None else bool(run.ok)
    hidden = "|" in (run.command or "") or "; " in (run.command or "")
    return good and not (hidden and _BAD.search(run.output[-_BAD_CHARS:]))


def committed(run: Ran) -> str:
    """The subject of the commit or pull request that it made, or ""."""
    if passed(run) is False or not run.command:
        return ""
    command = unwrapped(run.command)
    if _COMMITS.search(command):
        if found := _COMMITTED.search(run.output[-_BAD_CHARS:]):
            return found[1].strip()
        found = _MESSAGE.search(command)
    else:
        found = _TITLE.search(command)
    value = next((group for group in found.groups() if group), "") if found else ""
    return "" if value.startswith("$(") else value.partition("\n")[0].strip()
