"""Brings what a person edited into the memory folder: checked, in one version, which `undo` takes back."""

from __future__ import annotations

import uuid

import msgspec

from stillroom.config import Settings
from stillroom.errors import InvalidArtifacts, InvalidRequest, WorkspaceError
from stillroom.recall.browse.note_names import NOTES
from stillroom.rollouts.redact import secrets_in
from stillroom.undoing.cleaning import matching, settle
from stillroom.undoing.versions import EDIT
from stillroom.workspace.history import History
from stillroom.workspace.layout import LINES, may_publish
from stillroom.workspace.removing import put_text
from stillroom.workspace.staging import open_staging
from stillroom.workspace.tree import opened, parent, read_file, shown
from stillroom.workspace.validate import check_artifacts

#: What a person may leave out of, or put into, a text as they like; the rest is about the form that every reader needs.
_A_PERSON_S_OWN = frozenset({"collapse", "elision", "reference", "evidence", "instruction", "ignored"})


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an edit."""

    path: str
    changed: bool
    commit: str | None = None


def text_of(settings: Settings, path: str) -> str:
    """A file that may be edited. Raises `InvalidRequest` for another one."""
    if path == LINES or not (may_publish(path) or path.startswith(f"{NOTES}/")):
        raise InvalidRequest(
            f"`{shown(path)}` is made anew by every run: an edit of it would not last",
            hint="edit `MEMORY.md`, `memory_summary.md`, a skill or a note",
        )
    try:
        with opened(settings.root) as root, parent(root, path, create=False) as (folder, name):
            got = read_file(folder, name, max_bytes=settings.stage_two.max_file_bytes)
    except (OSError, WorkspaceError) as error:
        raise InvalidRequest(f"`{shown(path)}` is not there", hint="`stillroom list` shows what is") from error
    if got is None:
        raise InvalidRequest(f"`{shown(path)}` is no file that can be edited")
    return got.data.decode("utf-8", "surrogateescape")


def apply_edit(settings: Settings, path: str, *, before: str, after: str, now: int) -> Edited:
    """Put the edited text in the place of `before`. For whoever works alone (`undoing.alone`).

    Raises `InvalidArtifacts` for a text that no file of a memory folder may have, `WorkspaceError` when the file is not
    what it was any more. Nothing is changed then.
    """
    if after == before:
        return Edited(path=path, changed=False)
    if new := {secret.kind for secret in secrets_in(after)} - {secret.kind for secret in secrets_in(before)}:
        raise InvalidArtifacts(f"it holds what looks like a secret ({', '.join(sorted(new))}); nothing was changed")
    settle(settings)
    if text_of(settings, path) != before:
        raise WorkspaceError(f"`{shown(path)}` was changed meanwhile; nothing of yours was written")
    history = History(settings.history, limits=settings.stage_two)
    history.ensure(settings.root, now=now)
    if not may_publish(path):
        put_text(settings.root, path, after)
        return Edited(path=path, changed=True)
    run = f"{now}-{uuid.uuid4().hex[:8]}"
    with open_staging(settings.root, settings.staging, history, run_id=run, limits=settings.stage_two) as staging:
        staging.seal()
        put_text(staging.path, path, after)
        findings = check_artifacts(staging.path, before=staging.before(), limits=settings.stage_two)
        wrong = [str(each) for each in findings if each.fatal and each.rule not in _A_PERSON_S_OWN]
        if wrong:
            raise InvalidArtifacts(f"{wrong[0]}; nothing was changed")
        report = staging.publish(f"{EDIT}{shown(path)}", now=now)
    if report.kept_for_user:
        raise WorkspaceError(f"`{shown(path)}` was changed meanwhile; nothing of yours was written")
    for file in matching(settings.home, ("recall.json",)):
        file.unlink(missing_ok=True)
    return Edited(path=path, changed=True, commit=report.commit)


__all__ = ["Edited", "apply_edit", "text_of"]
