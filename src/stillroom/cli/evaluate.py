"""`stillroom eval`: how good is the memory?"""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

from stillroom.cli.asking import agrees
from stillroom.cli.options import Flag, Yes, current_settings, option
from stillroom.cli.output import Line, print_answer, print_lines
from stillroom.cli.progress import progress_bars
from stillroom.clock import SystemClock
from stillroom.config import OFFLINE, Settings
from stillroom.errors import ConfigError
from stillroom.evaluate.downloads import Published, download
from stillroom.evaluate.evaluation import DEFAULT_SETS, Estimate, estimates, evaluate, find_set, read_chats
from stillroom.evaluate.mine import measure_mine
from stillroom.evaluate.table import as_json, mine_lines, table_lines
from stillroom.store import Store


def eval_command(
    *,
    set: list[str] | None = None,
    engine: list[str] | None = None,
    limit: Annotated[int | None, option(at_least=1)] = None,
    mine: Flag = False,
    days: Annotated[int, option(at_least=1)] = 90,
    dry_run: Flag = False,
    yes: Yes = False,
    verbose: Flag = False,
    json: Flag = False,
) -> int:
    """Measure how good a memory the engines make: what is kept, told and given, and what should not be.

    Labelled sessions are distilled in a throw-away home; yours is not touched. `docs/eval.md` explains every row.

    ```
    stillroom eval                                          # the sets that ship with Stillroom
    stillroom eval --set devmembench                        # a public set; asks before it is fetched
    stillroom eval --engine offline --engine openai:gpt-5-mini --limit 10
    stillroom eval --set ~/my-labelled-sessions --json | jq .sets
    stillroom eval --mine                                   # your own sessions and memory; no text leaves the machine
    ```

    Parameters
    ----------
    set
        What to measure by: `heldout`, `blind` and `life` ship with Stillroom and are the default; `devmembench` and
        `remem` are fetched; else a folder or file of your own.
    engine
        Who distils: `offline`, or `provider:model`; `provider:model+offline` extracts with the model and consolidates
        without. Said several times, they stand side by side.
    limit
        At most so many sessions of each set, from all over it. The set `life` is always whole.
    mine
        Look at your own sessions instead: what you had to say twice, which failures came again although memory told
        the cure, what of the memory was cited or followed. `stillroom threads` looks for new sessions first.
    days
        With `--mine`: sessions that were active in so many days.
    dry_run
        Only tell what would be fetched, and what models would be sent and cost at list price.
    yes
        Don't ask before a set is fetched, or before a model is called that costs something.
    verbose
        Show every line that was given in another project, or that no longer holds; with `--mine` every finding.
    json
        Print everything as JSON.
    """
    settings = current_settings()
    if mine:
        if set or engine or limit:
            raise ConfigError("`--mine` looks at your own memory: `--set`, `--engine` and `--limit` don't go with it")
        return _mine(settings.impatient, days=days, verbose=verbose, json=json)
    engines = list(dict.fromkeys(engine or [OFFLINE]))
    sets = []
    for name in dict.fromkeys(set or DEFAULT_SETS):
        found = find_set(name, home=settings.home, limit=limit)
        if isinstance(found, Published):
            if dry_run:
                print_lines([(None, _offer(found))])
                continue
            if not (yes or agrees(_offer(found))):
                return 1
            found = read_chats(download(found, settings.home), limit=limit)
        sets.append(found)
    expected = [each for each in estimates(sets, engines, settings.providers) if each.usd != 0]
    print_lines(_priced(expected))
    if dry_run:
        return 0
    if expected and not (yes or agrees("Send this to the models?")):
        return 1
    with progress_bars(wanted=True) as listen:
        results = list(evaluate(sets, engines, providers=settings.providers, on_progress=listen))
    if json:
        sys.stdout.write(json_module.dumps(as_json(results), indent=1, ensure_ascii=False) + "\n")
    else:
        print_answer(("bold" if heading else None, line) for line, heading in table_lines(results, verbose=verbose))
    return 1 if any(result.problem for result in results) else 0


def _mine(settings: Settings, *, days: int, verbose: bool, json: bool) -> int:
    clock = SystemClock()
    with (
        Store.look(settings.database, clock=clock, limits=settings.database_limits) as store,
        progress_bars(wanted=not json) as listen,
    ):
        found = measure_mine(settings, store, clock, days=days, on_progress=listen)
    if json:
        sys.stdout.write(json_module.dumps(found.table(), indent=1, ensure_ascii=False) + "\n")
    elif not found.sessions:
        print_lines([("yellow", f"no session of the last {days} days is known: `stillroom threads` looks for some")])
    else:
        print_answer(("bold" if heading else None, line) for line, heading in mine_lines(found, verbose=verbose))
    return 0


def _offer(published: Published) -> str:
    return (
        f"Fetch {published.about}, from github.com/{published.repository} ({published.licence}, "
        f"{published.kilobytes} kB)?"
    )


def _priced(expected: Sequence[Estimate]) -> Iterator[Line]:
    """What models would cost. A server on this machine costs nothing, and is not told of."""
    for each in expected:
        price = "price not known" if each.usd is None else f"about ${each.usd:.2f}"
        yield None, f"{each.engine} on {each.name}: {price}, {each.weighted_tokens:,} weighted tokens"
