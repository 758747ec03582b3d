"""What a look at a session file can find."""

from __future__ import annotations

import msgspec

from stillroom.thread import FileStamp, Thread


class Found(msgspec.Struct, frozen=True):
    """A thread that is new or has changed."""

    thread: Thread
    stamp: FileStamp


class Unchanged(msgspec.Struct, frozen=True):
    """The file looks as its known stamp says; it was not opened."""

    path: str


class Broken(msgspec.Struct, frozen=True):
    """A file that can't be understood; the others are not concerned."""

    path: str
    reason: str


Discovery = Found | Unchanged | Broken
