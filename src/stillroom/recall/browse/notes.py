"""Leaves, lists and removes notes: files in `extensions/ad_hoc/notes/` (spec §3.2, §1.9)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stillroom.clock import Clock
from stillroom.config import LOOKUP, Lookup, RedactionStyle
from stillroom.errors import InvalidRequest, PathRefused, RecallError, way_out
from stillroom.folders import unlink
from stillroom.recall.browse.note_names import NOTES, check_name, names_for
from stillroom.recall.browse.paths import opened_root, readable
from stillroom.recall.projects.repository import identify
from stillroom.rollouts.redact import redact
from stillroom.workspace.tree import names, parent, read_file, write_new

#: A longer one is no label (`telling.labels`): the note would be told everywhere.
_MAX_FOLDER_CHARS = 400
#: Of several that are meant, so many are named.
_NAMED = 5


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A note that is there now."""

    path: str
    #: What was written: the text without its secrets.
    text: str


def add_note(
    root: Path,
    text: str,
    *,
    name: str | None = None,
    cwd: Path | None = None,
    clock: Clock,
    redaction: RedactionStyle = "typed",
    limits: Lookup = LOOKUP,
) -> Note:
    """Write a new note; an existing one is never touched. Without a name, the clock and the text give it one.

    With `cwd` it begins with what says that it is for that folder's project alone. The folders on the way are made,
    the memory folder too.
    """
    if name is not None:
        check_name(name)
    redacted = redact(text, style=redaction)
    candidates = [name] if name is not None else names_for(redacted, now=clock.now())
    if cwd is not None and redacted.strip():
        redacted = f"{redact(_project(cwd), style=redaction)}{redacted}"
    data = redacted.encode("utf-8", "replace")
    if not redacted.strip():
        raise InvalidRequest("the note is empty")
    if len(data) > limits.max_note_bytes:
        raise InvalidRequest(
            f"the note has {len(data):,} bytes, {limits.max_note_bytes:,} are read", hint="write several notes"
        )
    _make(root)
    with opened_root(root) as descriptor:
        for candidate in candidates:
            try:
                with parent(descriptor, f"{NOTES}/{candidate}", create=True) as (folder, last):
                    write_new(folder, last, data, executable=False, durable=True)
                return Note(path=f"{NOTES}/{candidate}", text=data.decode())
            except FileExistsError:
                continue
            except NotADirectoryError as error:
                raise PathRefused(f"`{NOTES}` leads over a link or a file") from error
            except OSError as error:
                where = root / NOTES
                raise RecallError(
                    f"no note can be written to `{where}`: {error.strerror}", hint=way_out(error, root)
                ) from error
    raise InvalidRequest(f"`{candidates[0]}` already exists", hint="give it another name")


def list_notes(root: Path, *, limits: Lookup = LOOKUP) -> list[Note]:
    """Every note, newest file name first. No link is followed."""
    found: list[Note] = []
    try:
        with opened_root(root) as descriptor, parent(descriptor, f"{NOTES}/x.md", create=False) as (folder, _):
            for name in sorted(names(folder), reverse=True):
                try:
                    got = read_file(folder, name, max_bytes=limits.max_note_bytes) if name.endswith(".md") else None
                except OSError:  # a link
                    continue
                if got is not None:
                    found.append(Note(path=f"{NOTES}/{name}", text=got.data.decode("utf-8", "replace")))
    except (OSError, RecallError):
        return found
    return found


def remove_note(root: Path, wanted: str) -> Note:
    """Delete the one note whose file name is this, or has it in it. Raises `InvalidRequest` for none, or several."""
    notes = list_notes(root)
    found = [note for note in notes if Path(note.path).name in (wanted, f"{wanted}.md")]
    found = found or [note for note in notes if wanted and wanted in Path(note.path).name]
    if not found:
        raise InvalidRequest(f"no note is called `{readable(wanted)}`", hint="`stillroom note --list` lists them")
    if len(found) > 1:
        several = ", ".join(f"`{Path(note.path).name}`" for note in found[:_NAMED])
        raise InvalidRequest(f"`{readable(wanted)}` is in the names of {len(found)} notes: {several}")
    try:
        with opened_root(root) as descriptor, parent(descriptor, found[0].path, create=False) as (folder, name):
            unlink(folder, name)
    except OSError as error:
        raise RecallError(f"`{found[0].path}` can't be removed: {error.strerror}", hint=way_out(error, root)) from error
    return found[0]


def _project(cwd: Path) -> str:
    """The beginning of a line that is for one project; see `telling.labels`."""
    folder = identify(cwd).folder
    if not folder.isprintable() or ":" in folder or len(folder) > _MAX_FOLDER_CHARS:
        raise InvalidRequest(f"no note can be for `{readable(folder)}` alone: its path has colons, or is too long")
    return f"in {Path(folder).name} ({folder}): "


def _make(root: Path) -> None:
    try:
        root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise RecallError(
            f"the memory folder `{root}` can't be created: {error.strerror}", hint=way_out(error, root.parent)
        ) from error
