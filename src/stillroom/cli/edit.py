"""`stillroom edit`: a file of the memory, or a line of it, in a person's editor."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from stillroom.cli.editor import open_editor
from stillroom.cli.options import Flag, current_settings
from stillroom.cli.output import print_data, print_json, print_lines
from stillroom.clock import SystemClock
from stillroom.errors import InvalidArtifacts, WorkspaceError
from stillroom.undoing.alone import alone
from stillroom.undoing.editing import Edited, apply_edit, text_of
from stillroom.undoing.finishing import finish_if_begun
from stillroom.workspace.layout import HANDBOOK

_NUMBERED = re.compile(r"(?P<path>.+):(?P<line>\d{1,9})")


def edit_command(
    file: str = HANDBOOK,
    /,
    *,
    json: Flag = False,
) -> int:
    """Edit a file of the memory in `$VISUAL` or `$EDITOR`.

    The result is checked when the editor ends: it must keep its form and hold no secret. Then it is one version of
    the history, and `stillroom undo` takes it back. Your lines stay as they are in every later run, and what you took
    out stays out of this file; `stillroom rm` removes a statement everywhere.

    ```
    stillroom edit                       # MEMORY.md
    stillroom edit MEMORY.md:34          # at that line
    EDITOR=nano stillroom edit memory_summary.md
    ```

    Parameters
    ----------
    file
        `MEMORY.md`, `memory_summary.md`, a file under `skills/` or a note; with `:LINE` the editor begins there.
    json
        Print `{path, changed, commit}` as JSON.
    """
    settings = current_settings().impatient
    numbered = _NUMBERED.fullmatch(file)
    path = (numbered["path"] if numbered else file).removeprefix(f"{settings.root}/").removeprefix("./")
    clock = SystemClock()
    finish_if_begun(settings, clock)
    before = text_of(settings, path)
    folder = Path(tempfile.mkdtemp(prefix="stillroom-edit-"))
    copy = folder / Path(path).name
    copy.write_text(before, encoding="utf-8", errors="surrogateescape", newline="")
    try:
        open_editor([copy], line=int(numbered["line"]) if numbered else None)
        after = copy.read_bytes().decode("utf-8", "surrogateescape")
        with alone(settings.home):
            done = apply_edit(settings, path, before=before, after=after, now=clock.now())
    except (InvalidArtifacts, WorkspaceError):
        print_lines([("yellow", f"what you wrote is in {copy}")])
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    _tell(done, json=json)
    return 0


def _tell(done: Edited, *, json: bool) -> None:
    if json:
        print_json(done)
        return
    print_data(done.path)
    told = "`stillroom undo` takes the edit back" if done.commit else "kept" if done.changed else "nothing was changed"
    print_lines([(None, told)])
