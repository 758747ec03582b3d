"""What a session is told at its start: how to use the memory, round the part of the summary that is for it.

`fast_instructions` answers from the prepared copy in a few milliseconds; it is what a hook calls, so nothing that is
imported here costs a millisecond. `instructions` makes the copy first if need be.
"""

from __future__ import annotations

import os

from stillroom.recall.projects.declared import FILE as PROJECTS
from stillroom.recall.projects.declared import load_declared
from stillroom.recall.projects.remotes import repository_name
from stillroom.recall.projects.repository import identify
from stillroom.recall.projects.switched_off import load_switched_off
from stillroom.recall.telling.missing import mark_missing
from stillroom.recall.telling.packing import pack
from stillroom.recall.telling.prepared import HANDBOOK, SUMMARY, Prepared, load, stamp_of
from stillroom.wording import many, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stillroom.config import Settings
    from stillroom.recall.projects.declared import Declared
    from stillroom.recall.projects.repository import Repository
    from stillroom.recall.telling.packing import LeftOut, Tier

TAG = "stillroom-memory"
_BYTES_PER_TOKEN = 4
_COMMIT_CHARS = 12


class Instructions:
    """What a session is told."""

    __slots__ = ("left_out", "receipt", "repository", "root", "summary_tokens", "text", "tokens", "version")

    def __init__(
        self,
        *,
        text: str,
        receipt: str,
        summary_tokens: int,
        left_out: LeftOut,
        version: str,
        root: str,
        repository: Repository,
    ) -> None:
        #: All of it, inside `<stillroom-memory>`.
        self.text = text
        #: The line in it that says what was left out.
        self.receipt = receipt
        #: Of the whole text, at four bytes each.
        self.tokens = -(-len(text.encode()) // _BYTES_PER_TOKEN)
        #: Of the summary in it.
        self.summary_tokens = summary_tokens
        self.left_out = left_out
        #: The commit of the memory folder's history at this moment; "" before the first consolidation.
        self.version = version
        self.root = root
        #: The session's project.
        self.repository = repository


class Nothing:
    """A session is told nothing, and why."""

    __slots__ = ("is_fault", "reason")

    def __init__(self, reason: str, *, is_fault: bool = False) -> None:
        self.reason = reason
        #: There is a memory, and it can't be used.
        self.is_fault = is_fault


class Stale:
    """There is no prepared copy that still holds: `instructions` makes one."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def fast_instructions(
    home: str, root: str | None, cwd: str, *, max_chars: int | None = None
) -> Instructions | Nothing | Stale:
    """The instructions from the prepared copy under `home`. Reads a handful of small files and starts no process.

    `root` is the memory folder where it is not the one of the settings. `max_chars` is what the agent takes of one
    text: less of the summary is given then.
    """
    config = stamp_of(f"{home}/config.toml")
    prepared = load(home)
    if prepared is None:
        if config is None and stamp_of(f"{root or f'{home}/memories'}/{SUMMARY}") is None:
            return Nothing("there is no memory yet")
        return Stale("there is no prepared copy")
    if prepared.config != config:
        return Stale("`config.toml` was changed")
    if root is not None and os.path.abspath(root) != prepared.root:
        return Stale("the prepared copy is of another memory folder")
    if prepared.projects != stamp_of(f"{home}/{PROJECTS}"):
        return Stale("what was said of projects was changed")
    if prepared.is_off:
        return compose(prepared, home=home, cwd=cwd, max_chars=max_chars)
    if os.path.islink(prepared.root):
        return Nothing("the memory folder is a link", is_fault=True)
    stamp = stamp_of(f"{prepared.root}/{SUMMARY}")
    if stamp is None:
        return Nothing("there is no memory yet")
    if stamp != prepared.stamp:
        return Stale(f"`{SUMMARY}` was changed")
    if stamp_of(f"{prepared.root}/{HANDBOOK}") != prepared.handbook:
        return Stale(f"`{HANDBOOK}` was changed")
    return compose(prepared, home=home, cwd=cwd, max_chars=max_chars)


def standing_instructions(home: str, cwd: str, *, max_chars: int | None = None) -> Instructions | None:
    """What of a stale copy may be told at once; None where a session has to wait for a new one.

    Whoever uses it has a new copy made for the next session.
    """
    from stillroom.recall.telling.standing import standing

    prepared = load(home)
    holds = standing(prepared, home) if prepared is not None else None
    told = compose(holds, home=home, cwd=cwd, max_chars=max_chars) if holds is not None else None
    return told if isinstance(told, Instructions) else None


def instructions(settings: Settings, cwd: str, *, max_chars: int | None = None) -> Instructions | Nothing:
    """The same, from the memory folder itself if no prepared copy holds; then one is written for the next time."""
    home, root = str(settings.home), str(settings.root)
    fast = fast_instructions(home, root, cwd, max_chars=max_chars)
    if not isinstance(fast, Stale):
        return fast
    from stillroom.recall.telling.preparing import folders_if_any, make_ready, save_if_possible

    ready = make_ready(settings, folders_if_any(settings))
    save_if_possible(settings, ready)
    return compose(ready, home=home, cwd=cwd, max_chars=max_chars)


def compose(prepared: Prepared, *, home: str, cwd: str, max_chars: int | None = None) -> Instructions | Nothing:
    """The instructions for a session in `cwd`."""
    if prepared.nothing is not None:
        return Nothing(prepared.nothing, is_fault=prepared.stamp is not None)
    declared = load_declared(home)
    if declared.unreadable:
        return Nothing(f"`{PROJECTS}` can't be read, so nobody knows whose a line is", is_fault=True)
    session = declared.project_of(cwd, identify(cwd))
    if (off := load_switched_off(home)) and off.covers(cwd, session, declared):
        if off.unreadable:
            return Nothing("nobody knows which projects are switched off (`stillroom doctor` says why)")
        return Nothing("the memory of this project is switched off (`stillroom memories --on` switches it on)")
    tier_of, version = _tiers(prepared, session, declared), _version(home)
    mark_missing(prepared.lines, tier_of, session.folder)
    with open(os.path.join(os.path.dirname(__file__), "read_path.md"), encoding="utf-8") as file:
        before, _, after = file.read().strip().partition("{{ summary }}")
    before = before.replace("{{ root }}", shown(prepared.root))
    limit = prepared.tokens * _BYTES_PER_TOKEN
    while True:
        summary, left = pack(prepared.lines, tier_of, limit_bytes=limit, others_too=prepared.others_too)
        if not summary:
            return Nothing("the memory holds nothing for this project")
        receipt = _receipt(left, version, is_partial=prepared.is_partial)
        text = f"<{TAG}>\n{before}{summary}{after.replace('{{ receipt }}', receipt)}\n</{TAG}>\n"
        over = _chars(text) - max_chars if max_chars else 0
        if over <= 0:
            break
        limit = min(limit, len(summary.encode())) - over
    return Instructions(
        text=text,
        receipt=receipt,
        summary_tokens=-(-len(summary.encode()) // _BYTES_PER_TOKEN),
        left_out=left,
        version=version,
        root=prepared.root,
        repository=session,
    )


def _chars(text: str) -> int:
    """As programs in JavaScript count them: in UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _tiers(prepared: Prepared, session: Repository, declared: Declared) -> Callable[[int], Tier]:
    """Whose a scope is, seen from the session."""
    mine = declared.same(session, prepared.folders)
    names = {_last(session.folder), repository_name(session.remote), session.remote or ""} - {""}

    def tier(number: int) -> Tier:
        known, labels, paths = prepared.scopes[number]
        if known:
            return "own" if mine.intersection(known) else "other"
        inside = any(path == session.folder or path.startswith(f"{session.folder}/") for path in paths)
        return "own" if inside or (not paths and names.intersection(labels)) else "other"

    return tier


def _last(path: str) -> str:
    return path.rpartition("/")[2].casefold()


def shown(path: str) -> str:
    """A path as one line of valid text."""
    return plain(os.fsencode(path).decode("utf-8", "replace"))


def _receipt(left: LeftOut, version: str, *, is_partial: bool) -> str:
    """What is not above, and how to get at it."""
    told = ["what was edited a moment ago"] if is_partial else []
    if left.wishes:
        told.append(f"{many(left.wishes, 'preference')} of this project that `{HANDBOOK}` has")
    if left.other_lines:
        told.append(f"{many(left.other_lines, 'line')} of {many(left.other_projects, 'other project')}")
    if left.no_room:
        told.append(f"{many(left.no_room, 'line')} for want of room")
    of = f"version {version[:_COMMIT_CHARS]} of the memory" if version else "the memory"
    if not told:
        return f"This is the whole index of {of}; nothing was left out."
    about = f", about {-(-left.bytes // _BYTES_PER_TOKEN):,} tokens" if left.bytes else ""
    files = f"`stillroom read {SUMMARY}`" + (f" and `stillroom read {HANDBOOK}`" if left.wishes else "")
    return (
        f"Left out of the index of {of}: {' and '.join(told)}{about}. To read all of it: "
        f"{files}, or the MCP tool `read` with that path."
    )


def _version(home: str) -> str:
    try:
        with open(f"{home}/history.git/refs/heads/main", encoding="ascii") as file:
            commit = file.read(100).strip()
    except (OSError, ValueError):
        return ""
    return commit if commit.isalnum() else ""
