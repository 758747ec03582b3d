"""What Cline and its editor extensions tell of a session, in the two layouts of their files.

The terminal's client, and newer extensions, keep `sessions/ID/ID.messages.json` with `ID.json` beside it. Extensions
keep `tasks/ID/api_conversation_history.json`, Roo Code with `history_item.json` beside it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.decoder import UNREADABLE, text_of, time_of
from stillroom.rollouts.agents.documents import elements, fields
from stillroom.rollouts.agents.ends import read_description, read_small
from stillroom.rollouts.lines import open_stored

EDITOR = "api_conversation_history.json"
TERMINAL = ".messages.json"
_MAX_FIELD_BYTES = 64 * 1024
# A manifest lists every checkpoint.
_MAX_MANIFEST_BYTES = 16 * 1024 * 1024
# Where the client tells the model in which folder it works.
_FOLDER = re.compile(rb"Current (?:Workspace|Working) Directory \((?:Primary: )?([^)\"\\\n]{1,1000})\)")
_TS = re.compile(rb'"ts"\s*:\s*(\d{12,14})\b')
_HEAD_BYTES = 256 * 1024


class Task(NamedTuple):
    """What is known of a session."""

    session_id: str
    cwd: str = ""
    title: str = ""
    branch: str = ""
    origin_url: str = ""
    version: str = ""
    created_ms: int | None = None
    #: Sub-agents and sub-tasks have one.
    parent: str = ""
    agent: str = ""
    source: str = "vscode"
    #: The session whose messages this one begins with.
    forked_from: str = ""


class _Origin(msgspec.Struct, rename="camel"):
    parent_thread_id: Any = None
    subagent: Any = None
    source: Any = None
    version: Any = None


class _Messages(msgspec.Struct, rename="camel"):
    session_id: Any = None
    agent: Any = None
    origin: _Origin = msgspec.field(default_factory=_Origin)


class _Session(msgspec.Struct):
    started_at: Any = None
    interactive: Any = None
    cwd: Any = None
    workspace_root: Any = None


class _Git(msgspec.Struct):
    branch: Any = None
    url: Any = None


class _Fork(msgspec.Struct, rename="camel"):
    forked_from_session_id: Any = None


class _Metadata(msgspec.Struct):
    title: Any = None
    git: _Git = msgspec.field(default_factory=_Git)
    fork: _Fork = msgspec.field(default_factory=_Fork)


class _RooTask(msgspec.Struct, rename="camel"):
    workspace: Any = None
    task: Any = None
    parent_task_id: Any = None


class _Id(msgspec.Struct):
    id: Any = None


_id = msgspec.json.Decoder(_Id)
T = TypeVar("T", bound=msgspec.Struct)


def is_of_editor(path: Path) -> bool:
    """Whether an extension stored it in its own layout."""
    return path.name == EDITOR


def read_task(path: Path, *, reading: Reading = READING) -> Task:
    """Raises `OSError` or `RolloutError`."""
    return _of_editor(path) if is_of_editor(path) else _of_terminal(path, reading)


def ids_of(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The hashes of the messages' ids. Raises `OSError` or `RolloutError`."""
    found: set[int] = set()
    with open_stored(path, reading=reading) as file:
        for line in elements(file, ("messages",), max_line_bytes=max_line_bytes, reading=reading):
            try:
                name = _id.decode(line).id
            except UNREADABLE:
                continue
            if isinstance(name, str) and len(found) < reading.remembered_records:
                found.add(hash(name))
    return frozenset(found)


def _of_editor(path: Path) -> Task:
    head = read_small(path, max_bytes=_HEAD_BYTES)
    folder, first = _FOLDER.search(head), _TS.search(head)
    described = read_description(path.with_name("history_item.json"), _RooTask)
    name = path.parent.name
    created = int(first[1]) if first else int(name) if re.fullmatch(r"\d{12,14}", name, re.ASCII) else None
    return Task(
        session_id=name,
        cwd=text_of(described.workspace) or (folder[1].decode("utf-8", "replace") if folder else ""),
        title=text_of(described.task),
        created_ms=created,
        parent=text_of(described.parent_task_id),
    )


def _of_terminal(path: Path, reading: Reading) -> Task:
    messages = _described(path, _Messages, stop_after_bytes=reading.head_bytes)
    origin = messages.origin
    manifest = path.with_name(path.name.removesuffix(TERMINAL) + ".json")
    session, metadata = _described(manifest, _Session), _described(manifest, _Metadata, "metadata")
    of_editor = text_of(origin.source) in ("vscode", "ide", "jetbrains")
    return Task(
        session_id=text_of(messages.session_id) or path.name.removesuffix(TERMINAL),
        cwd=text_of(session.cwd) or text_of(session.workspace_root),
        title=text_of(metadata.title),
        branch=text_of(metadata.git.branch),
        origin_url=text_of(metadata.git.url),
        version=text_of(origin.version),
        created_ms=time_of(session.started_at),
        parent=text_of(origin.parent_thread_id)
        or (path.parent.name if messages.agent in ("subagent", "teammate") else ""),
        agent=text_of(origin.subagent),
        source="vscode" if of_editor else "exec" if session.interactive is False else "cli",
        forked_from=text_of(metadata.fork.forked_from_session_id),
    )


def _described(path: Path, kind: type[T], *inside: str, stop_after_bytes: int = _MAX_MANIFEST_BYTES) -> T:
    """What a document tells beside its lists; `kind()` if it can't be read."""
    try:
        with open_stored(path) as file:
            names = kind.__struct_encode_fields__
            found = fields(file, names, max_bytes=_MAX_FIELD_BYTES, path=inside, stop_after_bytes=stop_after_bytes)
        return msgspec.json.decode(msgspec.json.encode(found), type=kind)
    except (OSError, RolloutError, *UNREADABLE):
        return kind()
