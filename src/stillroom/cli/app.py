"""The tree of commands, and what becomes of their errors.

Exit codes: 0 done, or nothing to do; 1 something failed and the report says what; 2 the command line or the settings
can't be used; 130 interrupted, 143 and 129 ended by SIGTERM and SIGHUP; 141 nobody reads what is printed (`| head`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError

from stillroom.cli.options import Places, current_home, places
from stillroom.cli.output import prepare_stdout, print_error
from stillroom.cli.signals import Stopped
from stillroom.errors import CommandLineError, ConfigError, StillroomError, way_out


class Command(NamedTuple):
    """Where a command is, so that it is imported when it is called; and how `stillroom --help` lists it."""

    where: str
    group: str
    about: str


class Commands(NamedTuple):
    """Commands with a first word in common: `stillroom budget status`."""

    group: str
    about: str
    members: dict[str, Command]


_START, _DAILY, _CHANGE, _DATA, _SERVICE, _UPKEEP = "Start", "Every day", "Change", "Sessions", "Service", "Upkeep"
_WORDS = "Commands"
COMMANDS: dict[str, Command | Commands] = {
    "init": Command("stillroom.cli.setup:init_command", _START, "Connect Stillroom to your agents."),
    "uninit": Command("stillroom.cli.setup:uninit_command", _START, "Take Stillroom out of your agents' settings."),
    "run": Command("stillroom.cli.run:run_command", _DAILY, "Distil finished sessions into the memory."),
    "status": Command("stillroom.cli.status:status_command", _DAILY, "Show sessions, runs, memory and spending."),
    "recall": Command("stillroom.cli.recall:recall_command", _DAILY, "Show what a session in this folder is given."),
    "search": Command("stillroom.cli.search:search_command", _DAILY, "Search the memory."),
    "list": Command("stillroom.cli.folder:list_command", _DAILY, "List the memory folder."),
    "read": Command("stillroom.cli.folder:read_command", _DAILY, "Print a file of the memory folder."),
    "note": Command("stillroom.cli.note:note_command", _DAILY, "Add a note to the memory."),
    "why": Command("stillroom.cli.why:why_command", _DAILY, "Show where a line of the memory comes from."),
    "edit": Command("stillroom.cli.edit:edit_command", _CHANGE, "Edit the memory in your editor."),
    "rm": Command("stillroom.cli.remove:rm_command", _CHANGE, "Remove one statement for good."),
    "forget": Command(
        "stillroom.cli.forget:forget_command", _CHANGE, "Erase sessions, projects or phrases, with proof."
    ),
    "log": Command("stillroom.cli.versions:log_command", _CHANGE, "List the versions of the memory."),
    "diff": Command("stillroom.cli.versions:diff_command", _CHANGE, "Show what a version changed."),
    "undo": Command("stillroom.cli.undo:undo_command", _CHANGE, "Undo the last run."),
    "redo": Command("stillroom.cli.undo:redo_command", _CHANGE, "Redo what was undone."),
    "review": Command("stillroom.cli.review:review_command", _CHANGE, "Accept, edit or reject what waits for you."),
    "threads": Command(
        "stillroom.cli.threads:threads_command", _DATA, "List sessions and what the next run does with each."
    ),
    "explain": Command("stillroom.cli.explain:explain_command", _DATA, "Show why a session was or was not distilled."),
    "ingest": Command("stillroom.cli.ingest:ingest_command", _DATA, "Import sessions from a file."),
    "export": Command("stillroom.cli.export:export_command", _DATA, "Export a session."),
    "memories": Command("stillroom.cli.switches:memories_command", _DATA, "Switch memory on or off for a project."),
    "projects": Command("stillroom.cli.projects:projects_command", _DATA, "List projects, join or split them."),
    "share": Command("stillroom.cli.share:share_command", _DATA, "Write preferences to AGENTS.md, as a patch."),
    "pause": Command("stillroom.cli.switches:pause_command", _SERVICE, "Pause all runs."),
    "resume": Command("stillroom.cli.switches:resume_command", _SERVICE, "Resume runs."),
    "mcp": Command("stillroom.cli.mcp:mcp_command", _SERVICE, "Serve the memory over the Model Context Protocol."),
    "budget": Commands(
        _SERVICE,
        "Token budgets that trees of sessions share.",
        {
            "status": Command("stillroom.cli.budget:status_command", _WORDS, "Show what each tree has used."),
            "serve": Command("stillroom.cli.budget_serve:serve_command", _WORDS, "Hold agents to a budget: a gateway."),
        },
    ),
    "doctor": Command("stillroom.cli.doctor:doctor_command", _UPKEEP, "Find problems, and fix what is safe to fix."),
    "redact": Command("stillroom.cli.redact:redact_command", _UPKEEP, "Redact secrets in what is stored."),
    "eval": Command("stillroom.cli.evaluate:eval_command", _UPKEEP, "Measure the quality of the memory."),
}
_GLOBAL = Group("Global options", sort_key=10)
_GLOBAL_OPTIONS = frozenset(f"--{name}" for name in Places._fields)
#: What these do is done file by file, each whole.
_ONE_BY_ONE = frozenset({"init", "uninit", "doctor"})


def build_app(*, listing: bool) -> App:
    """All commands, none of them imported yet. With `listing` each has its line instead of its own help."""
    from stillroom import __version__

    app = App(
        name="stillroom",
        help="Distils the finished sessions of coding agents into memory that later sessions use.",
        help_format="markdown",
        version=__version__,
        version_flags=["--version", "-V"],
        default_parameter=Parameter(negative=()),
        group_parameters=Group("Options", sort_key=5),
        group_commands=_GLOBAL,
        suppress_keyboard_interrupt=False,
    )
    app.meta.suppress_keyboard_interrupt = False
    order = [_START, _DAILY, _CHANGE, _DATA, _SERVICE, _UPKEEP, _WORDS]
    groups = {name: Group(name, sort_key=number) for number, name in enumerate(order)}
    _add(app, COMMANDS, groups, listing=listing)

    @app.meta.default
    def launch(
        *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        home: Annotated[Path | None, Parameter(group=_GLOBAL)] = None,
        root: Annotated[Path | None, Parameter(group=_GLOBAL)] = None,
    ) -> int:
        """Run a command.

        Parameters
        ----------
        home
            Where Stillroom keeps its files. Default: `$STILLROOM_HOME`, else `~/.stillroom`.
        root
            The memory folder. Default: `memories.root` of the settings, else `memories` under the home.
        """
        places.set(Places(home, root))
        done = app(tokens, print_error=False, exit_on_error=False, result_action="return_value")
        return done if isinstance(done, int) else 0

    return app


def _add(app: App, commands: Mapping[str, Command | Commands], groups: Mapping[str, Group], *, listing: bool) -> None:
    for number, (name, command) in enumerate(commands.items()):
        group = groups[command.group]
        if isinstance(command, Command):
            about = command.about if listing else None
            app.command(command.where, name=name, group=group, sort_key=number, help=about)
        else:
            below = App(name=name, help=command.about, group=group, sort_key=number, group_commands=_GLOBAL)
            _add(below, command.members, groups, listing=listing)
            app.command(below)


def run_command(tokens: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    prepare_stdout()
    if "" in tokens:
        # `--home "$UNSET"` would mean the current folder.
        print_error("empty argument", hint="is a variable of your shell unset?")
        return 2
    before = places.set(Places())
    try:
        app = build_app(listing=_lists_commands(tokens))
        done = app.meta(_global_first(tokens), print_error=False, exit_on_error=False, result_action="return_value")
        return done if isinstance(done, int) else 0
    except CycloptsError as error:
        print_error(_sentence(error), hint=_usage(error))
        return 2
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
    finally:
        places.reset(before)


def _global_first(tokens: Sequence[str]) -> list[str]:
    """The same with `--home` and `--root` ahead of the command, wherever they stood: words of a command may begin with
    dashes, and would take them."""
    ahead: list[str] = []
    rest: list[str] = []
    given = iter(tokens)
    for token in given:
        if token == "--":
            rest += [token, *given]
        elif token in _GLOBAL_OPTIONS:
            value = list(islice(given, 1))
            (ahead if value else rest).extend([token, *value])
        elif token.partition("=")[0] in _GLOBAL_OPTIONS:
            ahead.append(token)
        else:
            rest.append(token)
    return ahead + rest


def _lists_commands(tokens: Sequence[str]) -> bool:
    """Whether the answer is a list of commands: no command is named, or only the first word of several."""
    options = {f"--{name}" for name in Places._fields}
    words = [token for before, token in pairwise(["", *tokens]) if before not in options and not token.startswith("-")]
    return not words or (len(words) == 1 and isinstance(COMMANDS.get(words[0]), Commands))


def _sentence(error: CycloptsError) -> str:
    """What was wrong, as our other errors begin: `unknown option: --plac. Did you mean --place?`"""
    error.verbose = False
    if isinstance(error, UnusedCliTokensError):
        return f"unexpected argument {', '.join(f'`{each}`' for each in error.unused_tokens or ())}"
    said = str(error).strip().split(" Available commands:")[0]
    return said[:1].lower() + said[1:]


def _usage(error: CycloptsError) -> str:
    words = " ".join(["stillroom", *(error.command_chain or ())])
    return f"`{words} --help` shows how it is used"


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
    from stillroom.undoing.finishing import is_begun

    if is_begun(current_home()):
        return "what was begun is finished by the next pass, or the next command that takes something back"
    if _ONE_BY_ONE.intersection(tokens):
        return "nothing is left half done; say it again for the rest"
    return "nothing is left half done"
