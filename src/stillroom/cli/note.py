"""`stillroom note`: leaves a note, lists the notes, takes one away."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec

from stillroom.cli.options import WORDS, Flag, current_settings
from stillroom.cli.output import print_data, print_json, print_lines
from stillroom.clock import SystemClock
from stillroom.config import LOOKUP, OFFLINE, Settings
from stillroom.errors import CommandLineError


class _Listed(msgspec.Struct, frozen=True):
    path: str
    text: str


class _Notes(msgspec.Struct, frozen=True):
    notes: list[_Listed]


class _Removed(msgspec.Struct, frozen=True):
    removed: str
    text: str


def note_command(
    words: Annotated[list[str] | None, WORDS] = None,
    /,
    *,
    cwd: Path | None = None,
    name: str | None = None,
    list: Flag = False,
    remove: str | None = None,
    json: Flag = False,
) -> int:
    """Leave a note. Every session that starts from now on is given it.

    It is given in every project, unless `--cwd` says in which, and never expires. Secrets in it are redacted. The next
    `stillroom run` takes it into `MEMORY.md`. An existing note is never changed.

    ```
    stillroom note Answer in German.
    stillroom note --cwd . "Deploys go out on Tuesdays, never on Fridays."
    git log -1 --format=%B | stillroom note -    # what it reads is the note
    stillroom note --list
    stillroom note --remove answer-in-german
    ```

    Parameters
    ----------
    words
        What to remember, in Markdown; `-`: what is read from standard input.
    cwd
        Only for the project of this folder.
    name
        The file name, `YYYY-MM-DDTHH-MM-SS-<slug>.md`. Default: made of the time and the text.
    list
        List the notes, newest first.
    remove
        Take the note away whose file name has this in it. `stillroom undo` brings it back once a pass noted that.
    json
        Print `{path, text}` as JSON; with `--list` `{notes: [{path, text}]}`, with `--remove` `{removed, text}`.
    """
    settings = current_settings()
    if sum((bool(words), list, remove is not None)) != 1:
        raise CommandLineError(
            "what is the note?" if not (words or list or remove) else "only one of WORDS, `--list` and `--remove`",
            hint="`stillroom note Answer in German.`, `stillroom note --list`",
        )
    if list:
        return _list(settings, json=json)
    if remove is not None:
        return _remove(settings, remove, json=json)
    text = _read() if words == ["-"] else " ".join(words or ())
    return _add(settings, text, name=name, cwd=cwd, json=json)


def _add(settings: Settings, text: str, *, name: str | None, cwd: Path | None, json: bool) -> int:
    from stillroom.recall.browse.notes import add_note  # the rules of redaction take a tenth of a second to load

    style = settings.memories.redaction
    note = add_note(settings.root, text, name=name, cwd=cwd, clock=SystemClock(), redaction=style)
    if json:
        print_json(note)
        return 0
    print_data(note.path)
    if not note.text.endswith(text):
        print_lines([("yellow", "what looked like a secret was taken out")])
    offline = settings.memories.consolidation_model == OFFLINE
    when = "the next `stillroom run`" if offline else "the next consolidation"
    print_lines([(None, f"sessions are given it from now on; {when} takes it into MEMORY.md")])
    return 0


def _list(settings: Settings, *, json: bool) -> int:
    from stillroom.recall.browse.notes import list_notes

    found = [_Listed(note.path, note.text) for note in list_notes(settings.root)]
    if json:
        print_json(_Notes(found))
        return 0
    for note in found:
        print_data(f"{Path(note.path).name}  {' '.join(note.text.split())[:_SHOWN_CHARS]}")
    if not found:
        print_lines([("yellow", "there are no notes")])
    return 0


def _remove(settings: Settings, wanted: str, *, json: bool) -> int:
    from stillroom.recall.browse.notes import remove_note

    gone = remove_note(settings.root, wanted)
    if json:
        print_json(_Removed(gone.path, gone.text))
        return 0
    print_data(gone.path)
    print_lines([(None, f"removed: {' '.join(gone.text.split())[:_SHOWN_CHARS]}")])
    return 0


def _read() -> str:
    """What stands on standard input, as far as a note may be long and one byte more."""
    return sys.stdin.buffer.read(LOOKUP.max_note_bytes + 1).decode("utf-8", "replace").strip()


_SHOWN_CHARS = 100
