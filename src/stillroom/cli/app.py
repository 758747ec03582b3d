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

from cyclopts import App, CycloptsError

from stillroom import __version__
from stillroom.cli.output import print_error
from stillroom.cli.signals import Stopped
from stillroom.errors import ConfigError, StillroomError, way_out

app = App(
    name="stillroom",
    version=__version__,
    help="Distils the finished sessions of coding agents into memory that later sessions use.",
    help_format="markdown",
    suppress_keyboard_interrupt=False,
)
#: Where each command is: imported when it is called, or listed.
COMMANDS = {
    "init": "stillroom.integrations.commands:init_command",
    "uninit": "stillroom.integrations.commands:uninit_command",
    "run": "stillroom.cli.run:run_command",
    "status": "stillroom.cli.status:status_command",
    "threads": "stillroom.cli.threads:threads_command",
    "explain": "stillroom.cli.explain:explain_command",
    "doctor": "stillroom.integrations.doctor_command:doctor_command",
    "why": "stillroom.cli.why:why_command",
    "coverage": "stillroom.cli.coverage:coverage_command",
    "recall": "stillroom.cli.recall:recall_command",
    "search": "stillroom.cli.search:search_command",
    "list": "stillroom.cli.folder:list_command",
    "read": "stillroom.cli.folder:read_command",
    "note": "stillroom.cli.folder:note_command",
    "log": "stillroom.cli.versions:log_command",
    "diff": "stillroom.cli.versions:diff_command",
    "undo": "stillroom.cli.undo:undo_command",
    "redo": "stillroom.cli.undo:redo_command",
    "review": "stillroom.cli.review:review_command",
    "forget": "stillroom.cli.forget:forget_command",
    "redact": "stillroom.cli.redact:redact_command",
    "pause": "stillroom.cli.switches:pause_command",
    "resume": "stillroom.cli.switches:resume_command",
    "memories": "stillroom.cli.switches:memories_command",
    "ingest": "stillroom.cli.ingest:ingest_command",
    "export": "stillroom.cli.export:export_command",
    "budget": "stillroom.cli.budget:budget_app",
    "mcp": "stillroom.mcp.command:mcp_command",
}
#: What these do is done file by file, each whole.
_ONE_BY_ONE = frozenset({"init", "uninit", "doctor"})

for number, (command, place) in enumerate(COMMANDS.items()):
    app.command(place, name=command, sort_key=number)


def run_command(tokens: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    if "" in tokens:
        # `--home "$UNSET"` would mean the current folder.
        print_error("an argument is empty", hint="is a variable of your shell not set?")
        return 2
    if not tokens or tokens[0] in app.help_flags:
        for command in COMMANDS:
            app[command]  # a command that is not imported yet would be listed without its line
    if tokens[:1] == ["budget"] and (len(tokens) == 1 or tokens[1] in app.help_flags):
        app["budget"]["serve"]  # likewise
    try:
        result = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        print_error(str(error), hint="`stillroom --help` lists the commands")
        return 2
    except ConfigError as error:
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
        where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "the disk"
        print_error(f"`{where}`: {error.strerror or error}", hint=way_out(error, where))
        return 1
    except KeyboardInterrupt:
        return _interrupted(tokens, 130)
    except Stopped as stopped:
        return _interrupted(tokens, stopped.exit_code)
    return result if isinstance(result, int) else 0


def _interrupted(tokens: Sequence[str], exit_code: int) -> int:
    """Say what is so: what takes back or writes the memory folder may be cut off, and is then finished later."""
    print(f"interrupted; {_left(tokens)}", file=sys.stderr)
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
