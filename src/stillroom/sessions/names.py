"""Names of sessions that are no file of their own: rows of a database, or some lines of a file."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import quote, unquote

# The rest of the letters that an id may have would need quotes somewhere.
_NO_ID = re.compile(r"[^\w.:-]+", re.ASCII)
_SHOWN_CHARS = 80
#: A longer name is none that a program gives to a session.
MAX_NAME_CHARS = 512


def thread_id(place: Path, session: str) -> str:
    """An id for the session of that name in a file: programs call theirs `demo`, or `user-1`, in every file again."""
    digest = hashlib.blake2b(os.fsencode(place) + b"\0" + session.encode("utf-8", "replace"), digest_size=4)
    return f"{_NO_ID.sub('-', session)[:_SHOWN_CHARS]}.{digest.hexdigest()}"


def rollout_path(place: Path, session: str) -> Path:
    """The path of the session's rollout: the file's, with the name as a fragment."""
    return place.with_name(f"{place.name}#{quote(session, safe='')}")


def place_of(path: Path) -> tuple[Path, str]:
    """The file and the name of the session that `rollout_path` was made of; "" for a path without a fragment."""
    place, mark, session = path.name.rpartition("#")
    return (path.with_name(place), unquote(session)) if mark and place.strip(".") else (path, "")
