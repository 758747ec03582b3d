"""`stillroom list` and `read`: the memory folder, as its tools show it to an agent."""

from __future__ import annotations

from typing import Annotated

from stillroom.cli.options import Flag, current_settings, option
from stillroom.cli.output import print_data, print_json, print_lines
from stillroom.recall.browse.listing import list_memories
from stillroom.recall.browse.reading import read_memory


def list_command(
    path: str | None = None,
    /,
    *,
    cursor: str | None = None,
    max_results: Annotated[int | None, option("--limit", "-n", at_least=1)] = None,
    json: Flag = False,
) -> int:
    """List what is in the memory folder, or in a folder of it.

    Folders end with a slash. Links, special files and hidden names are not shown.

    ```
    stillroom list
    stillroom list rollout_summaries --limit 20
    ```

    Parameters
    ----------
    path
        A folder, relative to the memory folder. Default: the memory folder itself.
    cursor
        Where to go on: what the page before said.
    max_results
        At most so many entries, up to 2,000.
    json
        Print `{path, entries, next_cursor, truncated}` as JSON.
    """
    settings = current_settings()
    listing = list_memories(settings.root, path=path, cursor=cursor, max_results=max_results)
    if json:
        print_json(listing)
        return 0
    for entry in listing.entries:
        print_data(entry.path + ("/" if entry.entry_type == "directory" else ""))
    say_more(listing.next_cursor)
    return 0


def read_command(
    path: str,
    /,
    *,
    line: Annotated[int, option(at_least=1)] = 1,
    lines: Annotated[int | None, option(at_least=1)] = None,
    json: Flag = False,
) -> int:
    """Print a file of the memory folder, or some of its lines.

    An answer of more than 20,000 tokens (four bytes each) is cut in the middle, and says so.

    ```
    stillroom read MEMORY.md --line 40 --lines 20
    ```

    Parameters
    ----------
    path
        The file, relative to the memory folder: `MEMORY.md`, `rollout_summaries/….md`.
    line
        The first line to print, counted from 1.
    lines
        Print at most so many lines. Default: all.
    json
        Print `{path, start_line_number, content, truncated}` as JSON.
    """
    settings = current_settings()
    reading = read_memory(settings.root, path, line_offset=line, max_lines=lines)
    if json:
        print_json(reading)
        return 0
    print_data(reading.content, end="" if reading.content.endswith("\n") else "\n")
    if reading.truncated and lines is None:
        print_lines([("yellow", "cut in the middle: --line and --lines show the rest")])
    return 0


def say_more(next_cursor: str | None) -> None:
    """On stderr: how to see the next page, if there is one."""
    if next_cursor is not None:
        print_lines([("yellow", f"there is more: --cursor {next_cursor}")])
