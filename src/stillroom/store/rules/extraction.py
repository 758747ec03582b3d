"""What the rules about extracting a thread come to: which of them decides, and how the thread then stands."""

from __future__ import annotations

from collections.abc import Iterator

from stillroom.store.rules.conditions import EXTRACTION, Rule
from stillroom.store.rules.values import ExtractionRule, Facts, Question, RuleName, Ruling, State, Verdict

_BY_NAME = {rule.name: rule for rule in EXTRACTION}
_ORDER = {rule.name: place for place, rule in enumerate(EXTRACTION)}


def _named(*names: ExtractionRule) -> dict[ExtractionRule, Rule]:
    return {name: _BY_NAME[name] for name in names}


#: What the scan asks of a thread, ahead of its limit; and what a claim asks then, ahead of its cap.
_SCANNED = _named(
    "mode", "project", "missing", "archived", "preview", "source", "current", "cwd", "session", "idle", "age"
)
_CLAIMED = _named("watermark", "scan_limit", "lease", "retries", "backoff", "paused")


def rule_on_extraction(facts: Facts, question: Question) -> Iterator[Ruling]:
    """Every rule about extracting a thread, in order. The first that does not pass decides."""
    for rule in EXTRACTION:
        yield _ruled(rule, rule.judge(facts, question), facts, question)


def deciding_rule(facts: Facts, question: Question) -> ExtractionRule | None:
    """The first rule on extraction that does not let the thread pass; None: all do."""
    for rule in EXTRACTION:
        if rule.judge(facts, question) != "passes":
            return rule.name
    return None


def ruling(name: ExtractionRule, facts: Facts, question: Question) -> Ruling:
    """What one rule on extraction says of a thread."""
    rule = _BY_NAME[name]
    return _ruled(rule, rule.judge(facts, question), facts, question)


def is_scanned(facts: Facts, question: Question, decided: ExtractionRule | None) -> bool:
    """Whether the scan looks at the thread of which this rule decided, if its limit lets it."""
    return _pass(_SCANNED, facts, question, decided)


def is_claimable(facts: Facts, question: Question, decided: ExtractionRule | None) -> bool:
    """Whether a pass takes a thread that the scan looks at, if its cap lets it."""
    return _pass(_CLAIMED, facts, question, decided)


def state_of(decided: RuleName | None, facts: Facts) -> State:
    """How a thread stands of which this rule decided."""
    match decided:
        case None:
            return "next"
        case "watermark":
            if facts.output_watermark is not None:
                return "extracted"
            return "expired" if facts.job is not None and facts.job.expired_at is not None else "no_output"
        case "idle" | "paused" | "cap":
            return "waiting"
        case "lease":
            return "running"
        case "backoff" | "retries":
            return "failed"
        case _:
            return "excluded"


def _pass(rules: dict[ExtractionRule, Rule], facts: Facts, question: Question, decided: ExtractionRule | None) -> bool:
    if decided in rules:
        return False
    # All that stand ahead of the one that decided let the thread pass: mostly nothing is left to judge.
    if decided is None or _ORDER[decided] > _ORDER[next(reversed(rules))]:
        return True
    return all(rule.judge(facts, question) == "passes" for rule in rules.values())


def _ruled(rule: Rule, verdict: Verdict, facts: Facts, question: Question) -> Ruling:
    values, until = rule.tell(facts, question)
    return Ruling(
        rule=rule.name,
        verdict=verdict,
        values=values,
        **rule.change(facts, question)._asdict(),
        until=until if verdict == "waits" else None,
    )
