"""`stillroom recall`: what a session is given at its start."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import assert_never

import msgspec

from stillroom.cli.options import Flag, current_settings
from stillroom.cli.output import print_lines
from stillroom.recall.injection.instructions import Instructions, Nothing, instructions, shown


def recall_command(
    *,
    cwd: Path | None = None,
    json: Flag = False,
) -> int:
    """Print what a session in this folder is given of the memory when it starts.

    Nothing is printed when there is nothing to give: no memory yet, or `use_memories = false`. The reason is on stderr,
    and in the JSON.

    ```
    stillroom recall
    stillroom recall --cwd ~/src/shop
    stillroom recall --json | jq .left_out
    ```

    Parameters
    ----------
    cwd
        Where the session runs. Default: the current folder.
    json
        Print the text with what is known of it as JSON.
    """
    settings = current_settings()
    told = instructions(settings, str((cwd or Path()).absolute()))
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(_as_json(told)), indent=2).decode() + "\n")
        return 0
    match told:
        case Instructions():
            sys.stdout.write(told.text)
        case Nothing():
            print_lines([(None, f"A session is given nothing: {told.reason}.")])
        case _:
            assert_never(told)
    return 0


def _as_json(told: Instructions | Nothing) -> dict[str, object]:
    if isinstance(told, Nothing):
        return {"outcome": "nothing", "reason": told.reason}
    left, repository = told.left_out, told.repository
    return {
        "outcome": "told",
        "text": told.text,
        "tokens": told.tokens,
        "memory_tokens": told.memory_tokens,
        "receipt": told.receipt,
        "left_out": {
            "no_room": left.by_kind,
            "other_projects": left.other_projects,
            "bytes": left.bytes,
        },
        "version": told.version,
        "root": shown(told.root),
        "repository": {"folder": shown(repository.folder), "is_git": repository.is_git, "remote": repository.remote},
    }
