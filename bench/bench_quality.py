"""Recall and precision of the offline engine on each set of labelled sessions, and its time a session."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.quality.build import Scenario
from tests.quality.score import (
    Figures,
    by_fact_kind,
    by_forbidden_kind,
    by_language,
    distil_offline,
    figures,
    scenario_paths,
    score,
)

from stillroom.store.records import Stage1Draft

SETS = {
    "dev": "written for, then with, the rules",
    "heldout": "set aside",
    "blind": "written last, half of it of the kinds that the rules find hardest",
}


def main() -> None:
    print("| set | sessions | recall | precision | forbidden things kept | rightly empty |\n|---|---|---|---|---|---|")
    scored = {}
    times: list[float] = []

    def timed(scenario: Scenario, path: Path) -> Stage1Draft | None:
        started = time.process_time()
        draft = distil_offline(scenario, path)
        times.append(1000 * (time.process_time() - started))
        return draft

    for name, what in SETS.items():
        scored[name] = score(scenario_paths(name), engine=timed)
        print(f"| `{name}`, {what} | {row(figures(scored[name]))} |")
    print("\nBy language, the half set aside:\n\n| language | sessions | recall | precision | kept | rightly empty |")
    print("|---|---|---|---|---|---|")
    for language, found in by_language(scored["heldout"]).items():
        print(f"| {language} | {row(found)} |")
    facts, forbidden = by_fact_kind(scored["heldout"]), by_forbidden_kind(scored["heldout"])
    print("\nFound there, by kind: " + ", ".join(f"{kind} {a}/{b}" for kind, (a, b) in sorted(facts.items())) + ".")
    print(
        "\nKept there that must not be: " + ", ".join(f"{k} {a}/{b}" for k, (a, b) in sorted(forbidden.items())) + "."
    )
    print(f"\nTime a session: median {statistics.median(times):.0f} ms of CPU, slowest {max(times):.0f} ms.")


def row(found: Figures) -> str:
    """The cells of a table."""
    return (
        f"{found.sessions} | {found.recall:.2f} ({found.found}/{found.facts}) | {found.precision:.2f} "
        f"({found.right}/{found.lines}) | {found.kept}/{found.forbidden} | {found.empty_right}/{found.empty}"
    )


if __name__ == "__main__":
    main()
