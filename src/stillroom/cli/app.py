"""The tree of commands, and what becomes of their errors.

Exit codes: 0 done, or nothing to do; 1 something failed and the report says what; 2 the command line or the settings
can't be used; 130 interrupted, 143 and 129 ended by SIGTERM and SIGHUP; 141 nobody reads what is printed (`| head`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from stillroom.cli.output import prepare_stdout, print_error
from stillroom.cli.signals import Stopped
from stillroom.command_line.command import Group
from stillroom.command_line.running import run
from stillroom.errors import CommandLineError, ConfigError, StillroomError, way_out

_BUDGET = """The token budgets that trees of sessions share.

```
stillroom budget status
stillroom budget serve --limit 2000000 --upstream https://api.openai.com/v1
```
"""
#: Where each command is: imported when it is called, or listed.
COMMANDS: dict[str, str | Group] = {
    "init": "stillroom.integrations.commands:init_command",
    "uninit": "stillroom.integrations.commands:uninit_command",
    "run": "stillroom.cli.run:run_command",
    "status": "stillroom.cli.status:status_command",
    "threads": "stillroom.cli.threads:threads_command",
    "explain": "stillroom.cli.explain:explain_command",
    "doctor": "stillroom.integrations.doctor_command:doctor_command",
    "why": "stillroom.cli.why:why_command",
    "coverage": "stillroom.cli.coverage:coverage_command",
    "eval": "stillroom.cli.evaluate:eval_command",
    "recall": "stillroom.cli.recall:recall_command",
    "search": "stillroom.cli.search:search_command",
    "list": "stillroom.cli.folder:list_command",
    "read": "stillroom.cli.folder:read_command",
    "note": "stillroom.cli.note:note_command",
    "log": "stillroom.cli.versions:log_command",
    "diff": "stillroom.cli.versions:diff_command",
    "undo": "stillroom.cli.undo:undo_command",
    "redo": "stillroom.cli.undo:redo_command",
    "review": "stillroom.cli.review:review_command",
    "rm": "stillroom.cli.remove:rm_command",
    "edit": "stillroom.cli.edit:edit_command",
    "forget": "stillroom.cli.forget:forget_command",
    "redact": "stillroom.cli.redact:redact_command",
    "pause": "stillroom.cli.switches:pause_command",
    "resume": "stillroom.cli.switches:resume_command",
    "memories": "stillroom.cli.switches:memories_command",
    "projects": "stillroom.cli.projects:projects_command",
    "share": "stillroom.cli.share:share_command",
    "ingest": "stillroom.cli.ingest:ingest_command",
    "export": "stillroom.cli.export:export_command",
    "budget": Group(
        ("stillroom", "budget"),
        _BUDGET,
        {"serve": "stillroom.service.command:serve_command", "status": "stillroom.cli.budget:status_command"},
    ),
    "mcp": "stillroom.mcp.command:mcp_command",
}
#: What these do is done file by file, each whole.
_ONE_BY_ONE = frozenset({"init", "uninit", "doctor"})

STILLROOM = Group(
    ("stillroom",), "Distils the finished sessions of coding agents into memory that later sessions use.", COMMANDS
)


def run_command(tokens: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    prepare_stdout()
    if "" in tokens:
        # `--home "$UNSET"` would mean the current folder.
        print_error("an argument is empty", hint="is a variable of your shell not set?")
        return 2
    try:
        return run(STILLROOM, tokens)
    except (CommandLineError, ConfigError) as error:
        print_error(str(error), hint=error.hint)
        return 2
    except StillroomError as error:
        print_error(str(error), hint=error.hint)
        return 1
    except BrokenPipeError:
        # What is still to be written would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        # Whatever the system refuses anywhere: a full disk, a file that may not be written, too many open files.
        if _folder_is_gone():
            print_error("the folder that you are in is gone", hint="change to another one: `cd`")
            return 1
        where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "the disk"
        print_error(f"`{where}`: {error.strerror or error}", hint=way_out(error, where))
        return 1
    except KeyboardInterrupt:
        return _interrupted(tokens, 130)
    except Stopped as stopped:
        return _interrupted(tokens, stopped.exit_code)


def _folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _interrupted(tokens: Sequence[str], exit_code: int) -> int:
    """Say what is so: what takes back or writes the memory folder may be cut off, and is then finished later."""
    # A terminal has just written `^C` behind whatever stood there.
    start = "\n" if sys.stderr.isatty() else ""
    print(f"{start}interrupted; {_left(tokens)}", file=sys.stderr)
    return exit_code


def _left(tokens: Sequence[str]) -> str:
    # Nearly no call is interrupted: none has to load these.
    from stillroom.config import default_home
    from stillroom.undoing.finishing import is_begun

    if is_begun(_home(tokens) or default_home(os.environ)):
        return "what was begun is finished by the next pass, or the next command that takes something back"
    if tokens[0] in _ONE_BY_ONE:
        return "nothing is left half done; say it again for the rest"
    return "nothing is left half done"


def _home(tokens: Sequence[str]) -> Path | None:
    for name, value in pairwise([*tokens, ""]):
        if name == "--home":
            return Path(value)
        if name.startswith("--home="):
            return Path(name.removeprefix("--home="))
    return None
