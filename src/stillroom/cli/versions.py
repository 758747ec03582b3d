"""`stillroom log` and `stillroom diff`: what became of the memory folder, consolidation by consolidation."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Annotated

import msgspec

from stillroom.cli.options import Flag, current_settings, flag, option
from stillroom.cli.output import print_data, print_json, print_lines
from stillroom.undoing.versions import Difference, Version, change_of, change_since, open_history, resolve, versions
from stillroom.wording import many

_COMMIT_CHARS = 10
_LISTED = 20


class _Log(msgspec.Struct, frozen=True):
    versions: list[Version]


def log_command(
    *,
    max_versions: Annotated[int, option("--limit", "-n", at_least=1)] = _LISTED,
    json: Flag = False,
) -> int:
    """List the versions of the memory folder, newest first: what each consolidation, edit and undo changed.

    ```
    stillroom log
    stillroom log --limit 100 --json
    ```

    Parameters
    ----------
    max_versions
        At most so many.
    json
        Print `{versions: [{commit, at, subject, changed, run, left}]}` as JSON.
    """
    settings = current_settings()
    if not settings.history.exists():
        if json:
            print_json(_Log([]))
        else:
            print_lines([("yellow", "there is no memory yet")])
        return 0
    found = versions(open_history(settings), limit=max_versions)
    if json:
        print_json(_Log(found))
        return 0
    for version in found:
        moment = datetime.fromtimestamp(version.at).astimezone().strftime("%Y-%m-%d %H:%M")
        print_data(f"{version.commit[:_COMMIT_CHARS]}  {moment}  {version.subject} ({_counted(version)})")
        for left in version.left:
            print_data(f"{'':{_COMMIT_CHARS}}  left: {left}")
    return 0


def diff_command(
    version: str = "HEAD",
    /,
    *,
    now: Flag = False,
    everything: Annotated[bool, flag("--all")] = False,
    json: Flag = False,
) -> int:
    """Show what a version of the memory folder changed: the newest one, if none is named.

    Of what Stillroom itself copies into the folder (`raw_memories.md`, `rollout_summaries/`) only `--all` tells.

    ```
    stillroom diff                       # what the last consolidation changed
    stillroom diff HEAD~2                # the one two before it
    stillroom diff HEAD --now            # what you edited since
    ```

    Parameters
    ----------
    version
        A commit of `stillroom log` (its first letters will do), or `HEAD`, `HEAD~1`, ….
    now
        Show instead how the folder differs by now from that version.
    everything
        Also what Stillroom copies.
    json
        Print `{before, after, diff, left_out}` as JSON.
    """
    settings = current_settings()
    if not settings.history.exists():
        if json:
            print_json(Difference(before=None, after=None, diff=""))
        else:
            print_lines([("yellow", "there is no memory yet")])
        return 0
    history = open_history(settings)
    commit = resolve(history, version)
    if now:
        found = change_since(history, commit, settings.root, everything=everything)
    else:
        found = change_of(history, commit, everything=everything)
    if json:
        print_json(found)
        return 0
    print_data(found.diff, end="")
    if not found.diff:
        print_lines([("yellow", "no difference" if not found.left_out else "no difference but in copies")])
    if found.left_out:
        print_lines([("yellow", f"{many(len(found.left_out), 'file is a copy', 'files are copies')}: --all shows all")])
    return 0


def _counted(version: Version) -> str:
    kinds = Counter(change[:1] for change in version.changed)
    words = (("A", "new"), ("M", "changed"), ("D", "gone"))
    return ", ".join(f"{kinds[kind]:,} {word}" for kind, word in words if kinds[kind]) or "no file changed"
