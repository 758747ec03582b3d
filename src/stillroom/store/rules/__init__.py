"""Why a thread is extracted, selected and kept, or is not: every rule as a value.

The claim decides by an index and a few queries (`claims.scan`, `claims.claim_first`, `selection.select`), so that
it stays quick among 100,000 threads. These rules say the same of one thread in words that a person can be shown; a test
compares both on random stores.
"""

from __future__ import annotations

from stillroom.store.rules.conditions import EXTRACTION
from stillroom.store.rules.extraction import (
    deciding_rule,
    is_claimable,
    is_scanned,
    rule_on_extraction,
    ruling,
    state_of,
)
from stillroom.store.rules.selection import rule_on_retention, rule_on_selection
from stillroom.store.rules.values import (
    SOURCES,
    ExtractionRule,
    Facts,
    Output,
    Question,
    RetentionRule,
    RuleName,
    Ruling,
    SelectionRule,
    State,
    Values,
    cutoff,
    newest_ms,
    oldest_ms,
    room_in_claim,
    room_in_scan,
)

__all__ = [
    "EXTRACTION",
    "SOURCES",
    "ExtractionRule",
    "Facts",
    "Output",
    "Question",
    "RetentionRule",
    "RuleName",
    "Ruling",
    "SelectionRule",
    "State",
    "Values",
    "cutoff",
    "deciding_rule",
    "is_claimable",
    "is_scanned",
    "newest_ms",
    "oldest_ms",
    "room_in_claim",
    "room_in_scan",
    "rule_on_extraction",
    "rule_on_retention",
    "rule_on_selection",
    "ruling",
    "state_of",
]
