"""How a consolidation can end: a closed union. The names are Codex's metric tags (spec §1.5)."""

from __future__ import annotations

from typing import Literal

import msgspec

from stillroom.spending import Usage
from stillroom.store.records import Leaving

SkipReason = Literal[
    "skipped_retry_unavailable",
    "skipped_cooldown",
    "skipped_running",
    "skipped_no_input",
    "skipped_held_for_review",  # a result waits for a person
    "skipped_rejected",  # a person rejected what was made of the same inputs
]
FailureStatus = Literal[
    "failed_claim",
    "failed_prepare_workspace",
    "failed_sandbox_policy",
    "failed_load_stage1_outputs",
    "failed_sync_workspace_inputs",
    "failed_workspace_status",
    "failed_workspace_diff_file",
    "failed_spawn_agent",
    "failed_agent",
    "failed_invalid_artifacts",
    "failed_confirm_ownership",
    "failed_workspace_commit",
]


class Skipped(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="skipped"):
    """Nothing was done, and that is normal."""

    status: SkipReason
    until: int | None = None  #: seconds; when it may run again


class NoChanges(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="no_changes"):
    """The folder already says what the inputs say: no agent, success."""

    inputs: int
    #: As in `Consolidated`.
    fallback_reason: str | None = None
    status: Literal["succeeded_no_workspace_changes"] = "succeeded_no_workspace_changes"


class Consolidated(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="consolidated"):
    """The folder was rewritten and committed."""

    inputs: int
    engine: str  #: `offline`, or the model's name
    jail: str | None  #: the level that confined the agent's tools; None: no agent
    changed: tuple[str, ...]  #: `A|M|D path` against the previous baseline
    written: tuple[str, ...]
    deleted: tuple[str, ...]
    kept_for_user: tuple[str, ...]  #: changed by a person meanwhile, taken up next time
    ignored: tuple[str, ...]  #: changed by the agent, but not its to change
    warnings: tuple[str, ...]
    commit: str | None
    #: Of the agent's requests; the spending table has each. None: no model was called.
    usage: Usage | None = None
    #: Lines that only a tool or the web said and that stay out, until a person lets them in (`stillroom review`).
    withheld: int = 0
    #: What the memory rested on and does not any more: the next consolidation takes it out of the folder.
    leaving: tuple[Leaving, ...] = ()
    #: Why the offline engine did what a model was to do, which is asked again after a day, or for new memories.
    fallback_reason: str | None = None
    status: Literal["succeeded"] = "succeeded"


class HeldForReview(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="held_for_review"):
    """There is a result, and it waits for a person (`stillroom review`). The folder is as it was."""

    inputs: int
    engine: str  #: `offline`, or the model's name
    jail: str | None
    warnings: tuple[str, ...]
    usage: Usage | None = None  #: as in `Consolidated`
    status: Literal["held_for_review"] = "held_for_review"


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="failed"):
    """The folder is as it was; the job waits for its next try."""

    status: FailureStatus
    reason: str
    retry_at: int | None = None  #: seconds
    #: As in `Consolidated`; also None when the agent was stopped before it could say.
    usage: Usage | None = None


Phase2Report = Skipped | NoChanges | Consolidated | HeldForReview | Failed
