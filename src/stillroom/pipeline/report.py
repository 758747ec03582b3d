"""Everything that a pass did, and why it did not do the rest."""

from __future__ import annotations

import json
from typing import Literal

import msgspec

from stillroom.consolidate.outcome import Consolidated, Failed, NoChanges, Phase2Report
from stillroom.errors import StillroomError
from stillroom.extract.guard import GuardDecision
from stillroom.extract.register import RegisterReport
from stillroom.extract.run import Phase1Report
from stillroom.forecast import Forecast
from stillroom.models import AllowanceReport
from stillroom.recall.injection.preparing import RecallReport
from stillroom.recall.usage.counts import UsageReport
from stillroom.store.records import Leaving
from stillroom.workspace.layout import LayoutReport

SkipReason = Literal[
    "feature_off", "paused", "ephemeral", "sub_agent", "memory_worker", "no_state_db", "taking_back", "not_agreed"
]


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """What ended a pass before its last step: the state database or the memory folder could not be used."""

    reason: str
    hint: str | None = None


class PipelineReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a pass did, and why it did not do the rest."""

    started_at: int  #: seconds
    root: str = ""  #: the memory folder
    skipped: SkipReason | None = None
    detail: str = ""
    #: What a killed command had begun to take back, and this pass finished.
    finished: str | None = None
    folder: LayoutReport | None = None
    threads: RegisterReport | None = None
    usage: UsageReport | None = None
    reopened: int = 0
    #: What failed and is tried again because somebody asked for it: threads, and the consolidation.
    retried: int = 0
    #: Outputs that are younger than they were, because a session was given them.
    given: int = 0
    #: What left the database because nobody used it.
    expired: tuple[Leaving, ...] = ()
    guard: GuardDecision | None = None
    #: Of a dry run, and of a pass that is to be agreed to.
    forecast: Forecast | None = None
    extract: Phase1Report | None = None
    consolidate: Phase2Report | None = None
    recall: RecallReport | None = None
    #: What was spent on models, where there are any, and whether a cap stopped it.
    spending: AllowanceReport | None = None
    #: What is above was done all the same.
    stopped: Stopped | None = None

    @property
    def failed(self) -> bool:
        """Something was tried and did not work."""
        if self.skipped in ("no_state_db", "not_agreed") or self.stopped:
            return True
        if isinstance(self.consolidate, Consolidated | NoChanges) and self.consolidate.fallback_reason:
            return True
        return bool(self.extract and self.extract.failed) or isinstance(self.consolidate, Failed)


def stopped_by(report: PipelineReport, error: StillroomError | OSError) -> PipelineReport:
    """The first error is the one that counts; what could not be written because of it follows from it."""
    stopped = report.stopped or Stopped(
        reason=str(error), hint=error.hint if isinstance(error, StillroomError) else None
    )
    return msgspec.structs.replace(report, stopped=stopped)


def encode_report(report: PipelineReport) -> str:
    """The report as JSON: the shape of `stillroom run --json`. Bytes that are no UTF-8 are `\\udc80` and up."""
    try:
        return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(report), indent=2)


__all__ = ["PipelineReport", "SkipReason", "Stopped", "encode_report", "stopped_by"]
