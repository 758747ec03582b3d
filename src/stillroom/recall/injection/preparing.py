"""Makes the prepared copy: read the folder, take secrets out, and find out whose each statement is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

import msgspec

from stillroom.clock import Clock, SystemClock
from stillroom.config import Settings, load_settings
from stillroom.errors import ConfigError, StoreError, WorkspaceError
from stillroom.offline.folder.pointing import points
from stillroom.recall.freshness.refreshing import refresh
from stillroom.recall.freshness.stored import load_freshness
from stillroom.recall.injection import prepared
from stillroom.recall.injection.folders import known_folders, learn_folders
from stillroom.recall.injection.gone import mark_gone
from stillroom.recall.injection.handbook import Group, name_folders, read_groups
from stillroom.recall.injection.labels import Label, means_everywhere
from stillroom.recall.injection.notes import Note, read_notes
from stillroom.recall.injection.prepared import HANDBOOK, SUMMARY, VERSION, Prepared, stamps_of
from stillroom.recall.injection.repetitions import without_repetitions
from stillroom.recall.injection.scopes import KnownFolder, Scope, Scopes, resolve
from stillroom.recall.injection.statements import INDEX, PROFILE, Statement
from stillroom.recall.injection.summary import Summary, harmless, parse, statements
from stillroom.recall.projects.declared import FILE as PROJECTS
from stillroom.rollouts.redact import redact
from stillroom.store import Store
from stillroom.workspace.tree import opened, read_file

_BOM = b"\xef\xbb\xbf"


class RecallReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass got ready for the sessions to come."""

    #: Folders of threads whose project is known.
    folders: int
    #: Statements that a session may be given.
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
    mark_gone(ready, refresh(settings, store, clock, ready, folders))
    if _are_configured(settings):
        prepared.save(str(settings.home), ready)
    count = sum(len(ready.part(scope)) for scope in range(-1, len(ready.scopes)))
    return RecallReport(folders=known, lines=count, nothing=ready.nothing)


def make_ready(settings: Settings, folders: Sequence[KnownFolder]) -> Prepared:
    """The prepared copy of what is in the memory folder now; the reason in it when no session may be given anything."""
    ready = _unmarked(settings, folders)
    mark_gone(ready, load_freshness(settings.home))
    return ready


def _unmarked(settings: Settings, folders: Sequence[KnownFolder]) -> Prepared:
    """The same without marks on what is gone."""
    root = str(settings.root)
    # Before anything is read: what changes meanwhile makes the copy stale.
    stamps = stamps_of(str(settings.home), root, PROJECTS)
    for switch in ("enabled", "use_memories"):
        if not getattr(settings.memories, switch):
            return Prepared(root=root, stamps=stamps, nothing=f"`memories.{switch}` is false", is_off=True)
    if os.path.islink(root):
        return Prepared(root=root, stamps=stamps, nothing="the memory folder is a link")

    def clean(text: str) -> str:
        return harmless(redact(text, style=settings.memories.redaction))

    text, nothing = _read_summary(settings)
    summary = parse(clean(text))
    handbook = read_handbook(settings)
    cleaned = clean(handbook)
    groups = read_groups(cleaned)
    keeps_lines = cleaned.count("\n") == handbook.count("\n") and clean(text).count("\n") == text.count("\n")
    name_folders(summary, groups)
    labelled = _labelled(summary, groups, read_notes(settings.root, clean))
    found = resolve(summary.labels, summary.index, folders)
    only = _only_project(found, folders)
    scopes: dict[Scope, int] = {}
    parts: list[list[Statement]] = [[]]
    for label, statement, is_pointing in labelled:
        scope = found.scopes[label] if label >= 0 else None
        if scope is None and is_pointing and (label < 0 or not means_everywhere(summary.labels[label].text)):
            if only is None:  # nobody knows at which project; it is left to the search
                continue
            scope = only
        number = -1 if scope is None else scopes.setdefault(scope, len(scopes))
        if number + 1 == len(parts):
            parts.append([])
        if not keeps_lines:  # a secret of several lines was taken out
            statement.first = statement.last = 0
        parts[number + 1].append(statement)
    ready = Prepared(
        root=root,
        stamps=stamps,
        nothing=None if any(parts) else nothing or f"`{SUMMARY}` is empty",
        tokens=settings.memories.summary_token_limit,
        others_too=settings.memories.scope == "all",
        scopes=[(list(scope.known), list(scope.names), list(scope.paths)) for scope in scopes],
        folders=found.repositories,
        parts=parts,
    )
    return without_repetitions(ready)


def _labelled(summary: Summary, groups: Sequence[Group], notes: Sequence[Note]) -> list[tuple[int, Statement, bool]]:
    """Every statement, its place in the labels of the summary (-1: for every project), and whether it points at one."""
    numbers = {label: number for number, label in enumerate(summary.labels)}

    def place(label: Label) -> int:
        if not label:
            return -1
        if label not in numbers:
            numbers[label] = len(summary.labels)
            summary.labels.append(label)
        return numbers[label]

    found = [(place(group.label), statement, False) for group in groups for statement in group.statements]
    found += [(place(note.label), note.statement, note.points) for note in notes]
    for number, statement in statements(summary):
        found.append((number, statement, statement.kind not in (PROFILE, INDEX) and points(statement.text)))
    return found


def _only_project(found: Scopes, folders: Sequence[KnownFolder]) -> Scope | None:
    """The one project of which anything is remembered: what points at a project points at this one."""
    projects = list(dict.fromkeys(folder.repository for folder in folders if folder.has_memory))
    if len(projects) != 1:
        return None
    if projects[0] not in found.repositories:
        found.repositories.append(projects[0])
    return Scope(known=(found.repositories.index(projects[0]),))


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


def _read_summary(settings: Settings) -> tuple[str, str | None]:
    """The summary; "" and the reason where it can't be used."""
    most = settings.recalling.max_summary_bytes
    try:
        with opened(settings.root) as folder:
            got = read_file(folder, SUMMARY, max_bytes=most)
    except FileNotFoundError:
        return "", "there is no memory yet"
    except WorkspaceError as error:
        return "", "there is no memory folder" if not os.path.lexists(settings.root) else str(error)
    except OSError as error:  # a link among others
        return "", f"`{SUMMARY}` can't be opened as a file: {error.strerror}"
    if got is None:
        return "", f"`{SUMMARY}` is no regular file, or larger than {most} bytes"
    try:
        text = got.data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError:
        return "", f"`{SUMMARY}` is not UTF-8"
    if not text.strip():
        return "", f"`{SUMMARY}` is empty"
    if text.partition("\n")[0].strip() != VERSION:
        return "", f"`{SUMMARY}` does not begin with `{VERSION}`; the next consolidation rebuilds it"
    return text, None


def read_handbook(settings: Settings) -> str:
    """The handbook, or "" where it is not to be had: a session is given the rest all the same."""
    try:
        with opened(settings.root) as folder:
            got = read_file(folder, HANDBOOK, max_bytes=settings.recalling.max_handbook_bytes)
    except (WorkspaceError, OSError):
        return ""
    return got.data.decode("utf-8", "replace") if got is not None else ""


__all__ = ["RecallReport", "folders_if_any", "make_ready", "prepare_recall", "read_handbook"]
