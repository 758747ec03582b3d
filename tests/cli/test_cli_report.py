"""What `stillroom run` says of a report: all that is in it, in words that fit the numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stillroom.cli.report import _lines
from stillroom.config import Memories, Settings
from stillroom.consolidate.outcome import Consolidated, HeldForReview, NoChanges, Phase2Report
from stillroom.extract.outcome import Busy, Capped, Failed, LostLease, ReadTotals, Skipped, WithOutput, make_report
from stillroom.extract.register import RegisterReport
from stillroom.pipeline import PipelineReport
from stillroom.recall.usage.counts import UsageReport
from stillroom.store.records import Leaving, ThreadsLeft

SETTINGS = Settings(home=Path("/home"), memories=Memories(max_rollout_age_days=1, min_rollout_idle_hours=1))
CONSOLIDATED = Consolidated(
    inputs=1,
    engine="offline",
    jail=None,
    changed=(),
    written=(),
    deleted=(),
    kept_for_user=("MEMORY.md",),
    ignored=(),
    warnings=(),
    commit=None,
    withheld=1,
    leaving=(Leaving(thread_id="h", name="mend-the-cart", cwd="/shop", reason="rank"),),
)
OUTCOMES = (
    WithOutput(thread_id="a", read=ReadTotals(bad_lines=1, long_lines=1, cut_bytes=1)),
    LostLease(thread_id="b"),
    Skipped(thread_id="c", reason="word for word what `a` says"),
    Capped(thread_id="d", reason="the cap of this run"),
    Busy(thread_id="e", reason="it grows"),
    Failed(thread_id="f", reason="no key"),
)


def told(consolidate: Phase2Report, *, of: int) -> str:
    left = ThreadsLeft(**dict.fromkeys(ThreadsLeft.__struct_fields__, 1))
    report = PipelineReport(
        started_at=0,
        threads=RegisterReport(found=1),
        usage=UsageReport(citing=1, counted=1, reads={"memory_md": 1}, left=1),
        reopened=1,
        retried=1,
        expired=(Leaving(thread_id="g", name="mend-the-cart", cwd="/shop"),),
        extract=make_report(OUTCOMES[:of], engine="offline", duration_ms=1, left=left),
        consolidate=consolidate,
    )
    return "\n".join(text for _, text in _lines(report, SETTINGS))


@pytest.mark.parametrize(
    "consolidate",
    [CONSOLIDATED, NoChanges(inputs=1), HeldForReview(inputs=1, engine="offline", jail=None, warnings=())],
    ids=["consolidated", "no-changes", "held"],
)
def test_one_of_anything_is_told_in_the_singular(consolidate: Phase2Report) -> None:
    text = told(consolidate, of=1)
    assert "1 memory" in text
    assert re.findall(r"\b1 (?:[a-z]+ )?(?:\w+[^s\W]s|memories|are)\b", text.replace("1 tokens in", "")) == []


def test_every_way_in_which_a_thread_ends_is_told() -> None:
    text = told(CONSOLIDATED, of=6)
    assert "1 of 6 threads gave a memory, 0 none" in text
    for words in (
        "1 broken line passed over",
        "taken over",
        "word for word what",
        "a later pass",
        "the next pass: clients",
        "1 failed: no key",
        "mend-the-cart (shop): not used for too long",
        "mend-the-cart (shop): others are used more",
    ):
        assert words in text
