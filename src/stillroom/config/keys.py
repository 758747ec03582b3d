"""What `config.toml` may hold: its tables, their keys, and the ranges of numbers."""

from __future__ import annotations

from typing import Literal

import msgspec

from stillroom.homes import Format

Effort = Literal["minimal", "low", "medium", "high"]
ExtractionInput = Literal["string", "evidence"]
ExtractionOutput = Literal["text", "structured"]
JailChoice = Literal["auto", "bwrap", "landlock", "seatbelt", "files"]
RecallScope = Literal["repository", "all"]
RedactionStyle = Literal["typed", "codex"]
MemoryVersion = Literal["v1"]
ReviewPolicy = Literal["never", "warnings", "always"]
ProviderKind = Literal["openai-responses", "openai-chat"]

OFFLINE = "offline"
"""The model name of the engine that needs no model."""


class Memories(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[memories]` table."""

    #: The feature switch. Codex has it under `[features]`; here it is on by default and never costs money by default.
    enabled: bool = True
    #: The memory folder; None: `STILLROOM_HOME/memories`.
    root: str | None = None
    #: Leave out threads that used the web or an MCP server, as Codex marks them: `polluted`.
    disable_on_external_context: bool = False
    #: Codex's key: new threads take part. Off, they are recorded as `disabled`, and older ones go on.
    generate_memories: bool = True
    #: Codex's key: sessions are given the memory.
    use_memories: bool = True
    #: Also the clients' own homes are looked at, beside `[[sources]]`. Off: only those.
    default_sources: bool = True
    #: Codex's key, so that a table may be copied from there. It changes nothing: `stillroom mcp` has the tools.
    dedicated_tools: bool = False
    #: Codex's key: which of its two formats the folder has. This is the only one that is written here.
    version: MemoryVersion = "v1"
    #: Codex's key: both formats are written. Here it changes nothing, and `stillroom doctor` says so.
    dual_write: bool = False
    #: Outputs that a consolidation may rest on.
    max_raw_memories_for_consolidation: int = 256
    #: Days after which an output that nobody cited or was given leaves; one with preferences never does.
    max_unused_days: int = 30
    #: Threads whose last activity is older are not extracted (`--backfill` takes them).
    max_rollout_age_days: int = 10
    #: A hook starts no pass sooner after the last one.
    pass_interval_minutes: int = 15
    #: Threads that a model extracts in one pass, and jobs of phase 1 that run at once; the offline engine takes all.
    max_rollouts_per_startup: int = 2
    #: Before a model extracts a thread, so many hours without activity, unless its client said that it is over.
    min_rollout_idle_hours: int = 6
    #: The same for the offline engine, in minutes: what it does too early costs nothing, and is done again.
    offline_idle_minutes: int = 5
    #: With less of a quota left no model is called.
    min_rate_limit_remaining_percent: int = 25
    #: Output and uncached input tokens of one pass, at most; a usual one uses one or two million. `0` sends nothing.
    max_weighted_tokens_per_run: int = 5_000_000
    #: The same of all passes of a day (UTC): four that ran away.
    max_weighted_tokens_per_day: int = 20_000_000
    #: Before a model's first calls a pass that would cost more US dollars than this asks, or needs `--yes`.
    ask_above_usd: float = 1.0
    #: The same where the price is not known: output and uncached input tokens.
    ask_above_weighted_tokens: int = 500_000
    #: Who extracts: `offline`, or `provider:model`.
    extract_model: str = OFFLINE
    #: Who consolidates: `offline`, or `provider:model`.
    consolidation_model: str = OFFLINE
    #: Reasoning effort of the extraction.
    extract_effort: Effort = "low"
    #: Reasoning effort of the consolidation.
    consolidation_effort: Effort = "medium"
    #: Model calls in flight in phase 1.
    extract_concurrency: int = 8
    #: Tool calls of the consolidation agent that may run at once.
    consolidation_concurrency: int = 1
    #: What a model is given of a thread: one JSON `string`, or rows of `evidence` by worth.
    extraction_input: ExtractionInput = "string"
    #: How a model answers: in the two `text`s that are stored, or `structured`, and code writes them.
    extraction_output: ExtractionOutput = "text"
    #: Placeholders: `[REDACTED_SECRET:github_token]` (`typed`) or `[REDACTED_SECRET]` (`codex`).
    redaction: RedactionStyle = "typed"
    #: Tokens of `memory_summary.md` that a session is given at its start; Codex's number.
    summary_token_limit: int = 2500
    #: Whose memory a session is given: its own `repository`'s and what holds everywhere, or `all`.
    scope: RecallScope = "repository"
    #: Which results of a consolidation wait for `stillroom review`: those with `warnings`, `always` all, `never` any.
    review: ReviewPolicy = "never"
    #: How the tools of the consolidation agent are confined; `auto`: the best that the machine has.
    jail: JailChoice = "auto"

    @property
    def idle_seconds(self) -> int:
        """A thread counts as finished after so long without activity."""
        if self.extract_model == OFFLINE:
            return max(self.offline_idle_minutes, 0) * 60
        return max(self.min_rollout_idle_hours, 0) * 3600

    @property
    def idle_setting(self) -> str:
        """Where that is set."""
        is_offline = self.extract_model == OFFLINE
        return "memories.offline_idle_minutes" if is_offline else "memories.min_rollout_idle_hours"

    @property
    def threads_per_pass(self) -> int | None:
        """How many threads a pass takes that nobody asked for more; None: all that are finished."""
        return None if self.extract_model == OFFLINE else self.max_rollouts_per_startup


CLAMPS: dict[str, tuple[int, int]] = {
    "max_raw_memories_for_consolidation": (1, 4096),
    "max_unused_days": (0, 365),
    "max_rollout_age_days": (0, 90),
    "pass_interval_minutes": (1, 1440),
    "max_rollouts_per_startup": (1, 128),
    "min_rollout_idle_hours": (1, 48),
    "offline_idle_minutes": (0, 2880),
    "min_rate_limit_remaining_percent": (0, 100),
    "summary_token_limit": (100, 20_000),
    "max_weighted_tokens_per_run": (0, 4 * 10**12),
    "max_weighted_tokens_per_day": (0, 4 * 10**12),
    "ask_above_usd": (0, 1_000_000),
    "ask_above_weighted_tokens": (0, 4 * 10**12),
    "extract_concurrency": (1, 64),
    "consolidation_concurrency": (1, 16),
}
ALIASES = {"no_memories_if_mcp_or_web_search": "disable_on_external_context"}


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server that speaks one of OpenAI's protocols, under a name of the user's."""

    #: The protocol that it speaks.
    kind: ProviderKind
    #: Where, e.g. `http://127.0.0.1:8080/v1`.
    base_url: str
    #: The environment variable with the key; None: no key is sent (a placeholder, where the protocol wants one).
    api_key_env: str | None = None
    #: Tokens; None: unknown, and the rollout is cut to `fallback_rollout_tokens`.
    context_window: int | None = None
    #: How long one request may take; None: 300 s, and 1,800 s for a server on this machine.
    timeout_seconds: int | None = None


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place where an agent stores sessions."""

    #: How the sessions are stored.
    format: Format
    #: The agent's home, e.g. `~/.codex` or `~/.claude`; for `opencode` its data folder, or a database; of
    #: what frameworks store any folder, or one file.
    root: str


class RolloutBudgetKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What a budget is given, in a table or in code: Codex's keys, and ours. Checked by `stillroom.budget`."""

    #: Weighted tokens that a tree of sessions may use. Required.
    limit_tokens: int | None = None
    #: The same as a number that need not be whole, for servers that report units of their own; one of the two.
    limit_budget: float | None = None
    #: Agents are told what is left whenever no more than one of these is. Required, may be `[]`.
    reminder_at_remaining_tokens: tuple[int, ...] | None = None
    #: Instead of the list: they are told after every so many weighted tokens.
    reminder_interval_tokens: int | None = None
    #: They are also told on a thread's first request, and on the first of each context window.
    reminder_at_context_start: bool = True
    #: Charge for a token that the model wrote.
    sampling_token_weight: float = 1.0
    #: Charge for a token that it read and that did not come from the prompt cache.
    prefill_token_weight: float = 1.0
    #: Off: reminders only, nothing is ever aborted.
    enforce_limit: bool = True
    #: Ours: charge for a token that came from the prompt cache.
    cached_token_weight: float = 0.0
    #: Ours: charge for a token that was written to the prompt cache. None: as any other input.
    cache_write_token_weight: float | None = None
    #: Ours: charge for a token of reasoning. None: as any other output.
    reasoning_token_weight: float | None = None
    #: Ours: weighted tokens for one closing answer after the limit was exceeded.
    grace_tokens: int = 0


class RolloutBudgetTable(RolloutBudgetKeys, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[features.rollout_budget]` table: Codex's keys, and ours. Checked by `stillroom.budget`."""

    #: The feature switch. Off, the rest of the table is ignored.
    enabled: bool = False


class Features(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[features]` table, of which Stillroom has one."""

    #: A table with `enabled = true`, or `true` or `false` alone.
    rollout_budget: RolloutBudgetTable | bool = False


def clamp(memories: Memories) -> Memories:
    """Bring every number into its range (spec §9.1: clamped, not rejected)."""
    changes = {name: min(max(getattr(memories, name), low), high) for name, (low, high) in CLAMPS.items()}
    return msgspec.structs.replace(memories, **changes)
