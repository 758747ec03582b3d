"""Sessions of one repository belong together, wherever it was checked out; most used first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stillroom.offline.folder.reading import Session


@dataclass(frozen=True, slots=True)
class Group:
    """The sessions of one repository or directory, newest first."""

    key: str
    title: str
    cwds: tuple[str, ...]
    sessions: tuple[Session, ...]

    @property
    def used(self) -> int:
        return sum(session.output.usage_count for session in self.sessions)

    @property
    def latest(self) -> int:
        return max(max(s.output.source_updated_at, s.output.last_usage or 0) for s in self.sessions)

    @property
    def day(self) -> str:
        return max(session.day for session in self.sessions)


def group(sessions: Sequence[Session]) -> list[Group]:
    """Groups by use, then recency. Directories without an origin join the repository that they are in."""
    members: dict[str, list[Session]] = {}
    homes: dict[str, str] = {}
    for session in sessions:
        origin = normalised_origin(session.output.git_origin_url)
        if origin:
            homes.setdefault(session.output.cwd.rstrip("/"), origin)
    for session in sessions:
        key = normalised_origin(session.output.git_origin_url) or _home(session.cwd, homes) or _directory(session.cwd)
        members.setdefault(key, []).append(session)
    titles: dict[str, str] = {key: _title(key, found) for key, found in members.items()}
    doubles = [title for title in titles.values() if list(titles.values()).count(title) > 1]
    groups = []
    for key, found in members.items():
        found.sort(key=lambda s: (-s.output.source_updated_at, s.output.thread_id))
        title = titles[key] if titles[key] not in doubles else f"{titles[key]} ({key})"
        cwds = tuple(dict.fromkeys(s.cwd for s in found))
        groups.append(Group(key=key, title=title, cwds=cwds, sessions=tuple(found)))
    groups.sort(key=lambda g: (-g.used, -g.latest, g.key))
    return groups


def normalised_origin(url: str | None) -> str:
    """`host/owner/name`, the same for https, ssh and scp-like addresses; "" for none."""
    if not url:
        return ""
    text = re.sub(r"^[a-z+]+://", "", url.strip(), flags=re.IGNORECASE)
    text = re.sub(r"^[^@/]*@", "", text)
    text = re.sub(r"^([^/:]+):(?!\d+/)", r"\1/", text)
    text = re.sub(r"^([^/:]+):\d+/", r"\1/", text)
    host, _, path = text.partition("/")
    return f"{host.casefold()}/{path.strip('/').removesuffix('.git').rstrip('/')}"


def _home(cwd: str, homes: dict[str, str]) -> str:
    within = [home for home in homes if cwd == home or cwd.startswith(home + "/")]
    return homes[max(within, key=len)] if within else ""


def _directory(cwd: str) -> str:
    return re.sub(r"/+$", "", cwd) or "unknown"


def _title(key: str, sessions: Sequence[Session]) -> str:
    name = key.rsplit("/", 1)[-1] or next((s.project for s in sessions if s.project), "") or "unknown"
    return " ".join(name.split())[:120]
