"""Where sessions ran, where they lie, and what was found in them when they were read."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from stillroom.thread import FileStamp


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder was when it was last there: a work tree of some repository, or a plain folder."""

    #: Git's common directory, which all worktrees share; without git the folder. "" if it was never seen here.
    place: str
    #: The top of the work tree; without git the folder itself.
    folder: str
    is_git: bool
    remote: str | None = None
    #: The oldest root commit; None: not known.
    first_commit: str | None = None
    #: When git was last asked for it, in seconds.
    asked_at: int | None = None


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder in which threads ran."""

    cwd: str
    #: The remote that the agent recorded.
    git_origin_url: str | None
    #: Whether something was extracted of one of its threads.
    has_output: bool
    checkout: Checkout | None


class Place(NamedTuple):
    """Where a thread lies, and how that looked."""

    agent: str
    path: str
    updated_at_ms: int
    stamp: FileStamp


class Told(NamedTuple):
    """The session that tells what another one begins with."""

    thread_id: str
    #: So many items, of how many.
    items: int
    of: int


class ThreadRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a session's file held when it was read as a whole."""

    messages: int
    #: Of what memory keeps, four bytes to a token.
    tokens: int
    #: Lines that could not be parsed.
    bad_lines: int = 0
    #: Lines over the limit, and what was taken out of them.
    long_lines: int = 0
    cut_bytes: int = 0
    #: Records of kinds that this version does not know, by kind.
    unknown: dict[str, int] = {}


class ReadTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of one agent's sessions."""

    agent: str
    threads: int
    messages: int
    tokens: int
    bad_lines: int
    long_lines: int
    cut_bytes: int


class UnknownTotal(msgspec.Struct, frozen=True, kw_only=True):
    """Records of a kind that this version does not know."""

    agent: str
    kind: str
    #: Of the client; None: not recorded.
    version: str | None
    records: int
    threads: int
