"""`stillroom share`: what of the memory could stand in the project's own AGENTS.md?"""

from __future__ import annotations

from pathlib import Path

from stillroom.cli.options import Flag, current_settings
from stillroom.cli.output import print_data, print_json, print_lines
from stillroom.recall.injection.sharing import propose
from stillroom.wording import many


def share_command(
    *,
    cwd: Path | None = None,
    file: str | None = None,
    json: Flag = False,
) -> int:
    """Print a patch that adds your wishes for this project to its AGENTS.md, for you to look at and apply.

    So others who work on it, and agents without Stillroom, go by them too. They are in your words, without those that
    the file has. Nothing is written: take out of the patch what is yours alone.

    ```
    stillroom share
    stillroom share > wishes.patch
    stillroom share --file docs/rules.md --cwd ~/src/shop
    ```

    Parameters
    ----------
    cwd
        A folder of the project. Default: the current folder.
    file
        The file to add to, from the top of the project. Default: `AGENTS.md`, or `CLAUDE.md` if only that is there.
    json
        Print `{file, folder, rules, patch}` as JSON.
    """
    settings = current_settings().impatient
    found = propose(settings, (cwd or Path()).absolute(), file=file)
    if json:
        print_json(found)
        return 0
    if not found.rules:
        print_lines([("yellow", f"nothing is remembered of this project that `{found.file}` does not say")])
        return 0
    print_data(found.patch, end="")
    apply = f"`git apply` in `{found.folder}` adds {many(len(found.rules), 'line')}; take out what is yours alone"
    print_lines([(None, apply)])
    return 0
