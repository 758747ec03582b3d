"""`stillroom redact --retro`: the present rules, applied to what was stored under earlier ones."""

from __future__ import annotations

import msgspec

from stillroom.cli.alone import store_alone
from stillroom.cli.asking import agrees
from stillroom.cli.forget import lines_left
from stillroom.cli.options import Flag, Yes, current_settings
from stillroom.cli.output import console, print_json, print_lines
from stillroom.clock import SystemClock
from stillroom.errors import ConfigError
from stillroom.undoing.redacting import Kind, Redacted, find_secrets, redact_stored
from stillroom.wording import plain

_SHOWN = 4


class _Answer(msgspec.Struct, frozen=True):
    kinds: tuple[Kind, ...]
    done: Redacted | None


def redact_command(
    *,
    retro: Flag = False,
    dry_run: Flag = False,
    yes: Yes = False,
    json: Flag = False,
) -> int:
    """Take out of everything that is stored what today's rules know as a secret, and say which kinds to rotate.

    Secrets are redacted before anything is stored; rules that came later have not seen what was stored before. This
    goes through the memory folder, all its versions, the state database and the logs. The secrets are never shown.

    ```
    stillroom redact --retro --dry-run   # which kinds, and where
    stillroom redact --retro
    ```

    Parameters
    ----------
    retro
        Look back at everything that is stored. There is nothing else to redact: say it, so that it is meant.
    dry_run
        Only show what would be taken out.
    yes
        Don't ask.
    json
        Print `{kinds, done}` as JSON.
    """
    if not retro:
        raise ConfigError("what is new is redacted by itself", hint="`--retro` looks back at what is stored")
    settings = current_settings().impatient
    if not any(path.exists() for path in (settings.database, settings.root, settings.history)):
        print_lines([("yellow", "there is no memory yet")])
        if json:
            print_json(_Answer((), None))
        return 0
    clock = SystemClock()
    with store_alone(settings, clock) as store:
        kinds = find_secrets(settings, store)
        if not json:
            _show(kinds)
        if dry_run or not kinds:
            if json:
                print_json(_Answer(kinds, None))
            return 0
        if not yes and not agrees("Take them out of everything that is stored?"):
            return 1
        done = redact_stored(settings, store, now=clock.now())
    print_json(_Answer(kinds, done)) if json else _tell(done)
    return 0 if done.is_complete else 1


def _show(kinds: tuple[Kind, ...]) -> None:
    out = console()
    if not kinds:
        out.print("no secret is stored that today's rules know", style="green")
    for kind in kinds:
        places = ", ".join(kind.places[:_SHOWN])
        more = f" and {len(kind.places) - _SHOWN:,} more" if len(kind.places) > _SHOWN else ""
        out.print(plain(f"{kind.secrets:,} × {kind.kind}  in {places}{more}"), style="yellow", markup=False)


def _tell(done: Redacted) -> None:
    out = console()
    out.print("taken out; what was known to a memory may be known to others: rotate", style="green", markup=False)
    for kind in done.kinds:
        out.print(plain(f"rotate  {kind.secrets:,} × {kind.kind}"), markup=False)
    print_lines(lines_left(done.left))
    for path in done.restless:
        out.print(plain(f"left: {path} was being changed all the time"), style="bold red", markup=False)
    if done.log_in_use:
        out.print("left: the database's log, which another process reads", style="bold red", markup=False)
