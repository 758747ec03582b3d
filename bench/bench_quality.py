"""What the offline engine keeps, tells and gives, by `stillroom eval`; then by set, language and kind, and its time.

Public sets are among it where they were fetched into `$STILLROOM_HOME`.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping

from tests.quality.score import (
    Figures,
    by_fact_kind,
    by_forbidden_kind,
    by_language,
    figures,
    scenario_paths,
    score,
)

from stillroom.config import OFFLINE, default_home
from stillroom.evaluate.downloads import PUBLISHED, Published, is_there
from stillroom.evaluate.evaluation import DEFAULT_SETS, evaluate, find_set
from stillroom.evaluate.table import table_lines

DEV = {"dev": "written for, then with, the engine"}
SETS = {**DEV, "heldout": "set aside", "blind": "written last, half of it of the kinds that are hardest"}
HEAD = "kept | told | told lines right | causes right | traps told | traps in evidence | rightly empty |"
RULE = "|" + "---|" * 9


def main() -> None:
    evaluated()
    print(f"\n| set | sessions | {HEAD}\n{RULE}")
    scored = {}
    for name, what in SETS.items():
        scored[name] = score(scenario_paths(name))
        print(f"| `{name}`, {what} | {row(figures(scored[name]))} |")
    print(f"\nBy language, `heldout` and `blind`:\n\n| language | sessions | {HEAD}\n{RULE}")
    unseen = [*scored["heldout"], *scored["blind"]]
    for language, found in by_language(unseen).items():
        print(f"| {language} | {row(found)} |")
    print(f"\nKept of their facts, by kind: {kinds(by_fact_kind(unseen))}.")
    print(f"\nKept of what must not be: {kinds(by_forbidden_kind(unseen))}.")
    times = [each.cpu_ms for group in scored.values() for each in group]
    print(f"\nTime a session: median {statistics.median(times):.0f} ms of CPU, slowest {max(times):.0f} ms.")


def evaluated() -> None:
    """What a user sees of it, and the command."""
    home = default_home(os.environ)
    names = [*DEFAULT_SETS, *(name for name, published in PUBLISHED.items() if is_there(home, published))]
    sets = [each for name in names if not isinstance(each := find_set(name, home=home), Published)]
    print(f"```text\n$ stillroom eval {' '.join(f'--set {name}' for name in names)}\n")
    for line, _ in table_lines(list(evaluate(sets, [OFFLINE])), examples=False):
        print(line)
    print("```")


def row(found: Figures) -> str:
    """The cells of a table."""

    def share(part: int, whole: int) -> str:
        return f"{part / whole:.2f} ({part}/{whole})" if whole else "-"

    return (
        f"{found.sessions} | {share(found.found, found.facts)} | {share(found.told, found.facts)} | "
        f"{share(found.right, found.lines)} | {share(found.causes_right, found.causes)} | "
        f"{found.kept_told}/{found.forbidden} | {found.kept_evidence}/{found.forbidden} | "
        f"{found.empty_right}/{found.empty}"
    )


def kinds(counted: Mapping[str, tuple[int, int]]) -> str:
    """In one sentence."""
    return ", ".join(f"{kind} {some}/{all_}" for kind, (some, all_) in sorted(counted.items()))


if __name__ == "__main__":
    main()
