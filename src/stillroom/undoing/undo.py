"""Takes consolidations back: the folder, what the database selected for it, and what the next pass would do.

    plan = plan_undo(settings, history, None)           # shows what goes; nothing is changed
    report = undo(settings, store, plan)

A person's edits stay: those made since are put on top of what the folder was before. Where both changed the same lines
nothing is done, and the files are told. The undone versions stay in the history. Killed at any point, the next command
or pass finishes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import msgspec

from stillroom.config import Settings
from stillroom.errors import HistoryError, WorkspaceError
from stillroom.store import Store
from stillroom.undoing import unfinished
from stillroom.undoing.cleaning import settle
from stillroom.undoing.merging import Files, Merge, is_edit, publishable, written_by_code
from stillroom.undoing.restoring import outputs_in
from stillroom.undoing.unfinished import Undoing
from stillroom.undoing.versions import Version, open_history, parent_of, resolve, versions
from stillroom.workspace import artifacts
from stillroom.workspace.git import Content
from stillroom.workspace.history import History, gather
from stillroom.workspace.journal import Checkpoint, nothing
from stillroom.workspace.layout import LINES, may_publish
from stillroom.workspace.publish import PublishReport
from stillroom.workspace.removing import rewrite_statements
from stillroom.workspace.staging import Staging, open_staging
from stillroom.workspace.syncing import sync
from stillroom.workspace.trailers import UNDOES
from stillroom.workspace.tree import drop, opened, parent, shown, write_new


class UndoPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What goes, and what stays."""

    #: The consolidations, newest first.
    undone: tuple[Version, ...]
    #: `A|M|D path` against the folder as it is now.
    changes: tuple[str, ...]
    #: Versions that a person made since, which stay.
    edits: tuple[Version, ...]
    #: Files in which a person's edit can't be told from what goes.
    conflicts: tuple[str, ...]


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    written: tuple[str, ...]
    deleted: tuple[str, ...]
    #: Changed by a person meanwhile, and left alone.
    kept_for_user: tuple[str, ...]
    #: Outputs that stay out of the memory until their threads change, or `stillroom redo`.
    held_out: int
    commit: str | None


class UndoPlan(msgspec.Struct, frozen=True):
    """What is to be taken back, and what a person is shown of it."""

    work: Undoing
    preview: UndoPreview


def plan_undo(
    settings: Settings, history: History, revision: str | None, *, now: int, discard_edits: bool = False
) -> UndoPlan:
    """Work out what goes: the last consolidation, or this one and everything after it. Changes nothing.

    Raises `HistoryError` when there is nothing to take back, or the version is no consolidation.
    """
    every = versions(history)
    first = _first(every, None if revision is None else resolve(history, revision))
    number = next(n for n, version in enumerate(every) if version.commit == first.commit)
    work = Undoing(run=f"{now}-{uuid.uuid4().hex[:8]}", first=first.run or "", discard_edits=discard_edits, at=now)
    wanted, conflicts = _wanted(settings, history, every, first)
    contents, _ = gather(settings.root, {}, limits=settings.stage_two)
    present = {path: content for path, content in contents.items() if may_publish(path)}
    preview = UndoPreview(
        undone=tuple(version for version in every[: number + 1] if version.is_consolidation or version == first),
        changes=tuple(_changes(present, wanted)),
        edits=tuple(version for version in every[:number] if is_edit(version)),
        conflicts=tuple(map(shown, sorted(conflicts))),
    )
    return UndoPlan(work, preview)


def undo(settings: Settings, store: Store, plan: UndoPlan, *, checkpoint: Checkpoint = nothing) -> Undone:
    """Carry the plan out. For whoever works alone (`undoing.alone`). Raises `WorkspaceError`, having changed nothing,
    for edits that can't be kept."""
    if plan.preview.conflicts and not plan.work.discard_edits:
        raise WorkspaceError(
            f"your edits of {', '.join(f'`{path}`' for path in plan.preview.conflicts)} touch what is taken back; "
            "nothing was changed",
            hint="`stillroom undo --discard-edits` gives them up; the history keeps them",
        )
    settle(settings)
    unfinished.begin(settings.home, plan.work)
    checkpoint("begun")
    done = finish_undo(settings, store, plan.work, checkpoint=checkpoint)
    assert done is not None
    return done


def finish_undo(settings: Settings, store: Store, work: Undoing, *, checkpoint: Checkpoint = nothing) -> Undone | None:
    """Do all of it, whatever of it is done already; None when the folder had gone back before."""
    history = open_history(settings)
    every = versions(history)
    first = next((version for version in every if version.is_undoable and version.run == work.first), None)
    if first is None:
        raise HistoryError("the version that is to be undone is not in the history any more")
    before = parent_of(history, first.commit)
    # 1. The database: what the folder rested on then is what it rests on now, and what was removed may come back.
    store.tombstones.lift(run=work.first)
    held_out = store.consolidation.undo(outputs_in(written_by_code(history.repository, before), at=first.at))
    checkpoint("database gone back")
    # 2. The folder, as any result comes into it.
    done = None
    if every[0].run != work.run or every[0].undoes is None:
        wanted, conflicts = _wanted(settings, history, every, first)
        if conflicts and not work.discard_edits:
            unfinished.end(settings.home)
            raise WorkspaceError("the folder was edited meanwhile", hint="say `stillroom undo` again")
        report = _publish(settings, store, history, work, wanted, f"Undo {_called(first)}", checkpoint)
        done = Undone(
            written=report.written,
            deleted=report.deleted,
            kept_for_user=report.kept_for_user,
            held_out=held_out,
            commit=report.commit,
        )
    # 3. The copy that session starts read.
    (settings.home / "recall.json").unlink(missing_ok=True)
    unfinished.end(settings.home)
    checkpoint("ended")
    return done


def _first(every: Sequence[Version], commit: str | None) -> Version:
    """The oldest version to take back."""
    standing = _standing(every)
    if commit is None:
        if not standing:
            raise HistoryError("there is no consolidation to undo", hint="`stillroom log` lists the versions")
        return standing[0]
    version = next(version for version in every if version.commit == commit)
    if not version.is_undoable:
        raise HistoryError(
            f"`{commit[:10]}` is no consolidation: {version.subject}",
            hint="`stillroom redo` takes an undo back" if version.undoes else "`stillroom log` lists the versions",
        )
    if version not in standing:
        raise HistoryError(f"`{commit[:10]}` is undone already", hint="`stillroom redo` takes an undo back")
    return version


def _standing(every: Sequence[Version]) -> list[Version]:
    """Consolidations, removals and edits that were not undone, newest first."""
    standing: list[Version] = []
    number = 0
    while number < len(every):
        version = every[number]
        number += 1
        if version.undoes is not None:
            gone = [n for n, each in enumerate(every) if each.is_undoable and each.run == version.undoes]
            number = max(number, *(n + 1 for n in gone)) if gone else number
        elif version.is_undoable:
            standing.append(version)
    return standing


def _wanted(settings: Settings, history: History, every: Sequence[Version], first: Version) -> tuple[Files, set[str]]:
    """What the folder becomes, as far as a consolidation may write it, and where edits stand in the way."""
    repository = history.repository
    merge = Merge(repository, publishable(repository, parent_of(history, first.commit)))
    number = next(n for n, version in enumerate(every) if version.commit == first.commit)
    for version in reversed(every[:number]):
        if is_edit(version):
            merge.apply(
                publishable(repository, parent_of(history, version.commit)), publishable(repository, version.commit)
            )
    head = publishable(repository, every[0].commit)
    contents, _ = gather(settings.root, {}, limits=settings.stage_two)
    merge.apply(head, {path: content for path, content in contents.items() if may_publish(path)})
    return merge.files, merge.conflicts


def _publish(
    settings: Settings,
    store: Store,
    history: History,
    work: Undoing,
    wanted: Files,
    subject: str,
    checkpoint: Checkpoint,
) -> PublishReport:
    memories, limits = settings.memories, settings.stage_two
    staging = open_staging(
        settings.root, settings.staging, history, run_id=work.run, limits=limits, checkpoint=checkpoint
    )
    with staging:
        selection = store.consolidation.select(
            limit=memories.max_raw_memories_for_consolidation, max_unused_days=memories.max_unused_days
        )
        if selection.on_disk or (staging.path / artifacts.RAW_MEMORIES).exists():
            sync(staging.path, artifacts.render(selection.on_disk), present=staging.copied)
        staging.seal()
        _put(staging, wanted)
        if buried := store.tombstones.buried():
            rewrite_statements(staging.path, buried)
        return staging.publish(f"{subject}\n\n{UNDOES}: {work.first}", now=work.at)


def _put(staging: Staging, wanted: Files) -> None:
    """Make what a consolidation may write exactly this."""
    present = [path for path in staging.seen if may_publish(path)]
    with opened(staging.path) as root:
        for path in present:
            with parent(root, path, create=False) as (folder, name):
                drop(folder, name)
        for path, content in wanted.items():
            with parent(root, path, create=True) as (folder, name):
                write_new(folder, name, content.data, executable=content.executable, durable=False)


def _changes(old: Files, new: Files) -> list[str]:
    kinds: list[tuple[str, Content | None, Content | None]] = [
        (path, old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys())
    ]
    return [
        f"{'A' if before is None else 'D' if after is None else 'M'} {shown(path)}"
        for path, before, after in kinds
        if before != after and path != LINES
    ]


def _called(version: Version) -> str:
    return f"“{version.subject}”"
