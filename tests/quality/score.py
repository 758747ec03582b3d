"""Runs the offline engine on the labelled sessions and reports recall and precision.

python -m tests.quality.score --split dev [--dir DIR] [--json] [--verbose] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.quality.build import Scenario, load, thread_of, write_rollout
from tests.quality.labels import Labels, Verdict, judge, labels_of

from stillroom.offline import distil
from stillroom.rollouts.events import read_events
from stillroom.rollouts.stream import open_items
from stillroom.store.records import Stage1Draft

HERE = Path(__file__).parent
MAX_LINE_BYTES = 8 * 1024 * 1024
Distil = Callable[[Scenario, Path], Stage1Draft | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A session, what was made of it, and the verdict."""

    scenario: Scenario
    labels: Labels
    draft: Stage1Draft | None
    verdict: Verdict

    @property
    def empty_right(self) -> bool | None:
        """For a session that must yield nothing: whether it did."""
        return self.draft is None if self.labels.empty else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Sums over sessions. Shares are 1.0 where there is nothing to count."""

    sessions: int
    facts: int
    found: int
    lines: int
    right: int
    forbidden: int
    kept: int
    empty: int
    empty_right: int

    @property
    def recall(self) -> float:
        return self.found / self.facts if self.facts else 1.0

    @property
    def precision(self) -> float:
        return self.right / self.lines if self.lines else 1.0

    @property
    def kept_share(self) -> float:
        return self.kept / self.forbidden if self.forbidden else 0.0


def distil_offline(scenario: Scenario, path: Path) -> Stage1Draft | None:
    """The offline engine on a rollout, as the pipeline calls it."""
    with open_items(path, max_line_bytes=MAX_LINE_BYTES) as items:
        events = read_events(items)
    return distil(thread_of(scenario, path), events)


def scenario_paths(split: str, directory: Path | None = None) -> list[Path]:
    """The scenario files of a split, in name order."""
    return sorted((directory or HERE / split).glob("*.toml"))


def score(paths: Sequence[Path], *, engine: Distil = distil_offline) -> list[Scored]:
    """Build, distil and judge every scenario."""
    scored = []
    with tempfile.TemporaryDirectory() as home:
        for path in paths:
            scenario = load(path)
            labels = labels_of(scenario.table)
            draft = engine(scenario, write_rollout(scenario, Path(home)))
            verdict = judge(labels, draft)
            scored.append(Scored(scenario=scenario, labels=labels, draft=draft, verdict=verdict))
    return scored


def figures(scored: Sequence[Scored]) -> Figures:
    """Sum up."""
    return Figures(
        sessions=len(scored),
        facts=sum(len(s.labels.facts) for s in scored),
        found=sum(len(s.verdict.found) for s in scored),
        lines=sum(len(s.verdict.lines) for s in scored),
        right=sum(len(s.verdict.lines) - len(s.verdict.wrong) for s in scored),
        forbidden=sum(s.verdict.forbidden for s in scored),
        kept=sum(len(s.verdict.kept) for s in scored),
        empty=sum(s.labels.empty for s in scored),
        empty_right=sum(bool(s.empty_right) for s in scored),
    )


def by_fact_kind(scored: Sequence[Scored]) -> dict[str, tuple[int, int]]:
    """Facts found and facts, a kind."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for s in scored:
        for fact in s.labels.facts:
            counts[fact.kind][0] += fact in s.verdict.found
            counts[fact.kind][1] += 1
    return {kind: (found, total) for kind, (found, total) in sorted(counts.items())}


def by_forbidden_kind(scored: Sequence[Scored]) -> dict[str, tuple[int, int]]:
    """Forbidden things kept and forbidden things, a kind."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for s in scored:
        for label in s.labels.never:
            counts[label.kind][0] += label in s.verdict.kept
            counts[label.kind][1] += 1
    return {kind: (kept, total) for kind, (kept, total) in sorted(counts.items())}


def by_language(scored: Sequence[Scored]) -> dict[str, Figures]:
    """Figures a language."""
    groups: dict[str, list[Scored]] = defaultdict(list)
    for s in scored:
        groups[s.scenario.language].append(s)
    return {language: figures(group) for language, group in sorted(groups.items())}


def _row(name: str, f: Figures) -> str:
    return (
        f"{name:34} recall {f.recall:5.2f} ({f.found}/{f.facts})  precision {f.precision:5.2f} ({f.right}/{f.lines})"
        f"  kept of forbidden {f.kept}/{f.forbidden}"
    )


def report(scored: Sequence[Scored], *, verbose: bool) -> str:
    """A table for people; `verbose` adds every miss and every wrong line."""
    out = []
    for s in scored:
        out.append(_row(s.scenario.name, figures([s])) + ("" if s.empty_right is not False else "  NOT EMPTY"))
        if verbose:
            out += [f"    missed  {fact.kind}: {fact.text}" for fact in s.verdict.missed]
            out += [f"    kept    {label.kind}: {label.text}" for label in s.verdict.kept]
            out += [f"    wrong   {line[:220]}" for line in s.verdict.wrong]
    out.append("")
    out += [_row(f"language {language}", f) for language, f in by_language(scored).items()]
    out.append("found by kind: " + ", ".join(f"{k} {a}/{b}" for k, (a, b) in by_fact_kind(scored).items()))
    out.append("kept by kind: " + ", ".join(f"{k} {a}/{b}" for k, (a, b) in by_forbidden_kind(scored).items()))
    total = figures(scored)
    out.append(f"sessions that must be empty and are: {total.empty_right}/{total.empty}")
    out.append(_row(f"all {total.sessions} sessions", total))
    return "\n".join(out)


def as_json(scored: Sequence[Scored]) -> str:
    """The same for programs."""

    def of(f: Figures) -> dict[str, float]:
        counts = {name: getattr(f, name) for name in Figures.__dataclass_fields__}
        return {**counts, "recall": f.recall, "precision": f.precision, "kept_share": f.kept_share}

    return json.dumps(
        {
            "all": of(figures(scored)),
            "languages": {language: of(f) for language, f in by_language(scored).items()},
            "facts": by_fact_kind(scored),
            "forbidden": by_forbidden_kind(scored),
            "sessions": {s.scenario.name: of(figures([s])) for s in scored},
        },
        indent=1,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="dev", choices=["dev", "heldout", "blind"])
    parser.add_argument("--dir", type=Path, help="scenarios elsewhere")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="every miss and every wrong line")
    parser.add_argument("--show", action="store_true", help="the memories themselves")
    parser.add_argument("names", nargs="*", help="only these scenarios")
    given = parser.parse_args(arguments)
    paths = scenario_paths(given.split, given.dir)
    if given.names:
        paths = [path for path in paths if path.stem in given.names]
    if not paths:
        parser.error(f"no scenarios in {given.dir or HERE / given.split}")
    scored = score(paths)
    if given.show:
        for s in scored:
            print(f"=== {s.scenario.name}\n{s.draft.raw_memory if s.draft else '(nothing)'}\n")
    print(as_json(scored) if given.json else report(scored, verbose=given.verbose))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
