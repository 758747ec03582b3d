"""What one engine makes of one set, measured in a throw-away home."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stillroom.config import Provider
from stillroom.evaluate.chats import ChatSet, Held, held
from stillroom.evaluate.labels import bullets_of, judge, judge_given, labels_of
from stillroom.evaluate.scenario import Scenario
from stillroom.evaluate.scoring import Figures, Scored, figures
from stillroom.evaluate.trial import Trial
from stillroom.progress import ProgressListener, silent
from stillroom.store.records import Stage1Draft, Stage1Output

#: A line is known by its beginning: what is given may be cut.
_KNOWN_BY = 40
#: What `not` calls a thing that something newer took the place of.
_REPLACED = ("superseded", "reverted")
_SEARCH_RESULTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a trial took."""

    seconds: float
    weighted_tokens: int
    usd: float | None  #: None: a price is not known
    failed: int  #: sessions that could not be extracted

    def table(self) -> dict[str, float | None]:
        """For JSON."""
        return {**asdict(self), "seconds": round(self.seconds, 2)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What sessions are given when they start, in the projects of a labelled set."""

    facts: int
    given: int  #: facts given
    given_told: int  #: facts that are told, and given
    forbidden: int
    kept: int  #: forbidden things given
    replaced: int  #: of the forbidden things: what something newer took the place of
    replaced_kept: int
    leaks: tuple[str, ...]  #: given lines that only another project's sessions said, each once
    tokens: int  #: of a session, in the median


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A labelled set: what is kept, told and given of it."""

    figures: Figures
    given: Given
    cost: Cost
    scored: tuple[Scored, ...]

    def table(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.figures.table(), "start": asdict(self.given), "cost": self.cost.table()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chatted:
    """A public set: the share of the answers' words in each form of the memory."""

    sessions: int
    empty: int  #: sessions that gave nothing
    said: Held  #: in the chats themselves: what can be reached
    told: Held
    kept: Held  #: told or as evidence
    given: Held  #: when a session starts in one of the projects
    searched: Held  #: in the first ten results of a search for the question
    cost: Cost

    def table(self) -> dict[str, Any]:
        """For JSON."""
        shares = {}
        for name in ("said", "told", "kept", "given", "searched"):
            one: Held = getattr(self, name)
            shares[name] = {"share": round(one.share, 4), "whole": one.whole, "kinds": one.kinds}
        counts = {"sessions": self.sessions, "empty": self.empty, "questions": self.kept.questions}
        kept = {"forbidden": self.kept.forbidden, "forbidden_kept": self.kept.kept}
        return {**counts, **shares, **kept, "cost": self.cost.table()}


def measure_labelled(
    scenarios: Sequence[tuple[Scenario, str]],
    *,
    engine: str,
    providers: Mapping[str, Provider] | None = None,
    on_progress: ProgressListener = silent,
) -> Labelled:
    """Distil labelled sessions, each with the name of its lot, and hold what comes of them against their labels."""
    with tempfile.TemporaryDirectory(prefix="stillroom-eval-") as folder:
        trial = Trial(Path(folder), engine=engine, providers=providers)
        for scenario, _ in scenarios:
            trial.add(scenario)
        trial.run(on_progress=on_progress)
        outputs = trial.outputs()
        scored = tuple(_scored(scenario, lot, outputs.get(scenario.thread_id)) for scenario, lot in scenarios)
        given = {cwd: trial.given(cwd) for cwd in {scenario.cwd for scenario, _ in scenarios}}
        return Labelled(figures=figures(scored), given=_given(scored, given), cost=cost_of(trial), scored=scored)


def _scored(scenario: Scenario, lot: str, output: Stage1Output | None) -> Scored:
    labels = labels_of(scenario.table)
    draft = Stage1Draft(raw_memory=output.raw_memory, rollout_summary=output.rollout_summary) if output else None
    return Scored(scenario=scenario, labels=labels, draft=draft, verdict=judge(labels, draft), lot=lot, cpu_ms=0.0)


def _given(scored: Iterable[Scored], texts: Mapping[str, str]) -> Given:
    scored = list(scored)
    facts = told = kept = replaced_kept = 0
    for s in scored:
        found, never = judge_given(s.labels, texts[s.scenario.cwd])
        facts += len(found)
        told += len(set(found).intersection(s.verdict.told))
        kept += len(never)
        replaced_kept += sum(label.kind in _REPLACED for label in never)
    sizes = sorted(-(-len(text.encode()) // 4) for text in texts.values())
    return Given(
        facts=sum(len(s.labels.facts) for s in scored),
        given=facts,
        given_told=told,
        forbidden=sum(len(s.labels.never) for s in scored),
        kept=kept,
        replaced=sum(label.kind in _REPLACED for s in scored for label in s.labels.never),
        replaced_kept=replaced_kept,
        leaks=leaks({s.scenario.cwd: _memory(scored, s.scenario.cwd) for s in scored}, texts),
        tokens=sizes[len(sizes) // 2] if sizes else 0,
    )


def _memory(scored: Iterable[Scored], cwd: str) -> str:
    drafts = [s.draft for s in scored if s.scenario.cwd == cwd and s.draft]
    return "\n".join(f"{draft.raw_memory}\n{draft.rollout_summary}" for draft in drafts)


def leaks(memory: Mapping[str, str], given: Mapping[str, str]) -> tuple[str, ...]:
    """Lines that are given in one project and stand in the memory of another one alone. Both are by folder.

    What was done in a session elsewhere belongs to that folder too: the memory of it names the folder.
    """
    found: dict[str, None] = {}
    for cwd, text in given.items():
        for line in bullets_of(text):
            start = line[:_KNOWN_BY]
            others = any(start in told for where, told in memory.items() if where != cwd and cwd not in told)
            if len(start) == _KNOWN_BY and others and start not in memory.get(cwd, ""):
                found[line] = None
    return tuple(found)


def cost_of(trial: Trial) -> Cost:
    """What a trial took until now."""
    tokens, usd = trial.spent()
    return Cost(seconds=trial.seconds, weighted_tokens=tokens, usd=usd, failed=trial.failed)


def measure_chats(
    chats: ChatSet,
    *,
    engine: str,
    providers: Mapping[str, Provider] | None = None,
    on_progress: ProgressListener = silent,
) -> Chatted:
    """Distil the chats of a public set, and look for the answers' words in the memory of them."""
    with tempfile.TemporaryDirectory(prefix="stillroom-eval-") as folder:
        trial = Trial(Path(folder), engine=engine, providers=providers)
        scenarios = {chat.id: chat.scenario() for chat in chats.chats}
        for scenario in scenarios.values():
            trial.add(scenario)
        trial.run(on_progress=on_progress)
        outputs = trial.outputs()

        def text_of(part: Callable[[Stage1Output], str]) -> dict[str, str]:
            made = {chat: outputs.get(scenario.thread_id) for chat, scenario in scenarios.items()}
            return {chat: part(output) for chat, output in made.items() if output}

        given = {cwd: "\n".join(bullets_of(trial.given(cwd))) for cwd in {each.cwd for each in scenarios.values()}}
        return Chatted(
            sessions=len(scenarios),
            empty=len(scenarios) - len(outputs),
            said=held(chats, {chat.id: "\n".join(m.content for m in chat.messages) for chat in chats.chats}),
            told=held(chats, text_of(lambda output: output.raw_memory)),
            kept=held(chats, text_of(lambda output: f"{output.raw_memory}\n{output.rollout_summary}")),
            given=held(chats, {chat: given[scenario.cwd] for chat, scenario in scenarios.items()}),
            searched=_searched(chats, scenarios, trial),
            cost=cost_of(trial),
        )


def _searched(chats: ChatSet, scenarios: Mapping[str, Scenario], trial: Trial) -> Held:
    asked = [one for one in chats.questions if one.chats]
    questions = ((scenarios[one.chats[0]].cwd, one.question) for one in asked)
    answers = dict(zip((one.id for one in asked), trial.found(questions, at_most=_SEARCH_RESULTS), strict=True))
    return held(chats, answers, by_question=True)
