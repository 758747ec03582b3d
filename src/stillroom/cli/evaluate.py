"""`stillroom eval`: how good is the memory?"""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from stillroom.cli.asking import agrees
from stillroom.cli.output import Line, print_answer, print_lines
from stillroom.cli.progress import progress_bars
from stillroom.command_line.command import Option
from stillroom.config import OFFLINE, load_settings
from stillroom.evaluate.downloads import Published, download
from stillroom.evaluate.evaluation import DEFAULT_SETS, Estimate, estimates, evaluate, find_set, read_chats
from stillroom.evaluate.table import as_json, table_lines


def eval_command(
    *,
    home: Path | None = None,
    set: list[str] | None = None,
    engine: list[str] | None = None,
    limit: Annotated[int | None, Option(at_least=1)] = None,
    yes: Annotated[bool, Option(short="-y")] = False,
    verbose: bool = False,
    json: bool = False,
) -> int:
    """Measure how good a memory the engines make: what is kept, told and given, and what should not be.

    Labelled sessions are distilled in a throw-away home; yours is not touched. `docs/eval.md` explains every row.

    ```
    stillroom eval                                          # the sets that ship with Stillroom
    stillroom eval --set devmembench                        # a public set; asks before it is fetched
    stillroom eval --engine offline --engine openai:gpt-5-mini --limit 10
    stillroom eval --set ~/my-labelled-sessions --json | jq .sets
    ```

    Parameters
    ----------
    home
        Where Stillroom keeps its files. Default: `$STILLROOM_HOME`, else `~/.stillroom`. Of its settings only
        `[providers]` is used; public sets that were fetched are kept in `eval` there.
    set
        What to measure by: `heldout`, `blind` and `life` ship with Stillroom and are the default; `devmembench` and
        `remem` are fetched; else a folder or file of your own.
    engine
        Who distils: `offline`, or `provider:model`; `provider:model+offline` extracts with the model and consolidates
        without. Said several times, they stand side by side.
    limit
        At most so many sessions of each set, from all over it. The set `life` is always whole.
    yes
        Don't ask before a set is fetched, or before a model is called that costs something.
    verbose
        Show every line that was given in another project, or that no longer holds.
    json
        Print everything as JSON.
    """
    settings = load_settings(home=home)
    engines = list(dict.fromkeys(engine or [OFFLINE]))
    sets = []
    for name in dict.fromkeys(set or DEFAULT_SETS):
        found = find_set(name, home=settings.home, limit=limit)
        if isinstance(found, Published):
            if not (yes or agrees(_offer(found))):
                return 1
            found = read_chats(download(found, settings.home), limit=limit)
        sets.append(found)
    if not _may_be_spent(estimates(sets, engines, settings.providers), agreed=yes):
        return 1
    with progress_bars(wanted=True) as listen:
        results = list(evaluate(sets, engines, providers=settings.providers, on_progress=listen))
    if json:
        sys.stdout.write(json_module.dumps(as_json(results), indent=1, ensure_ascii=False) + "\n")
    else:
        print_answer(("bold" if heading else None, line) for line, heading in table_lines(results, verbose=verbose))
    return 1 if any(result.problem for result in results) else 0


def _offer(published: Published) -> str:
    return (
        f"Fetch {published.about}, from github.com/{published.repository} ({published.licence}, "
        f"{published.kilobytes} kB)?"
    )


def _may_be_spent(expected: Sequence[Estimate], *, agreed: bool) -> bool:
    """Tell what models would cost, and ask. What costs nothing (a server on this machine) is not asked for."""
    if not any(each.weighted_tokens and each.usd != 0 for each in expected):
        return True
    lines: list[Line] = []
    for each in expected:
        price = "price not known" if each.usd is None else f"about ${each.usd:.2f}"
        lines.append((None, f"{each.engine} on {each.name}: {price}, {each.weighted_tokens:,} weighted tokens"))
    print_lines(lines)
    return agreed or agrees("Send this to the models?")
