"""The `session_meta` lines of a rollout: the first names the thread, later ones update its mode and branch."""

from __future__ import annotations

from typing import Any, cast, get_args

import msgspec

from stillroom.thread import MemoryMode


class Git(msgspec.Struct, frozen=True):
    """Where the session's repository stood."""

    commit_hash: str | None = None
    branch: str | None = None
    repository_url: str | None = None


class SessionMeta(msgspec.Struct, frozen=True):
    """The fields that Stillroom uses; each is read alone, so that one of a strange type spoils no other."""

    id: str
    timestamp: str = ""
    cwd: str | None = None
    source: object = None
    thread_source: str | None = None
    parent_thread_id: str | None = None
    #: The thread whose lines this one begins with. Newer clients don't copy them: their forks begin with their own.
    copied_from_id: str | None = None
    #: The program that recorded the thread.
    originator: str | None = None
    cli_version: str | None = None
    model_provider: str | None = None
    memory_mode: MemoryMode | None = None
    git: Git | None = None
    #: It has a nickname, role or path, which only sub-agents have.
    is_agent: bool = False
    #: What a thread that was ingested is about, also where no person says it, as in an evaluation.
    preview: str | None = None


class _Ids(msgspec.Struct):
    id: Any = None
    session_id: Any = None


class _Raw(_Ids):
    """Only what is used is decoded: the instructions beside it may be long."""

    timestamp: Any = None
    cwd: Any = None
    source: Any = None
    thread_source: Any = None
    parent_thread_id: Any = None
    forked_from_id: Any = None
    history_base: Any = None
    agent_nickname: Any = None
    agent_role: Any = None
    agent_type: Any = None
    agent_path: Any = None
    originator: Any = None
    cli_version: Any = None
    model_provider: Any = None
    memory_mode: Any = None
    git: Any = None
    preview: Any = None


_ids = msgspec.json.Decoder(_Ids)
_raw = msgspec.json.Decoder(_Raw)


def meta_id(payload: bytes | msgspec.Raw) -> str:
    """Only the thread's id; raises as `parse_meta` does."""
    raw = _ids.decode(payload)
    return _text(raw.id) or _text(raw.session_id) or ""


def parse_meta(payload: bytes) -> SessionMeta:
    """Read the payload of a `session_meta` line. Raises `msgspec.DecodeError` or `RecursionError`."""
    raw = _raw.decode(payload)
    git = raw.git if isinstance(raw.git, dict) else None
    return SessionMeta(
        id=_text(raw.id) or _text(raw.session_id) or "",
        timestamp=_text(raw.timestamp) or "",
        cwd=_text(raw.cwd),
        source=raw.source,
        thread_source=_text(raw.thread_source),
        parent_thread_id=_text(raw.parent_thread_id),
        copied_from_id=_text(raw.forked_from_id) if raw.history_base is None else None,
        originator=_text(raw.originator),
        cli_version=_text(raw.cli_version),
        model_provider=_text(raw.model_provider),
        memory_mode=recorded_mode(raw.memory_mode),
        git=Git(_text(git.get("commit_hash")), _text(git.get("branch")), _text(git.get("repository_url")))
        if git
        else None,
        is_agent=any((raw.agent_nickname, raw.agent_role, raw.agent_type, raw.agent_path)),
        preview=_text(raw.preview),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def recorded_mode(value: object) -> MemoryMode | None:
    """The mode that an agent wrote; None: it wrote none. A word of a newer agent is no leave (spec §4.3)."""
    if not isinstance(value, str) or not value:
        return None
    return cast("MemoryMode", value) if value in get_args(MemoryMode) else "disabled"
