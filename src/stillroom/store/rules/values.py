"""What rules are asked, what they ask for, and what they say."""

from __future__ import annotations

import math
import shlex
from typing import Literal, NamedTuple

import msgspec

from stillroom.clock import DAY_SECONDS
from stillroom.config import OFFLINE, Memories, StageOne
from stillroom.store.records import Job, Told

SOURCES = frozenset({"cli", "vscode", "atlas", "chatgpt", '{"custom":"atlas"}', '{"custom":"chatgpt"}'})
"""How sessions with a person at the other end are started; the schema has the same list."""

Verdict = Literal["passes", "refuses", "waits", "done", "not_reached"]
"""`waits`: time, or another process, lifts it. `done`: nothing to do. `not_reached`: an earlier rule refuses."""

ExtractionRule = Literal[
    "enabled", "mode", "project", "watermark", "missing", "archived", "preview", "memory_worker", "source", "current",
    "cwd", "session", "idle", "age", "scan_limit", "lease", "retries", "backoff", "paused", "cap",
]  # fmt: skip
SelectionRule = Literal["output", "remembered", "words", "undone", "used", "rank"]
RetentionRule = Literal["kept"]
RuleName = ExtractionRule | SelectionRule | RetentionRule

State = Literal["extracted", "no_output", "expired", "next", "waiting", "running", "failed", "excluded"]
"""How a thread stands. `next`: the next pass takes it."""


Values = dict[str, str | int | bool | None]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The pass that the rules are asked for; without more than the settings, one that a hook starts."""

    memories: Memories
    stage: StageOne
    now_ms: int
    current_thread_id: str | None = None
    cwd: str | None = None
    backfill: bool = False
    #: Whoever was reopened is taken, however old, as in a backfill.
    upgrade: bool = False
    #: Whoever failed and was reopened is taken, however old, and nobody else.
    retry: bool = False
    #: Takes the place of `max_rollouts_per_startup`.
    max_threads: int | None = None
    #: Only these threads, of any age and without a pause; empty: all.
    sessions: frozenset[str] = frozenset()
    #: When a person paused all passes, as it was written down; None: they are not.
    paused_since: str | None = None

    @property
    def now(self) -> int:
        return self.now_ms // 1000

    @property
    def is_unbounded(self) -> bool:
        """A person asks for all of something: no cap, scan limit or pause of a hook's pass holds."""
        return self.backfill or self.upgrade or self.retry or bool(self.sessions)

    @property
    def cap(self) -> int | None:
        """Threads that the pass may take; None: all."""
        return most_threads(self.memories, take_all=self.is_unbounded, max_threads=self.max_threads)


def most_threads(memories: Memories, *, take_all: bool, max_threads: int | None) -> int | None:
    """How many threads a pass may take; None: all that there are."""
    if max_threads is not None:
        return max_threads
    return None if take_all else memories.threads_per_pass


class Output(NamedTuple):
    """What was extracted of a thread, without its texts. Times in seconds."""

    source_updated_at: int
    generated_at: int
    usage_count: int
    last_usage: int | None
    last_given: int | None
    #: Age counts from here: the last of the extraction, a citation, or that a session was given it.
    alive_at: int
    holds_preferences: bool
    is_blank: bool
    #: Whether the last successful consolidation drew on it, and on which version.
    selected: bool
    selected_source_updated_at: int | None
    #: What an undo decided of it: `out` of the folder, or `in` it however old it is.
    held: str | None
    #: Among all that may be selected, from 0; None: it may not.
    rank: int | None


class Facts(msgspec.Struct):
    """What the database says of a thread, as far as a rule asks for it; what comes before it is counted meanwhile."""

    thread_id: str
    source: str
    cwd: str
    updated_at_ms: int
    has_words: bool
    recorded_mode: str
    chosen_mode: str | None
    #: It ran in a project whose memory is switched off.
    switched_off: bool
    archived: bool
    missing: bool
    #: Its client said that it is over, and nothing was said since.
    ended: bool
    job: Job | None
    #: Up to which activity its output goes; None: there is none.
    output_watermark: int | None
    #: Newer threads that the scan looks at before it; None: it does not look at this one.
    scanned_before: int | None = None
    #: Newer threads that a pass takes before it; None: this one can't be taken.
    claimed_before: int | None = None
    #: Threads that other processes hold.
    running: int = 0
    #: The thread that tells what it begins with.
    told: Told | None = None

    @property
    def watermark(self) -> int:
        return self.updated_at_ms // 1000

    @property
    def mode(self) -> str:
        return self.recorded_mode if self.chosen_mode is None else self.chosen_mode


class Change(NamedTuple):
    """What would have a rule decide otherwise."""

    #: The key of `config.toml`.
    setting: str | None = None
    #: The command.
    command: str | None = None
    #: Where neither does: what else does, in words.
    otherwise: str | None = None


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says of one thread."""

    rule: RuleName
    verdict: Verdict
    #: What was compared, e.g. `{"idle_hours": 2, "min_rollout_idle_hours": 6}`. Times in seconds since 1970.
    values: Values
    #: What would change it, as `Change` says; a rule that lets the thread pass says it too.
    setting: str | None = None
    command: str | None = None
    otherwise: str | None = None
    #: When it lifts by itself, in seconds.
    until: int | None = None


def cutoff(question: Question) -> int:
    """Whoever was not used since this second was unused for too long."""
    return question.now - max(question.memories.max_unused_days, 0) * DAY_SECONDS


def newest_ms(question: Question) -> int:
    """Whoever was active later was so too recently."""
    return question.now_ms - question.memories.idle_seconds * 1000


def oldest_ms(question: Question) -> float:
    """Whoever was last active earlier is too old."""
    days = max(question.memories.max_rollout_age_days, 0)
    if question.retry and not (question.backfill or question.upgrade):
        return math.inf  # only what failed
    return -math.inf if question.backfill or question.sessions else question.now_ms - days * DAY_SECONDS * 1000


def room_in_scan(question: Question) -> float:
    """So many threads the scan looks at."""
    limit = question.stage.thread_scan_limit
    return math.inf if question.is_unbounded and limit > 0 else limit


def room_in_claim(question: Question, running: int) -> float:
    """So many threads a pass takes beside those that others hold."""
    return math.inf if question.cap is None else question.cap - running


def remember_thread(facts: Facts) -> Change:
    return Change(command=f"stillroom memories --on --thread {shlex.quote(facts.thread_id)}")


def remember_project(facts: Facts) -> Change:
    return Change(command=f"stillroom memories --on --cwd {shlex.quote(facts.cwd)}")


def extract_again(facts: Facts) -> Change:
    """What the rules did may be done again by a model; what a model did, or expired, when a person asks for it."""
    if facts.output_watermark is None and facts.job is not None and facts.job.expired_at is not None:
        return Change(command=f"stillroom run --session {shlex.quote(facts.thread_id)}")
    if facts.job is None or facts.job.engine == OFFLINE:
        return Change(command="stillroom run --upgrade")
    return Change(command=f"stillroom run --again --session {shlex.quote(facts.thread_id)}")
