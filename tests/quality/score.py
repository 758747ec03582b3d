"""Runs the offline engine on the labelled sessions and reports, by session, language, lot and in total: facts kept
(told or as evidence), facts told, told lines that are right, causes that are right, traps told and in the evidence.

python -m tests.quality.score --split dev [--dir DIR ...] [--json] [--verbose] [NAME ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from stillroom.evaluate.scoring import (
    Distil,
    Figures,
    Scored,
    as_json,
    by_fact_kind,
    by_forbidden_kind,
    by_language,
    by_lot,
    distil_offline,
    figures,
    report,
    scenario_files,
    score,
)
from stillroom.evaluate.shipped import SETS

__all__ = [
    "Distil",
    "Figures",
    "Scored",
    "as_json",
    "by_fact_kind",
    "by_forbidden_kind",
    "by_language",
    "by_lot",
    "distil_offline",
    "figures",
    "report",
    "scenario_paths",
    "score",
]
HERE = Path(__file__).parent
SPLITS = ("dev", *SETS)


def scenario_paths(split: str, directory: Path | None = None) -> list[Path]:
    """The scenario files of a split, in name order: of a folder here, or of a set that ships with Stillroom."""
    return scenario_files(directory or SETS.get(split) or HERE / split)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", action="append", choices=SPLITS, help="may be given several times")
    parser.add_argument("--dir", type=Path, action="append", help="scenarios elsewhere; may be given several times")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="every miss and every wrong line")
    parser.add_argument("--show", action="store_true", help="the memories themselves")
    parser.add_argument("names", nargs="*", help="only these scenarios")
    given = parser.parse_args(arguments)
    splits = given.split or ([] if given.dir else ["dev"])
    paths = [path for split in splits for path in scenario_paths(split)]
    paths += [path for directory in given.dir or [] for path in scenario_files(directory)]
    if given.names:
        paths = [path for path in paths if path.stem in given.names]
    if not paths:
        parser.error(f"no scenarios in {given.dir or splits}")
    scored = score(paths)
    if given.show:
        for s in scored:
            print(f"=== {s.scenario.name}")
            print(f"{s.draft.raw_memory}\n--- evidence\n{s.draft.rollout_summary}\n" if s.draft else "(nothing)\n")
    print(as_json(scored) if given.json else report(scored, verbose=given.verbose))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
