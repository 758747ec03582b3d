"""What the store hands out: values and closed unions of outcomes."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from stillroom.lanes import Quarantined
from stillroom.spending import Usage
from stillroom.thread import FileStamp


class Stage1Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What extraction makes of a thread. Both texts non-empty, already redacted."""

    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None = None


class Stage1Restored(msgspec.Struct, frozen=True, kw_only=True):
    """An output as a version of the memory folder has it."""

    thread_id: str
    source_updated_at: int  #: seconds
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    generated_at: int  #: seconds; when that version was made


class Stage1Output(msgspec.Struct, frozen=True, kw_only=True):
    """A stored draft with what is known of its thread: the input of phase 2."""

    thread_id: str
    source_updated_at: int  #: seconds; the thread's `updated_at` that was extracted
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    rollout_path: str
    cwd: str
    git_branch: str | None
    git_origin_url: str | None
    generated_at: int  #: seconds
    engine: str  #: `offline`, or the model's `provider:name`
    #: Which words the model was sent, and the release of Stillroom; None: not noted.
    prompt: str | None = None
    release: str | None = None
    usage_count: int = 0
    last_usage: int | None = None  #: seconds


class Learnt(NamedTuple):
    """Where and when something was extracted of a session."""

    cwd: str
    at: int  #: seconds
    commit: str | None


class RawMemory(NamedTuple):
    """What was extracted of a thread, for whoever looks for words in all of them."""

    thread_id: str
    source_updated_at: int  #: seconds
    text: str


class OutputStamp(msgspec.Struct, frozen=True, kw_only=True):
    """Which version of an output there is."""

    thread_id: str
    source_updated_at: int  #: seconds
    generated_at: int  #: seconds
    cwd: str


class Stage1Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to extract one thread, until the lease ends."""

    thread_id: str
    ownership_token: str
    source_updated_at: int  #: seconds; becomes the watermark


class UpToDate(msgspec.Struct, frozen=True):
    """The thread was extracted at this watermark, or later."""


class Running(msgspec.Struct, frozen=True):
    """Somebody holds a fresh lease, or the cap of running jobs is reached."""


class RetryBackoff(msgspec.Struct, frozen=True):
    """A failure is too recent."""

    retry_at: int


class RetryExhausted(msgspec.Struct, frozen=True):
    """It failed too often; only new activity in the thread revives it."""


Stage1ClaimOutcome = Stage1Claim | UpToDate | Running | RetryBackoff | RetryExhausted


class ConsolidationClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The global lock of phase 2."""

    ownership_token: str
    input_watermark: int


class Cooldown(msgspec.Struct, frozen=True):
    """A success is too recent."""

    until: int


ConsolidationClaimOutcome = ConsolidationClaim | Running | RetryBackoff | Cooldown


class ThreadsLeft(msgspec.Struct, frozen=True, kw_only=True):
    """Threads that are not extracted, by the first reason that holds."""

    not_idle: int = 0  #: active less than `min_rollout_idle_hours` ago
    too_old: int = 0  #: active longer than `max_rollout_age_days` ago; a backfill takes them
    waiting: int = 0  #: for the next pass
    running: int = 0  #: with another process, or with one that was killed, until its lease ends
    retry_later: int = 0  #: failed, in the pause before the next try
    given_up: int = 0  #: failed too often; only new activity revives them
    current: int = 0  #: the session that the pass is started from
    switched_off: int = 0  #: `disabled` or `polluted`
    archived: int = 0
    not_interactive: int = 0  #: without a person: `exec`, sub-agents, sessions without a word


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an output that stays out of the memory folder."""

    thread_id: str
    cwd: str
    line: Quarantined


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of phase 2 (spec §4.8, with the union that the seeds describe)."""

    #: The top N, in rank order.
    selected: tuple[Stage1Output, ...]
    #: `selected` and those of the previous selection that may still be remembered, ascending by thread id: the files
    #: on disk. At most twice the limit; when they don't all fit, the lowest ranks of the previous selection go first.
    on_disk: tuple[Stage1Output, ...]
    #: What was left out of their memories, because only a tool or the web said it.
    withheld: tuple[Withheld, ...] = ()


JobStatus = Literal["pending", "running", "done", "error"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the database has it. All times in seconds."""

    status: JobStatus
    retry_remaining: int
    worker_id: str | None = None
    ownership_token: str | None = None
    started_at: int | None = None
    leased_at: int | None = None  #: when the lease was given or last renewed
    lease_until: int | None = None
    finished_at: int | None = None
    retry_at: int | None = None
    last_error: str | None = None
    input_watermark: int | None = None
    last_success_watermark: int | None = None
    reopened: bool = False  #: to be done again although its watermark is reached
    #: Who did a job of phase 1 last: `offline`, or a model.
    engine: str | None = None


class SpendingTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What one model was used for on one day, in one phase."""

    day: str  #: `2026-05-01`, UTC
    phase: str
    model: str
    calls: int
    failed_calls: int
    unpriced_calls: int  #: calls whose price is not known: `cost_usd` is without them
    cost_usd: float
    usage: Usage


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What was used since a moment, as far as the calls were counted."""

    since: int = 0  #: seconds
    last_id: int = 0  #: the last call that was counted
    usage: Usage = Usage()


class RateLimitSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider last said about its limits, as it was saved."""

    provider: str
    snapshot_json: bytes
    at: int  #: seconds


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A message that cites memory, or a command that reads it."""

    kind: Literal["citation", "command"]
    #: Tells what is said or run: two that are equal have the same.
    digest: bytes
    #: Of those in the session that are equal, from 1; None: it is one more.
    nth: int | None
    at: int  #: seconds
    #: The threads whose memory is cited, each once; of a command the kinds of memory that it reads.
    used: tuple[str, ...]
    #: The digest by which the same is known if it came another way; of the two only the first counts.
    twin: bytes | None = None

    @property
    def key(self) -> tuple[bytes, int | None]:
        """By which it is known in its session."""
        return self.digest, self.nth


class RecordedUse(msgspec.Struct, frozen=True, kw_only=True):
    """A use that was not known before."""

    use: Use
    #: Of what was used: what is there to be counted.
    counted: tuple[str, ...]
    #: Its twin was counted, and it was not.
    again: bool = False


class PassRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a finished pass, as it was saved."""

    at: int  #: seconds
    report_json: bytes


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder was when it was last there: a work tree of some repository, or a plain folder."""

    #: Git's common directory, which all worktrees share; without git the folder. "" if it was never seen here.
    place: str
    #: The top of the work tree; without git the folder itself.
    folder: str
    is_git: bool
    remote: str | None = None
    #: The oldest root commit; None: not known.
    first_commit: str | None = None
    #: When git was last asked for it, in seconds.
    asked_at: int | None = None


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder in which threads ran."""

    cwd: str
    #: The remote that the agent recorded.
    git_origin_url: str | None
    #: Whether something was extracted of one of its threads.
    has_output: bool
    checkout: Checkout | None


class ThreadRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a session's file held when it was read as a whole."""

    messages: int
    #: Of what memory keeps, four bytes to a token.
    tokens: int
    #: Lines that could not be parsed.
    bad_lines: int = 0
    #: Lines over the limit, and what was taken out of them.
    long_lines: int = 0
    cut_bytes: int = 0
    #: Records of kinds that this version does not know, by kind.
    unknown: dict[str, int] = {}
    #: Records of known kinds, in a sample, with a field that it does not know, by field.
    unknown_fields: dict[str, int] = {}


class Place(NamedTuple):
    """Where a thread lies, and how that looked."""

    agent: str
    path: str
    updated_at_ms: int
    stamp: FileStamp


class Told(NamedTuple):
    """The session that tells what another one begins with."""

    thread_id: str
    #: So many items, of how many.
    items: int
    of: int


class ReadTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of one agent's sessions."""

    agent: str
    threads: int
    messages: int
    tokens: int
    bad_lines: int
    long_lines: int
    cut_bytes: int


class UnknownTotal(msgspec.Struct, frozen=True, kw_only=True):
    """Records of a kind that this version does not know."""

    agent: str
    kind: str
    #: Of the client; None: not recorded.
    version: str | None
    records: int
    threads: int


class UnknownField(msgspec.Struct, frozen=True, kw_only=True):
    """A field that this version does not know, of records whose kind it knows."""

    agent: str
    #: Where it stands, e.g. `assistant.message.content:tool_use.caller`.
    field: str
    #: Of the client; None: not recorded.
    version: str | None
    #: In a sample of each session's records.
    records: int
    threads: int


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """What the memory holds, and how it is used."""

    #: Outputs of phase 1, and those that the folder rests on.
    outputs: int
    selected: int
    #: How often outputs were cited, in all.
    citations: int
    #: Outputs that were cited since the moment that was asked for.
    used_lately: int
    #: When one was last cited, in seconds.
    last_used: int | None
    #: Outputs that stay out because of an undo.
    undone: int = 0
