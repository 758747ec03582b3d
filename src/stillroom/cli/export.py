"""`stillroom export`: one thread as a file for other programs, or for people."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from stillroom.cli.options import Flag, current_settings, option
from stillroom.cli.output import print_data, print_lines
from stillroom.cli.progress import progress_bars
from stillroom.clock import SystemClock
from stillroom.errors import RecordingError, way_out
from stillroom.recording.exporting.export import ExportFormat, export_thread, find_thread


def export_command(
    thread: str,
    /,
    *,
    format: ExportFormat,
    output: Path | None = None,
    overwrite: Flag = False,
    max_chars: Annotated[int | None, option(at_least=2)] = None,
) -> int:
    """Write one session, of whichever agent, as an ATIF trajectory, a Codex rollout or a Markdown page.

    Secrets are redacted, and nothing is cut: whatever its length, the session is read and written piece by piece.

    ```
    stillroom export 01a2273c-0036 --format markdown
    stillroom export 01a2273c-0036 --format atif --output trajectory.json
    ```

    Parameters
    ----------
    thread
        The thread's id, or as much of its beginning as no other id has; `stillroom threads` lists them.
    format
        `atif` (version 1.8, JSON), `codex` (JSON lines) or `markdown`.
    output
        The file to write, for its owner only. Default: standard output.
    overwrite
        Replace the file if it is there.
    max_chars
        Cut the middle of every message and result that is longer; not in a Codex rollout.
    """
    settings = current_settings().impatient
    if output is not None:
        _check(output, overwrite=overwrite)
    found = find_thread(settings, thread, clock=SystemClock())
    with progress_bars(wanted=output is not None) as listen:
        parts = export_thread(settings, found, format=format, max_chars=max_chars, on_progress=listen)
        if output is None:
            _print(parts)
        else:
            _write(output, parts)
    if output is not None:
        print_lines([(None, f"`{found.thread_id}` is in `{output}`")])
    return 0


def _print(parts: Iterable[bytes]) -> None:
    if sys.stdout.isatty():
        for part in parts:
            print_data(part.decode("utf-8", "replace"), end="")
        return
    for part in parts:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def _check(output: Path, *, overwrite: bool) -> None:
    try:
        status = output.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordingError(f"`{output}` can't be written: {error.strerror}", hint=way_out(error, output)) from error
    if not stat.S_ISREG(status.st_mode):
        raise RecordingError(f"`{output}` is no plain file", hint="without `--output` it goes to standard output")
    if not overwrite:
        raise RecordingError(f"`{output}` is there already", hint="`--overwrite` replaces it")


def _write(output: Path, parts: Iterable[bytes]) -> None:
    """The whole file, or none: whatever was there stays until all of the new one is on the disk."""
    try:
        descriptor, name = tempfile.mkstemp(
            dir=output.absolute().parent, prefix=f".{output.name}.", suffix=".stillroom"
        )
        try:
            with open(descriptor, "wb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(output)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RecordingError(f"`{output}` can't be written: {error.strerror}", hint=way_out(error, output)) from error
