"""How much of what users said, of what failed and of what was changed the memory has, and what was lost to cuts."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from stillroom.clock import DAY_SECONDS, Clock
from stillroom.config import LOOKUP, Settings
from stillroom.errors import RecallError, RolloutError
from stillroom.insight.coverage.counted import Count, Counted, load_counts, save_counts
from stillroom.insight.coverage.units import units_of, vocabulary_of
from stillroom.lanes import admit
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.recall.browse.paths import read_text
from stillroom.recall.browse.walk import Walk
from stillroom.rollouts.events import read_events
from stillroom.rollouts.readers import open_thread
from stillroom.store import Question, Standing, Store
from stillroom.store.forgetting import KeptOutput
from stillroom.store.rules import State
from stillroom.workspace.artifacts import summary_stem
from stillroom.workspace.layout import HANDBOOK, SKILLS, SUMMARY

WORST_SHOWN = 5
#: Sessions without a person, of the memory itself, or that a person switched off: nothing of them is to be remembered.
_NOT_LOOKED_AT = frozenset(
    {"enabled", "mode", "project", "missing", "archived", "preview", "memory_worker", "source", "current", "cwd"}
)
#: Reports of passes that are searched for sessions of which a model was given only a part.
_PASSES = 500


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """Words of users that tell something, commands and edits that failed, files that were changed."""

    words: Count = Count()
    failures: Count = Count()
    files: Count = Count()

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            words=self.words + other.words, failures=self.failures + other.failures, files=self.files + other.files
        )


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The same of one agent, or of one project."""

    name: str
    threads: int
    amounts: Amounts


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """What never reached the extraction, or the folder, or only in part."""

    bad_lines: int = 0
    #: Lines over the limit, and what was taken out of them.
    long_lines: int = 0
    cut_bytes: int = 0
    #: Sessions that did not fit the model: their middle, or what tells least, was left out. As far as passes noted it.
    shortened: tuple[str, ...] = ()
    #: Files that can't be read now.
    unreadable: int = 0
    #: Sessions of which something was extracted and that the handbook names nowhere: the selection has so many at most,
    #: or the handbook is full.
    not_in_folder: int = 0
    #: Lines that only a tool or the web said, and that stay out.
    withheld: int = 0


class Worst(msgspec.Struct, frozen=True, kw_only=True):
    """A session of which memory lacks much."""

    thread_id: str
    agent: str
    project: str
    title: str
    state: State
    #: The rule that decided about it; None: the next pass takes it.
    rule: str | None
    amounts: Amounts


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What `stillroom coverage` tells. Times in seconds since 1970."""

    since: int
    #: Sessions that were active since, by what became of them.
    states: dict[State, int]
    #: Of these, not looked at, by the rule that says why.
    not_looked_at: dict[str, int]
    threads: int
    amounts: Amounts
    lost: Lost
    agents: tuple[Part, ...]
    projects: tuple[Part, ...]
    worst: tuple[Worst, ...]


def read_coverage(
    settings: Settings, store: Store, clock: Clock, *, days: int, on_progress: ProgressListener = silent
) -> Coverage:
    """Compare the sessions of the last days with the memory. A session is read once, until it, its output or the
    folder changes. Raises `StoreError`."""
    now_ms = clock.now_ms()
    since_ms = now_ms - days * DAY_SECONDS * 1000
    question = Question(memories=settings.memories, stage=settings.stage_one, now_ms=now_ms)
    recent = [each for each in store.standings.of_all(question) if each.thread.updated_at_ms >= since_ms]
    rules = {each.thread.thread_id: each.decided.rule if each.decided else None for each in recent}
    left = {id_ for id_, rule in rules.items() if rule in _NOT_LOOKED_AT}
    looked_at = [each for each in recent if each.thread.thread_id not in left]
    counter = _Counter(settings, store, {each.thread.thread_id for each in looked_at})
    counts: dict[str, Counted] = {}
    unreadable = 0
    for number, standing in enumerate(looked_at):
        on_progress(Progress(stage="count", done=number, total=len(looked_at)))
        try:
            counts[standing.thread.thread_id] = counter.count(standing)
        except RolloutError:
            unreadable += 1
    on_progress(Progress(stage="count", done=len(looked_at), total=len(looked_at)))
    counter.save(counts)
    pairs = [(each, counts[each.thread.thread_id]) for each in looked_at if each.thread.thread_id in counts]
    return Coverage(
        since=since_ms // 1000,
        states=dict(Counter(each.state for each in recent)),
        not_looked_at=dict(Counter(rules[id_] or "" for id_ in left).most_common()),
        threads=len(pairs),
        amounts=_sum(count for _, count in pairs),
        lost=Lost(
            bad_lines=sum(count.bad_lines for _, count in pairs),
            long_lines=sum(count.long_lines for _, count in pairs),
            cut_bytes=sum(count.cut_bytes for _, count in pairs),
            shortened=_shortened(store, counts.keys()),
            unreadable=unreadable,
            not_in_folder=counter.not_in_folder(),
            withheld=_withheld(settings, store, counts.keys()),
        ),
        agents=_parts(pairs, lambda standing: standing.thread.agent),
        projects=_parts(pairs, project_of),
        worst=_worst(pairs, rules),
    )


class _Counter:
    """Counts sessions against the memory as it is now."""

    def __init__(self, settings: Settings, store: Store, wanted: set[str]) -> None:
        self._settings = settings
        text = "\n".join(_folder_texts(settings.root))
        self._folder = vocabulary_of(text)
        self._version = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._outputs: dict[str, tuple[int, str]] = {}
        self._known = load_counts(settings.home)
        self._unnamed = 0

        def keep(output: KeptOutput) -> None:
            if output.thread_id in wanted:
                said = admit(f"{output.raw_memory}\n{output.rollout_summary}", lambda line: False)
                self._outputs[output.thread_id] = output.source_updated_at, said
                stem = summary_stem(output.thread_id, output.source_updated_at, None)
                self._unnamed += output.thread_id not in text and stem not in text

        store.forgetting.each_output(keep)

    def count(self, standing: Standing) -> Counted:
        """Raises `RolloutError`."""
        thread = standing.thread
        at, text = self._outputs.get(thread.thread_id, (0, ""))
        key = (standing.size_bytes or 0, thread.updated_at_ms, at, self._version)
        known = self._known.get(thread.thread_id)
        if known is not None and known.key == key:
            return known
        with open_thread(thread, max_line_bytes=self._settings.stage_one.max_line_bytes) as items:
            units = units_of(read_events(items))
        totals = len(units.words), len(units.failures), len(units.files)
        extracted, folder = vocabulary_of(text).counts(units), self._folder.counts(units)
        words, failures, files = (Count(*each) for each in zip(totals, extracted, folder, strict=True))
        stats = items.stats
        return Counted(key, words, failures, files, stats.bad_lines, stats.long_lines, stats.cut_bytes)

    def not_in_folder(self) -> int:
        """Sessions with an output that no file of the folder names."""
        return self._unnamed

    def save(self, counts: Mapping[str, Counted]) -> None:
        """Keep what was counted for the next time."""
        if self._settings.home.is_dir() and counts != self._known:
            save_counts(self._settings.home, dict(counts))


def _folder_texts(root: Path) -> Iterator[str]:
    """What sessions are told of, or look up first."""
    for path in (HANDBOOK, SUMMARY, SKILLS):
        try:
            for met in Walk().files(root, path):
                try:
                    yield read_text(met.node, met.path, max_bytes=LOOKUP.max_file_bytes)
                except RecallError:
                    continue  # no text
        except RecallError:  # there is none, or it is a link
            continue


def project_of(standing: Standing) -> str:
    """The remote; without one the folder."""
    return standing.repository or standing.thread.cwd or "-"


def _sum(counts: Iterable[Counted]) -> Amounts:
    total = Amounts()
    for count in counts:
        total = total + _amounts(count)
    return total


def _amounts(count: Counted) -> Amounts:
    return Amounts(words=count.words, failures=count.failures, files=count.files)


def _parts(pairs: Sequence[tuple[Standing, Counted]], name_of: Callable[[Standing], str]) -> tuple[Part, ...]:
    """Those with most words first."""
    groups: defaultdict[str, list[Counted]] = defaultdict(list)
    for standing, count in pairs:
        groups[name_of(standing)].append(count)
    parts = [Part(name=name, threads=len(counts), amounts=_sum(counts)) for name, counts in groups.items()]
    return tuple(sorted(parts, key=lambda part: (-part.amounts.words.total, part.name)))


def _worst(pairs: Sequence[tuple[Standing, Counted]], rules: Mapping[str, str | None]) -> tuple[Worst, ...]:
    """Those of which most is nowhere: neither in what was extracted, nor in the folder."""
    ranked = sorted(pairs, key=lambda pair: -_missing(pair[1]))[:WORST_SHOWN]
    return tuple(
        Worst(
            thread_id=standing.thread.thread_id,
            agent=standing.thread.agent,
            project=project_of(standing),
            title=standing.thread.title or standing.thread.preview,
            state=standing.state,
            rule=rules[standing.thread.thread_id],
            amounts=_amounts(count),
        )
        for standing, count in ranked
        if _missing(count)
    )


def _missing(count: Counted) -> int:
    each = (count.words, count.failures, count.files)
    return sum(part.total - max(part.extracted, part.folder) for part in each)


class _Outcome(msgspec.Struct):
    thread_id: str = ""
    cut: bool = False


class _Extract(msgspec.Struct):
    outcomes: list[_Outcome] = []


class _Report(msgspec.Struct):
    extract: _Extract | None = None


def _withheld(settings: Settings, store: Store, looked_at: Collection[str]) -> int:
    memories = settings.memories
    selection = store.consolidation.select(
        limit=memories.max_raw_memories_for_consolidation, max_unused_days=memories.max_unused_days
    )
    return sum(each.thread_id in looked_at for each in selection.withheld)


def _shortened(store: Store, looked_at: Iterable[str]) -> tuple[str, ...]:
    """Those that the pass which extracted them last had to cut, as far as reports of passes are kept."""
    last: dict[str, bool] = {}
    for record in store.ledger.last_passes(_PASSES):
        try:
            report = msgspec.json.decode(record.report_json, type=_Report)
        except (msgspec.DecodeError, UnicodeDecodeError):  # of another version
            continue
        for outcome in report.extract.outcomes if report.extract else []:
            last.setdefault(outcome.thread_id, outcome.cut)
    return tuple(thread_id for thread_id in looked_at if last.get(thread_id))
