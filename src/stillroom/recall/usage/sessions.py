"""Which sessions were told memory lately, as the hook logged it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stillroom.recall.injection.session_log import tail


class ToldSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was told memory at its start."""

    at: int  #: seconds
    agent: str = ""
    thread_id: str = ""
    cwd: str = ""
    #: The commit of the memory folder's history that it saw.
    version: str = ""
    tokens: int = 0
    #: Of the summary, what did not fit.
    left_out_bytes: int = 0


_session = msgspec.json.Decoder(ToldSession)


def told_sessions(home: Path, *, limit: int | None = None) -> tuple[ToldSession, ...]:
    """The newest ones, or all that the end of the log has, newest first. A line that can't be read is passed over: the
    first of the tail may be torn."""
    found: list[ToldSession] = []
    for line in reversed(tail(str(home)).splitlines()):
        if len(found) == limit:
            break
        try:
            found.append(_session.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return tuple(found)
