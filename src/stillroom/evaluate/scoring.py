"""Scores an engine on labelled sessions: what it tells, what it holds as evidence, what it should not have kept."""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stillroom.evaluate.labels import Labels, Verdict, judge, labels_of
from stillroom.evaluate.scenario import Scenario, load, thread_of, write_rollout
from stillroom.offline import distil
from stillroom.sessions.events import read_events
from stillroom.sessions.stream import open_items
from stillroom.store.records import Stage1Draft

MAX_LINE_BYTES = 8 * 1024 * 1024
Distil = Callable[[Scenario, Path], Stage1Draft | None]
#: `3a12_ja_shogi.toml` is of the lot `3a`.
_LOT = re.compile(r"^([a-z]*\d+[a-z]?)\d*_")
#: A prefix that fewer files share is part of a name.
_MIN_LOT = 3
_SHARES = (
    "recall",
    "told_recall",
    "precision",
    "cause_precision",
    "kept_share",
    "kept_told_share",
    "kept_evidence_share",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A session, what was made of it, and the verdict."""

    scenario: Scenario
    labels: Labels
    draft: Stage1Draft | None
    verdict: Verdict
    lot: str
    cpu_ms: float

    @property
    def empty_right(self) -> bool | None:
        """For a session that must yield nothing: whether it did."""
        return self.draft is None if self.labels.empty else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Sums over sessions. Shares are 1.0 where there is nothing to count, those of forbidden things 0.0."""

    sessions: int
    facts: int
    found: int  #: facts told or held as evidence
    told: int  #: facts told
    lines: int  #: told lines
    right: int  #: told lines that are right, by the strict labels
    forbidden: int
    kept: int  #: forbidden things told or held as evidence
    kept_told: int
    kept_evidence: int
    causes: int  #: told lines that say why something failed
    causes_right: int
    empty: int
    empty_right: int

    @property
    def recall(self) -> float:
        """Facts told or held as evidence, of all."""
        return self.found / self.facts if self.facts else 1.0

    @property
    def told_recall(self) -> float:
        return self.told / self.facts if self.facts else 1.0

    @property
    def precision(self) -> float:
        return self.right / self.lines if self.lines else 1.0

    @property
    def cause_precision(self) -> float:
        return self.causes_right / self.causes if self.causes else 1.0

    @property
    def kept_share(self) -> float:
        return self.kept / self.forbidden if self.forbidden else 0.0

    @property
    def kept_told_share(self) -> float:
        return self.kept_told / self.forbidden if self.forbidden else 0.0

    @property
    def kept_evidence_share(self) -> float:
        return self.kept_evidence / self.forbidden if self.forbidden else 0.0

    def table(self) -> dict[str, float]:
        """Every count and share, for JSON."""
        shares = {name: round(getattr(self, name), 4) for name in _SHARES}
        return {**dataclasses.asdict(self), **shares}


def distil_offline(scenario: Scenario, path: Path) -> Stage1Draft | None:
    """The offline engine on a rollout, as the pipeline calls it."""
    with open_items(path, max_line_bytes=MAX_LINE_BYTES) as items:
        events = read_events(items)
    return distil(thread_of(scenario, path), events)


def scenario_files(directory: Path) -> list[Path]:
    """The scenario files in a folder and below it, in name order."""
    return sorted(directory.rglob("*.toml"))


def score(
    paths: Sequence[Path], *, engine: Distil = distil_offline, on_progress: Callable[[int], None] = lambda done: None
) -> list[Scored]:
    """Build, distil and judge every scenario."""
    scored = []
    lots = lots_of(paths)
    with tempfile.TemporaryDirectory() as home:
        for number, path in enumerate(paths):
            on_progress(number)
            scenario = load(path)
            labels = labels_of(scenario.table)
            rollout = write_rollout(scenario, Path(home))
            started = time.process_time()
            draft = engine(scenario, rollout)
            cpu_ms = 1000 * (time.process_time() - started)
            scored.append(
                Scored(
                    scenario=scenario,
                    labels=labels,
                    draft=draft,
                    verdict=judge(labels, draft),
                    lot=lots[path],
                    cpu_ms=cpu_ms,
                )
            )
    return scored


def lots_of(paths: Iterable[Path]) -> Mapping[Path, str]:
    """The lot of each file: its folder, and the prefix with a number in it that it shares with others there."""

    def prefix(path: Path) -> str:
        found = _LOT.match(path.name)
        return found[1] if found else ""

    paths = list(paths)
    shared = Counter((path.parent, prefix(path)) for path in paths)
    lots = {}
    for path in paths:
        name = prefix(path)
        known = name and shared[path.parent, name] >= _MIN_LOT
        lots[path] = f"{path.parent.name}/{name}" if known else path.parent.name
    return lots


def figures(scored: Iterable[Scored]) -> Figures:
    """Sum up."""
    scored = list(scored)

    def total(count: Callable[[Scored], int]) -> int:
        return sum(map(count, scored))

    return Figures(
        sessions=len(scored),
        facts=total(lambda s: len(s.labels.facts)),
        found=total(lambda s: len(s.verdict.found)),
        told=total(lambda s: len(s.verdict.told)),
        lines=total(lambda s: len(s.verdict.lines)),
        right=total(lambda s: len(s.verdict.lines) - len(s.verdict.wrong)),
        forbidden=total(lambda s: s.verdict.forbidden),
        kept=total(lambda s: len(s.verdict.kept)),
        kept_told=total(lambda s: len(s.verdict.kept_told)),
        kept_evidence=total(lambda s: len(s.verdict.kept_evidence)),
        causes=total(lambda s: len(s.verdict.causes)),
        causes_right=total(lambda s: len(s.verdict.causes) - len(s.verdict.wrong_causes)),
        empty=total(lambda s: s.labels.empty),
        empty_right=total(lambda s: bool(s.empty_right)),
    )


def by_fact_kind(scored: Iterable[Scored]) -> dict[str, tuple[int, int]]:
    """Facts found and facts, a kind."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for s in scored:
        for fact in s.labels.facts:
            counts[fact.kind][0] += fact in s.verdict.found
            counts[fact.kind][1] += 1
    return {kind: (found, total) for kind, (found, total) in sorted(counts.items())}


def by_forbidden_kind(scored: Iterable[Scored]) -> dict[str, tuple[int, int]]:
    """Forbidden things kept and forbidden things, a kind."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for s in scored:
        for label in s.labels.never:
            counts[label.kind][0] += label in s.verdict.kept
            counts[label.kind][1] += 1
    return {kind: (kept, total) for kind, (kept, total) in sorted(counts.items())}


def by_language(scored: Iterable[Scored]) -> dict[str, Figures]:
    """Figures a language."""
    return _grouped(scored, lambda s: s.scenario.language)


def by_lot(scored: Iterable[Scored]) -> dict[str, Figures]:
    """Figures a lot."""
    return _grouped(scored, lambda s: s.lot)


def _grouped(scored: Iterable[Scored], key: Callable[[Scored], str]) -> dict[str, Figures]:
    groups: dict[str, list[Scored]] = defaultdict(list)
    for s in scored:
        groups[key(s)].append(s)
    return {name: figures(group) for name, group in sorted(groups.items())}


_HEAD = (
    f"{'':28} {'kept':>15} {'told':>15} {'told lines right':>16} {'causes':>9}"
    f" {'traps told':>10} {'evid.':>8} {'empty':>7}"
)


def _row(name: str, f: Figures) -> str:
    def share(part: int, whole: int, width: int) -> str:
        text = f"{part / whole:.2f} ({part}/{whole})" if whole else "-"
        return f"{text:>{width}}"

    def of(part: int, whole: int, width: int) -> str:
        return f"{f'{part}/{whole}' if whole else '-':>{width}}"

    cells = (
        share(f.found, f.facts, 15),
        share(f.told, f.facts, 15),
        share(f.right, f.lines, 16),
        of(f.causes_right, f.causes, 9),
        of(f.kept_told, f.forbidden, 10),
        of(f.kept_evidence, f.forbidden, 8),
        of(f.empty_right, f.empty, 7),
    )
    return f"{name[:28]:28} " + " ".join(cells)


def report(scored: Sequence[Scored], *, verbose: bool) -> str:
    """A table for people; `verbose` adds every miss and every wrong line."""
    out = [_HEAD]
    for s in scored:
        out.append(_row(s.scenario.name, figures([s])) + ("" if s.empty_right is not False else "  NOT EMPTY"))
        if verbose:
            out += _details(s)
    total = figures(scored)
    out += ["", _HEAD]
    out += [_row(f"language {language}", f) for language, f in by_language(scored).items()]
    lots = by_lot(scored)
    out += [_row(f"lot {lot}", f) for lot, f in lots.items() if len(lots) > 1]
    out.append(_row(f"all {total.sessions} sessions", total))
    out.append("found by kind: " + ", ".join(f"{k} {a}/{b}" for k, (a, b) in by_fact_kind(scored).items()))
    out.append("kept by kind: " + ", ".join(f"{k} {a}/{b}" for k, (a, b) in by_forbidden_kind(scored).items()))
    return "\n".join(out)


def _details(s: Scored) -> list[str]:
    found, verdict = set(s.verdict.found), s.verdict
    return [
        *(f"    missed  {fact.kind}: {fact.text}" for fact in verdict.missed),
        *(f"    evidence only  {fact.kind}: {fact.text}" for fact in found.difference(verdict.told)),
        *(f"    kept, told      {label.kind}: {label.text}" for label in verdict.kept_told),
        *(f"    kept, evidence  {label.kind}: {label.text}" for label in verdict.kept_evidence),
        *(f"    wrong   {line[:220]}" for line in verdict.wrong),
        *(f"    cause   {cause.error[:110]} <- {cause.cause[:110]}" for cause in verdict.wrong_causes),
    ]


def as_json(scored: Sequence[Scored]) -> str:
    """The same for programs."""
    return json.dumps(
        {
            "all": figures(scored).table(),
            "lots": {lot: f.table() for lot, f in by_lot(scored).items()},
            "languages": {language: f.table() for language, f in by_language(scored).items()},
            "facts": by_fact_kind(scored),
            "forbidden": by_forbidden_kind(scored),
            "sessions": {s.scenario.name: figures([s]).table() for s in scored},
        },
        indent=1,
    )
