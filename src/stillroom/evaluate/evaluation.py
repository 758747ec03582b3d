"""Measures engines side by side on sets: what `stillroom eval` does."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, assert_never

from stillroom.config import OFFLINE, Provider
from stillroom.errors import ConfigError, StillroomError
from stillroom.evaluate.chats import ChatSet, load_chats
from stillroom.evaluate.downloads import PUBLISHED, Published, folder_of, is_there
from stillroom.evaluate.life import ECHO_CYCLES, Life, measure_life, scenarios_of
from stillroom.evaluate.measures import Chatted, Labelled, measure_chats, measure_labelled
from stillroom.evaluate.scenario import Scenario, load
from stillroom.evaluate.scoring import lots_of, scenario_files
from stillroom.evaluate.shipped import LIFE, SETS
from stillroom.evaluate.trial import Trial
from stillroom.forecast import Forecast
from stillroom.progress import Progress, ProgressListener, silent

DEFAULT_SETS = (*SETS, "life")
_LIFE = re.compile(r"^\[\[replaced\]\]", re.MULTILINE)

_T = TypeVar("_T")
Measured = Labelled | Chatted | Life


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Sessions with labels, each with the name of its lot."""

    name: str
    scenarios: tuple[tuple[Scenario, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeSet:
    """Projects whose memory lives through some rounds."""

    name: str
    path: Path


MeasuredSet = LabelledSet | LifeSet | ChatSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a model would be sent for a set, before anything is."""

    engine: str
    name: str
    weighted_tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one engine reached on one set, or why it could not be measured."""

    name: str
    engine: str
    measured: Measured | None
    problem: str = ""

    def table(self) -> dict[str, Any]:
        """For JSON."""
        return self.measured.table() if self.measured else {"problem": self.problem}


def find_set(name: str, *, home: Path, limit: int | None = None) -> MeasuredSet | Published:
    """The set of this name, or at this path; `Published`: it has to be fetched first. Raises `ConfigError`."""
    if name == "life":
        return LifeSet(name=name, path=LIFE)
    if name in SETS:
        return _labelled(name, SETS[name], limit)
    if published := PUBLISHED.get(name):
        if not is_there(home, published):
            return published
        return read_chats(folder_of(home, name), limit=limit)
    path = Path(name).expanduser()
    if path.is_file() and path.suffix == ".toml":
        return LifeSet(name=path.stem, path=path) if _is_life(path) else _labelled(path.stem, path, limit)
    if path.is_dir():
        chats = load_chats(path)
        return _some_chats(chats, limit) if chats else _labelled(path.name, path, limit)
    known = ", ".join((*DEFAULT_SETS, *PUBLISHED))
    raise ConfigError(f"there is no set `{name}`", hint=f"it is a folder, a file, or one of: {known}")


def _labelled(name: str, path: Path, limit: int | None) -> LabelledSet:
    files = [path] if path.is_file() else scenario_files(path)
    if not files:
        raise ConfigError(f"`{path}` has no sessions", hint="labelled sessions are `.toml` files: docs/eval.md")
    lots = lots_of(files)
    some = _spread(files, limit)
    return LabelledSet(name=name, scenarios=tuple((_load(file), lots[file]) for file in some))


def _load(path: Path) -> Scenario:
    try:
        return load(path)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"`{path}` is no labelled session: {error!r}", hint="docs/eval.md has the form") from error


def _is_life(path: Path) -> bool:
    return bool(_LIFE.search(path.read_text(encoding="utf-8")))


def read_chats(folder: Path, *, limit: int | None = None) -> ChatSet:
    """The public set in a folder. Raises `ConfigError` where there is none."""
    chats = load_chats(folder)
    if chats is None:
        raise ConfigError(f"`{folder}` has no set of chats", hint="docs/eval.md tells which are known")
    return _some_chats(chats, limit)


def _some_chats(chats: ChatSet, limit: int | None) -> ChatSet:
    """With a limit the questions of fewer chats: those that rest on these alone."""
    some = _spread(chats.chats, limit)
    ids = {chat.id for chat in some}
    questions = tuple(asked for asked in chats.questions if ids.issuperset(asked.chats))
    return ChatSet(name=chats.name, chats=tuple(some), questions=questions)


def _spread(items: Sequence[_T], limit: int | None) -> Sequence[_T]:
    """At most `limit` of them, from all over."""
    if limit is None or len(items) <= limit:
        return items
    return [items[number * len(items) // limit] for number in range(limit)]


def estimates(sets: Sequence[MeasuredSet], engines: Sequence[str], providers: Mapping[str, Provider]) -> list[Estimate]:
    """What models would be sent, by set. The offline engine sends nothing."""
    return [_estimate(each, engine, providers) for engine in engines if engine != OFFLINE for each in sets]


def _estimate(each: MeasuredSet, engine: str, providers: Mapping[str, Provider]) -> Estimate:
    with tempfile.TemporaryDirectory(prefix="stillroom-eval-") as folder:
        trial = Trial(Path(folder), engine=engine, providers=providers)
        for scenario in _scenarios(each):
            trial.add(scenario)
        forecast = trial.forecast()
    if forecast is None:
        raise StillroomError(f"what `{engine}` would be sent for `{each.name}` can't be told")
    # Every echo is a pass with a consolidation of its own.
    times = ECHO_CYCLES if isinstance(each, LifeSet) else 0
    return _with_more(forecast, times, engine=engine, name=each.name)


def _with_more(forecast: Forecast, times: int, *, engine: str, name: str) -> Estimate:
    more = forecast.consolidate
    tokens, usd = forecast.weighted_tokens, forecast.cost_usd
    if more:
        tokens += times * more.usage.weighted_tokens
        usd = None if usd is None or more.cost_usd is None else usd + times * more.cost_usd
    return Estimate(engine=engine, name=name, weighted_tokens=tokens, usd=usd)


def _scenarios(each: MeasuredSet) -> Iterator[Scenario]:
    match each:
        case LabelledSet():
            yield from (scenario for scenario, _ in each.scenarios)
        case LifeSet():
            yield from scenarios_of(each.path)
        case ChatSet():
            yield from (chat.scenario() for chat in each.chats)
        case _:
            assert_never(each)


def evaluate(
    sets: Sequence[MeasuredSet],
    engines: Sequence[str],
    *,
    providers: Mapping[str, Provider] | None = None,
    on_progress: ProgressListener = silent,
) -> Iterator[Result]:
    """Measure every engine on every set, one after the other. One that fails on a set tells why, and the rest go on."""
    total = len(sets) * len(engines)
    done = 0
    for each in sets:
        for engine in engines:
            on_progress(Progress(stage="evaluate", done=done, total=total, note=f"{each.name}, {engine}"))
            try:
                measured = _measure(each, engine, providers)
                yield Result(name=each.name, engine=engine, measured=measured)
            except ConfigError:
                raise
            except StillroomError as error:
                yield Result(name=each.name, engine=engine, measured=None, problem=str(error))
            done += 1
    on_progress(Progress(stage="evaluate", done=done, total=total))


def _measure(each: MeasuredSet, engine: str, providers: Mapping[str, Provider] | None) -> Measured:
    match each:
        case LabelledSet():
            return measure_labelled(each.scenarios, engine=engine, providers=providers)
        case LifeSet():
            return measure_life(each.path, engine=engine, providers=providers)
        case ChatSet():
            return measure_chats(each, engine=engine, providers=providers)
        case _:
            assert_never(each)
