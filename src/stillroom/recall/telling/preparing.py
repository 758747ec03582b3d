"""Makes the prepared copy: read the summary, take secrets out, parse it, find out whose each line is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

import msgspec

from stillroom.clock import Clock, SystemClock
from stillroom.config import Settings, load_settings
from stillroom.errors import ConfigError, StoreError, WorkspaceError
from stillroom.recall.freshness.refreshing import refresh
from stillroom.recall.freshness.stored import load_freshness
from stillroom.recall.projects.declared import FILE as PROJECTS
from stillroom.recall.telling import prepared
from stillroom.recall.telling.folders import known_folders, learn_folders
from stillroom.recall.telling.gone import mark_gone
from stillroom.recall.telling.handbook import add_wishes, cleaned, name_folders, read_groups
from stillroom.recall.telling.packing import Line
from stillroom.recall.telling.prepared import (
    HANDBOOK,
    SUMMARY,
    VERSION,
    Prepared,
    Stamp,
    choices,
    stamp_from,
    stamp_of,
)
from stillroom.recall.telling.scopes import KnownFolder, Scope, resolve
from stillroom.recall.telling.summary import harmless, parse
from stillroom.rollouts.redact import redact
from stillroom.store import Store
from stillroom.workspace.tree import opened, read_file

_BOM = b"\xef\xbb\xbf"


class RecallReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass got ready for the sessions to come."""

    #: Folders of threads whose project is known.
    folders: int
    #: Lines of the summary that a session may be given.
    lines: int
    #: Why there are none.
    nothing: str | None = None


def prepare_recall(settings: Settings, store: Store, clock: Clock, *, known: int | None = None) -> RecallReport:
    """Learn the projects of all threads, unless so many are `known` just now, and write the prepared copy.

    Raises `StoreError` or `OSError`.
    """
    if known is None:
        known = learn_folders(settings, store, clock)
    folders = known_folders(settings, store)
    ready = _unmarked(settings, folders)
    freshness = refresh(settings, store, clock, ready, folders)
    mark_gone(ready.lines, ready.scopes, ready.folders, freshness)
    if _are_configured(settings):
        prepared.save(str(settings.home), ready)
    return RecallReport(folders=known, lines=len(ready.lines), nothing=ready.nothing)


def make_ready(settings: Settings, folders: Sequence[KnownFolder]) -> Prepared:
    """The prepared copy of what is in the memory folder now; the reason in it when no session may be told of it."""
    ready = _unmarked(settings, folders)
    mark_gone(ready.lines, ready.scopes, ready.folders, load_freshness(settings.home))
    return ready


def _unmarked(settings: Settings, folders: Sequence[KnownFolder]) -> Prepared:
    """The same without notes on what is gone."""
    config, projects = stamp_of(str(settings.home / "config.toml")), stamp_of(str(settings.home / PROJECTS))
    root = str(settings.root)
    for switch in ("enabled", "use_memories"):
        if not getattr(settings.memories, switch):
            return Prepared(root=root, config=config, stamp=None, nothing=f"`memories.{switch}` is false", is_off=True)
    text, stamp = _read(settings)
    if isinstance(text, _Nothing):
        return Prepared(root=root, config=config, stamp=stamp, nothing=text.reason)
    style, limits = settings.memories.redaction, settings.recalling
    summary = parse(harmless(redact(text, style=style)))
    handbook, handbook_stamp = read_handbook(settings)
    groups = cleaned(read_groups(handbook), lambda text: harmless(redact(text, style=style)))
    name_folders(summary, groups)
    add_wishes(
        summary, groups, max_bytes=limits.max_wishes_bytes, max_bytes_of_project=limits.max_wishes_bytes_of_project
    )
    found = resolve(summary, folders)
    scopes: dict[Scope, int] = {}
    numbers = [-1 if scope is None else scopes.setdefault(scope, len(scopes)) for scope in found.scopes] + [-1]
    lines = [
        Line(line.text, kind=line.kind, up=line.up, scope=numbers[line.scope], extra=line.extra)
        for line in summary.lines
    ]
    return Prepared(
        root=root,
        config=config,
        choices=choices(str(settings.home / "config.toml")),
        stamp=stamp,
        projects=projects,
        handbook=handbook_stamp,
        nothing=None if any(line.kind != "heading" for line in lines) else f"`{SUMMARY}` is empty",
        tokens=settings.memories.summary_token_limit,
        others_too=settings.memories.scope == "all",
        lines=lines,
        scopes=[(list(scope.known), list(scope.names), list(scope.paths)) for scope in scopes],
        folders=found.repositories,
    )


def folders_if_any(settings: Settings) -> list[KnownFolder]:
    """The known folders, for whoever has no store open. A database that is not there, or not to be read, knows none."""
    if not settings.database.is_file():
        return []
    try:
        with Store.look(settings.database, clock=SystemClock(), limits=settings.database_limits) as store:
            return known_folders(settings, store)
    except StoreError:
        return []


def save_if_possible(settings: Settings, ready: Prepared) -> None:
    """Keep it for the next time. A home that is not there stays so, and one that can't be written costs only time."""
    if settings.home.is_dir() and _are_configured(settings):
        with contextlib.suppress(OSError):
            prepared.save(str(settings.home), ready)


def _are_configured(settings: Settings) -> bool:
    """Whether a session start, which knows the home only, would come to the same settings."""
    try:
        configured = load_settings(home=settings.home)
    except ConfigError:
        return False
    names = ("enabled", "use_memories", "redaction", "summary_token_limit", "scope")
    same = all(getattr(configured.memories, name) == getattr(settings.memories, name) for name in names)
    return same and configured.root == settings.root


class _Nothing(msgspec.Struct, frozen=True):
    reason: str


def _read(settings: Settings) -> tuple[str | _Nothing, Stamp]:
    path = str(settings.root / SUMMARY)
    most = settings.recalling.max_summary_bytes
    try:
        with opened(settings.root) as folder:
            got = read_file(folder, SUMMARY, max_bytes=most)
    except FileNotFoundError:
        return _Nothing(f"there is no `{SUMMARY}`"), None
    except WorkspaceError as error:
        missing = not os.path.lexists(settings.root)
        return _Nothing("there is no memory folder" if missing else str(error)), None
    except OSError as error:  # a link among others
        return _Nothing(f"`{SUMMARY}` can't be opened as a file: {error.strerror}"), stamp_of(path)
    if got is None:
        return _Nothing(f"`{SUMMARY}` is no regular file, or larger than {most} bytes"), stamp_of(path)
    stamp = stamp_from(got.status)
    try:
        text = got.data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError:
        return _Nothing(f"`{SUMMARY}` is not UTF-8"), stamp
    if not text.strip():
        return _Nothing(f"`{SUMMARY}` is empty"), stamp
    if text.partition("\n")[0].strip() != VERSION:
        return _Nothing(f"`{SUMMARY}` does not begin with `{VERSION}`; the next consolidation rebuilds it"), stamp
    return text, stamp


def read_handbook(settings: Settings) -> tuple[str, Stamp]:
    """The handbook, or "" where it is not to be had: a session is told the summary all the same."""
    path = str(settings.root / HANDBOOK)
    try:
        with opened(settings.root) as folder:
            got = read_file(folder, HANDBOOK, max_bytes=settings.recalling.max_handbook_bytes)
    except (WorkspaceError, OSError):
        return "", stamp_of(path)
    if got is None:
        return "", stamp_of(path)
    return got.data.decode("utf-8", "replace"), stamp_from(got.status)


__all__ = ["RecallReport", "folders_if_any", "make_ready", "prepare_recall", "read_handbook"]
