"""What a session is given at its start: how to use the memory, and what it holds of the session's project.

`fast_instructions` answers from the prepared copy in a few milliseconds; it is what a hook calls, so nothing that is
imported here costs a millisecond. `instructions` makes the copy first if need be.
"""

from __future__ import annotations

import os

from stillroom.recall.injection.prepared import DAMAGED, Prepared, load, stamps_of
from stillroom.recall.injection.statements import select
from stillroom.recall.projects.declared import FILE as PROJECTS
from stillroom.recall.projects.declared import load_declared
from stillroom.recall.projects.remotes import repository_name
from stillroom.recall.projects.repository import identify
from stillroom.recall.projects.switched_off import load_switched_off
from stillroom.wording import many, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stillroom.config import Settings
    from stillroom.recall.injection.statements import LeftOut
    from stillroom.recall.projects.declared import Declared
    from stillroom.recall.projects.repository import Repository

TAG = "stillroom-memory"
_BYTES_PER_TOKEN = 4
_COMMIT_CHARS = 12


class Instructions:
    """What a session is given."""

    __slots__ = ("left_out", "memory_tokens", "receipt", "repository", "root", "text", "tokens", "version")

    def __init__(
        self,
        *,
        text: str,
        receipt: str,
        memory_tokens: int,
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
        #: Of the memory in it.
        self.memory_tokens = memory_tokens
        self.left_out = left_out
        #: The commit of the memory folder's history at this moment; "" before the first consolidation.
        self.version = version
        self.root = root
        #: The session's project.
        self.repository = repository


class Nothing:
    """A session is given nothing, and why."""

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
    text: less of the memory is given then.
    """
    prepared = load(home)
    if prepared is None:
        now = stamps_of(home, root or f"{home}/memories", PROJECTS)
        if any(now[name] for name in ("config", "summary", "handbook", "notes")):
            return Stale("there is no prepared copy")
        return Nothing("there is no memory yet")
    if root is not None and os.path.abspath(root) != prepared.root:
        return Stale("the prepared copy is of another memory folder")
    now = stamps_of(home, prepared.root, PROJECTS)
    watched = ("config", "projects") if prepared.is_off else now
    if changed := [name for name in watched if now[name] != prepared.stamps[name]]:
        return Stale(f"changed since the copy was made: {', '.join(changed)}")
    if os.path.islink(prepared.root):
        return Nothing("the memory folder is a link", is_fault=True)
    try:
        return compose(prepared, home=home, cwd=cwd, max_chars=max_chars)
    except DAMAGED:
        return Stale("the prepared copy is damaged")


def instructions(settings: Settings, cwd: str, *, max_chars: int | None = None) -> Instructions | Nothing:
    """The same, from the memory folder itself if no prepared copy holds; then one is written for the next time."""
    home, root = str(settings.home), str(settings.root)
    fast = fast_instructions(home, root, cwd, max_chars=max_chars)
    if not isinstance(fast, Stale):
        return fast
    from stillroom.recall.injection.preparing import folders_if_any, make_ready, save_if_possible

    ready = make_ready(settings, folders_if_any(settings))
    save_if_possible(settings, ready)
    return compose(ready, home=home, cwd=cwd, max_chars=max_chars)


def compose(prepared: Prepared, *, home: str, cwd: str, max_chars: int | None = None) -> Instructions | Nothing:
    """The instructions for a session in `cwd`. Raises what `Prepared.part` raises."""
    if prepared.nothing is not None:
        return Nothing(prepared.nothing, is_fault=any(prepared.stamps[name] for name in ("summary", "handbook")))
    declared = load_declared(home)
    if declared.unreadable:
        return Nothing(f"`{PROJECTS}` can't be read, so nobody knows whose a line is", is_fault=True)
    session = declared.project_of(cwd, identify(cwd))
    if (off := load_switched_off(home)) and off.covers(cwd, session, declared):
        if off.unreadable:
            return Nothing("nobody knows which projects are switched off (`stillroom doctor` says why)")
        return Nothing("the memory of this project is switched off (`stillroom memories --on` switches it on)")
    own, others = _scopes_of(prepared, session, declared)
    statements = [
        [statement for scope in scopes for statement in prepared.part(scope)]
        for scopes in (own, [-1], others if prepared.others_too else [])
    ]
    version = _version(home)
    with open(os.path.join(os.path.dirname(__file__), "read_path.md"), encoding="utf-8") as file:
        before, _, after = file.read().strip().partition("{{ memory }}")
    before = before.replace("{{ root }}", shown(prepared.root))
    limit = prepared.tokens * _BYTES_PER_TOKEN
    while True:
        memory, left = select(*statements, limit_bytes=limit)
        if not memory:
            return Nothing("the memory holds nothing for this project")
        left.other_projects = 0 if prepared.others_too else len(others)
        receipt = _receipt(left, version)
        text = f"<{TAG}>\n{before}{memory}{after.replace('{{ receipt }}', receipt)}\n</{TAG}>\n"
        over = _chars(text) - max_chars if max_chars else 0
        if over <= 0:
            break
        limit = min(limit, len(memory.encode())) - over
    return Instructions(
        text=text,
        receipt=receipt,
        memory_tokens=-(-len(memory.encode()) // _BYTES_PER_TOKEN),
        left_out=left,
        version=version,
        root=prepared.root,
        repository=session,
    )


def _chars(text: str) -> int:
    """As programs in JavaScript count them: in UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _scopes_of(prepared: Prepared, session: Repository, declared: Declared) -> tuple[list[int], list[int]]:
    """Which scopes are the session's own, and which are not."""
    mine = declared.same(session, prepared.folders)
    names = {_last(session.folder), repository_name(session.remote), session.remote or ""} - {""}
    own: list[int] = []
    others: list[int] = []
    for number, (known, labels, paths) in enumerate(prepared.scopes):
        if known:
            is_own = not mine.isdisjoint(known)
        else:
            inside = any(path == session.folder or path.startswith(f"{session.folder}/") for path in paths)
            is_own = inside or (not paths and not names.isdisjoint(labels))
        (own if is_own else others).append(number)
    return own, others


def _last(path: str) -> str:
    return path.rpartition("/")[2].casefold()


def shown(path: str) -> str:
    """A path as one line of valid text."""
    return plain(os.fsencode(path).decode("utf-8", "replace"))


def _receipt(left: LeftOut, version: str) -> str:
    """What is not above, and where it stands."""
    of = f" (version {version[:_COMMIT_CHARS]})" if version else ""
    parts = []
    if left.no_room:
        kinds = ", ".join(many(count, name) for name, count in left.by_kind.items())
        places = ", ".join(f"{file}:{a}-{b}" if a else file for file, (a, b) in left.places.items())
        tokens = -(-left.bytes // _BYTES_PER_TOKEN)
        parts.append(f"for want of room {kinds}, about {tokens:,} tokens: {places}")
    if left.other_projects:
        parts.append(f"the memory of {many(left.other_projects, 'other project')}")
    if not parts:
        return f"Nothing was left out{of}."
    return f"Left out{of}: {'; '.join(parts)}."


def _version(home: str) -> str:
    try:
        with open(f"{home}/history.git/refs/heads/main", encoding="ascii") as file:
            commit = file.read(100).strip()
    except (OSError, ValueError):
        return ""
    return commit if commit.isalnum() else ""
