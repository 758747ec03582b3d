"""The rules about consolidating what was extracted of a thread, and about keeping it."""

from __future__ import annotations

from collections.abc import Iterator

from stillroom.clock import DAY_SECONDS
from stillroom.store.rules.values import (
    Change,
    Facts,
    Output,
    Question,
    Ruling,
    Values,
    Verdict,
    cutoff,
    extract_again,
    remember_project,
    remember_thread,
)


def rule_on_selection(facts: Facts, output: Output | None, question: Question) -> Iterator[Ruling]:
    """Every rule about consolidating what was extracted, in order. The first that does not pass decides."""
    memories = question.memories
    if output is None:
        done = facts.job is not None and facts.job.status == "done"
        change = Change(otherwise="its extraction, of which the rules are above")
        if done:
            change = extract_again(facts) if facts.mode == "enabled" else remember_thread(facts)
        values: Values = {"extracted": done, "reason": facts.job.last_error if facts.job else None}
        yield Ruling(rule="output", verdict="refuses", values=values, **change._asdict())
        return
    yield Ruling(rule="output", verdict="passes", values={"generated_at": output.generated_at})
    refused = facts.mode != "enabled" or facts.switched_off
    yield Ruling(
        rule="remembered",
        verdict="refuses" if refused else "passes",
        values={"mode": facts.mode, "project_switched_off": facts.switched_off},
        **(remember_thread(facts) if facts.mode != "enabled" else remember_project(facts))._asdict(),
    )
    blank: Verdict = "refuses" if output.is_blank else "passes"
    yield Ruling(rule="words", verdict=blank, values={}, **extract_again(facts)._asdict())
    yield Ruling(
        rule="undone",
        verdict="refuses" if output.held == "out" else "passes",
        values={"held": output.held},
        command="stillroom redo",
    )
    yield Ruling(
        rule="used",
        verdict="refuses" if _is_unused(output, question) else "passes",
        values={
            "usage_count": output.usage_count,
            "alive_at": output.alive_at,
            "holds_preferences": output.holds_preferences,
            "max_unused_days": memories.max_unused_days,
        },
        setting="memories.max_unused_days",
    )
    limit = memories.max_raw_memories_for_consolidation
    verdict: Verdict = "not_reached" if output.rank is None else "passes" if output.rank < limit else "refuses"
    yield Ruling(
        rule="rank",
        verdict=verdict,
        values={
            "rank": None if output.rank is None else output.rank + 1,
            "max_raw_memories_for_consolidation": limit,
            "in_folder": output.selected,
            "in_folder_as_extracted": output.selected_source_updated_at == output.source_updated_at,
        },
        setting="memories.max_raw_memories_for_consolidation",
    )


def rule_on_retention(output: Output, question: Question) -> Ruling:
    """Whether a pass removes what was extracted. `waits`: it does once no memory file rests on it."""
    unused = _is_unused(output, question)
    return Ruling(
        rule="kept",
        verdict="passes" if not unused else "waits" if output.selected else "refuses",
        values={
            "alive_at": output.alive_at,
            "holds_preferences": output.holds_preferences,
            "max_unused_days": question.memories.max_unused_days,
            "in_folder": output.selected,
        },
        setting="memories.max_unused_days",
        until=None
        if unused or output.holds_preferences
        else output.alive_at + max(question.memories.max_unused_days, 0) * DAY_SECONDS,
    )


def _is_unused(output: Output, question: Question) -> bool:
    """For too long; what holds preferences, or an undo brought back, stays as if it were used."""
    return output.held != "in" and not output.holds_preferences and output.alive_at < cutoff(question)
