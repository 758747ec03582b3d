"""Numbers that no user needs to change: limits, pauses and sizes, each with its reason."""

from __future__ import annotations

import msgspec


class BudgetNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the ledger; no user needs to change them."""

    #: A reservation counts no longer than this: OpenAI's client gives up on a request after ten minutes.
    reservation_lease_seconds: int = 900
    #: The longest that a caller may ask for: a week, longer than any request lives.
    max_lease_seconds: int = 7 * 24 * 3600
    #: A shared tree that nobody opened or charged for so long is deleted: nobody resumes a session after a quarter.
    tree_kept_days: int = 90
    #: So many, the last used, are never deleted: a clock that jumps ahead makes every tree look old.
    trees_kept: int = 256
    #: Calls under way that an adapter keeps in mind where its framework does not tell of cancelled ones.
    max_open_calls: int = 10_000
    #: Trees that `stillroom budget status` tells of, and threads of each that it prints: a screen or two.
    trees_told: int = 20
    threads_told: int = 30


BUDGET = BudgetNumbers()


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the gateway; no user needs to change them."""

    #: Where `stillroom budget serve` listens unless it is told: beside the MCP server's.
    port: int = 8378
    #: A request's or an answer's head, at most: Codex sends a few kilobytes of metadata in it.
    max_head_bytes: int = 256 * 1024
    #: A request's body, at most: a long history with images.
    max_request_bytes: int = 128 * 1024 * 1024
    #: An answer that is no stream, or one event of a stream; usage in a longer one is not looked for.
    max_answer_bytes: int = 32 * 1024 * 1024
    #: One read; large enough that many small events cost one.
    read_bytes: int = 64 * 1024
    connect_timeout_seconds: float = 15
    #: No byte for this long, and the upstream hangs: OpenAI's client gives up after ten minutes too.
    silence_timeout_seconds: float = 600
    #: A connection to the upstream that nobody used for so long is not used again: it may be about to close it.
    idle_connection_seconds: float = 20
    #: Of the name of a tree or a thread, in characters.
    max_name_chars: int = 200


GATEWAY = Gateway()


class StageOne(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of phase 1 (spec §1.1)."""

    lease_seconds: int = 3600
    #: A third of the time that a missed heartbeat may cost before another process may steal the lease.
    heartbeat_seconds: int = 90
    retry_delay_seconds: int = 3600
    #: Three failures, then only new activity in the thread revives it.
    retries: int = 3
    #: Newest threads looked at in one pass; keeps a pass short on a home with years of sessions.
    thread_scan_limit: int = 5000
    #: Rows removed in one pass, so that the pass stays short.
    retention_batch: int = 200
    #: Used when the model's window is unknown.
    fallback_rollout_tokens: int = 150_000
    #: Share of the effective window; the rest is for the prompt and the answer.
    context_window_percent: int = 70
    #: Providers count differently; 5 % of the window is never used.
    effective_context_window_percent: int = 95
    #: Share of a known window that the answer may take.
    reply_window_percent: int = 20
    #: A smaller window is refused: our own words and the answer would leave nothing of a session.
    least_context_window: int = 4096
    #: A line longer than this is cut while it is read (8 MiB).
    max_line_bytes: int = 8 * 1024 * 1024
    #: Items by which sessions without an id of their own are compared, eight bytes each; a longer one never is.
    max_compared_items: int = 20_000
    #: Claims of one round; a backfill takes round after round, so that no lease waits for hours.
    max_claims_per_round: int = 128
    #: A reply longer than this is not a memory.
    max_reply_tokens: int = 16_000
    #: The same in characters, generously, for servers that don't keep to the limit.
    max_reply_chars: int = 128_000
    #: A model that has said nothing for this long has hung.
    request_timeout_seconds: int = 300
    #: The same on this machine, where a model is slow rather than hung: a CPU reads a session in many minutes, and what
    #: is asked at the same time waits its turn.
    local_timeout_seconds: int = 1800
    #: Attempts for one call when the provider answers 429 or 5xx, with growing pauses.
    request_attempts: int = 4
    #: The first pause between attempts; it doubles each time, with jitter.
    retry_pause_seconds: float = 0.5
    #: No pause is longer, whatever the provider asks for: the lease and the person wait too.
    max_retry_pause_seconds: float = 60
    #: A server that does not take the connection in this time is not there.
    connect_timeout_seconds: float = 15
    #: A reply's body, several times `max_reply_tokens`: a server that never ends is cut off.
    max_reply_bytes: int = 4 * 1024 * 1024


class StageTwo(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of phase 2 (spec §1.1)."""

    lease_seconds: int = 3600
    heartbeat_seconds: int = 90
    retry_delay_seconds: int = 3600
    success_cooldown_seconds: int = 6 * 3600
    retries: int = 3
    max_diff_bytes: int = 4 * 1024 * 1024
    extension_resource_days: int = 7
    #: The agent's turn limits: a healthy run needs a few dozen requests.
    max_requests: int = 120
    max_tool_calls: int = 400
    #: Input and output tokens of the whole run, cached ones counted in full.
    max_total_tokens: int = 12_000_000
    #: Requests in a row without a change in the staging folder before the run is stopped.
    max_requests_without_progress: int = 40
    max_run_seconds: int = 2400
    #: The same call with the same answer, without a change in between, this often: it goes in circles.
    max_identical_calls: int = 8
    #: Calls in a row of tools that don't exist, or with arguments that are no JSON; then the model can't do it.
    max_invalid_calls: int = 5
    #: How often the validators' findings are given back to the agent before its result is judged as it is.
    max_corrections: int = 3
    #: The conversation as sent, in bytes (about 150,000 tokens); older tool answers are taken out beyond it.
    max_conversation_bytes: int = 600_000
    #: A smaller window is refused: the instructions and tools alone take about 4,500 tokens.
    least_context_window: int = 8192
    #: Every tool's answer is cut here and says so (bytes).
    max_tool_output_bytes: int = 32 * 1024
    #: `memory_summary.md` at most, in tokens: what a session is later given is 2,500.
    max_summary_tokens: int = 5000
    #: `MEMORY.md` at most, in bytes; agents grep it, a larger one only hides things.
    max_handbook_bytes: int = 1024 * 1024
    #: Everything in the folder at most, in bytes.
    max_folder_bytes: int = 64 * 1024 * 1024
    #: One file at most, in bytes; a larger one of the user's stays in the folder, unseen by the agent and the history.
    max_file_bytes: int = 32 * 1024 * 1024
    #: Folders inside folders; the format needs three, and every level costs a descriptor while it is read.
    max_folder_depth: int = 24
    #: `MEMORY.md` that loses more than this share though no input went away has probably collapsed.
    max_handbook_shrink_percent: int = 34
    #: Entries that are none of ours before a folder counts as somebody else's.
    max_unrelated_entries: int = 3
    #: git's objects in files of their own before they are packed: some 25 versions, which take a second. Left alone,
    #: 500 versions of 256 threads become 5,000 files of 137 MB, and a `forget` that packs them takes a minute.
    pack_at_loose_objects: int = 250
    #: Of more, so many at once: the next consolidation goes on.
    max_packed_objects: int = 500
    #: git answers in milliseconds; this long means a hung disk.
    git_timeout_seconds: int = 120
    #: Files and folders at most: 4,096 rollout summaries, and room for skills and notes.
    max_folder_entries: int = 20_000
    #: A file tool answers in milliseconds; after this it hangs (seconds).
    max_call_seconds: int = 20
    #: The longest that one shell command may take.
    max_shell_seconds: int = 60
    #: A pipeline of a dozen programs fits; a fork bomb doesn't.
    max_jail_processes: int = 64
    #: Of each process by the kernel, of all together by the parent.
    max_jail_memory_bytes: int = 1024 * 1024 * 1024
    #: A jail that had to be ended this often won't do better the next time.
    max_jail_restarts: int = 5


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of reading and rendering session files; no user needs to change them."""

    #: One read of a long line. Large enough that Python's share vanishes, small enough to stay in a cache.
    chunk_bytes: int = 256 * 1024
    #: Lines are read and split this many bytes at a time: a call costs little, and the lines stay in a cache.
    batch_bytes: int = 128 * 1024
    #: A run of base64 letters this long inside a long line is data that tells a model nothing.
    blob_run_bytes: int = 4096
    #: What is kept of a huge string in a long line, at each end.
    string_end_bytes: int = 256 * 1024
    #: Bytes of a new file that are read for identity and preview: the first line alone may hold 100 KB of instructions.
    head_bytes: int = 1024 * 1024
    #: The same where no user has spoken in them: ahead of the first words an image may stand, or a tool's whole output.
    #: Read only of such files, in a fraction of a second.
    long_head_bytes: int = 64 * 1024 * 1024
    #: Bytes at the end of a file in which the last timestamp is looked for.
    tail_window_bytes: int = 256 * 1024
    #: Characters of the first user message that name a thread in lists.
    preview_chars: int = 200
    #: Text beyond each end of a cut that is redacted and then dropped, so that no half of a secret stays at the seam.
    seam_guard_bytes: int = 32 * 1024
    #: Held at each seam in all; above the guard because redaction may shrink the text.
    seam_margin_bytes: int = 128 * 1024
    #: One row of evidence, its marker included: a long message tells enough by its two ends.
    evidence_row_bytes: int = 10_000
    #: The same for a tool's output, of which there are many.
    evidence_tool_row_bytes: int = 8_000
    #: Records of one file by which repeated ones are told: of a session of a gigabyte all, at 70 MB.
    remembered_records: int = 1_000_000
    #: Other sessions that are searched for what a session copied: one that was resumed over and over has as many.
    copies_looked_at: int = 32


READING = Reading()


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the tools that list, read and search the memory folder (spec §3); no user needs to change them."""

    #: Entries of one page of `list`, and the default.
    max_list_results: int = 2000
    #: Matches of one page of `search`, and the default.
    max_search_results: int = 200
    #: What `read` answers at most, and one page of `list` or `search`: a model has to hold it.
    max_answer_tokens: int = 20_000
    #: One match with the lines around it; a line may be as long as its file.
    max_match_tokens: int = 2000
    #: One file at most, in bytes: what a consolidation takes (`StageTwo.max_file_bytes`).
    max_file_bytes: int = 32 * 1024 * 1024
    #: Folders inside folders, as for a consolidation: every level costs a descriptor while it is searched.
    max_folder_depth: int = 24
    #: Lines shown on each side of a match: more than `max_match_tokens` have room for.
    max_context_lines: int = 1000
    #: Queries of one search, and the bytes of each: a person or an agent writes a handful of words.
    max_queries: int = 64
    max_query_bytes: int = 4096
    #: Files told of that a search had to skip.
    skipped_told: int = 20
    #: What is indexed of one session or part of a file; longer ones are found by their beginnings.
    max_passage_chars: int = 256 * 1024
    #: Results of one page of a ranked search when nothing else is said: what fits a screen.
    ranked_results: int = 10
    #: A note, in bytes: what a consolidation reads of one.
    max_note_bytes: int = 16_000


LOOKUP = Lookup()


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the MCP server; no user needs to change them."""

    #: Where `stillroom mcp --http` listens unless it is told: a port that no common program has.
    http_port: int = 8377
    #: An answer as JSON, at most: escapes may make it several times as long as its text.
    max_answer_bytes: int = 256 * 1024
    #: A request's body, at most: a note has 16,000 bytes.
    max_request_bytes: int = 512 * 1024
    #: A citation that is handed in: some hundred entries with their notes.
    max_citation_chars: int = 64 * 1024
    #: Open streams of clients get so long when the server is to end.
    shutdown_seconds: int = 2
    #: Random bytes of the token.
    token_bytes: int = 32
    #: A shorter token can be guessed.
    min_token_chars: int = 32


SERVING = Serving()


class Citing(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of counting how memory is used."""

    #: A longer script is not parsed: nobody reads memory with it, and a program may have written it.
    max_command_chars: int = 16 * 1024
    #: Of one message; the prompt asks for a handful.
    max_entries_per_message: int = 100
    max_ids_per_message: int = 100
    #: Files of older versions of the folder that one pass looks up: git answers in a few milliseconds.
    max_version_lookups: int = 200
    #: Bytes of sessions that one pass searches, and how long it may take: extraction waits. What is left is searched by
    #: the next.
    max_search_bytes: int = 4 * 1024 * 1024 * 1024
    max_search_seconds: float = 30
    #: Citations that don't count and are told with their reason; all are counted.
    invalid_told: int = 20
    #: Sessions without a use that are recorded together.
    searched_per_transaction: int = 500


CITING = Citing()


class Recalling(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the read path; no user needs to change them."""

    #: A larger `memory_summary.md` is none: a dozen times what a consolidation may write.
    max_summary_bytes: int = 256 * 1024
    #: A larger `MEMORY.md` is none: twice what a consolidation may write.
    max_handbook_bytes: int = 2 * 1024 * 1024
    #: Folders of threads that a pass looks at, the newest ones: years of work in many worktrees.
    max_folders: int = 5000
    #: git walks all commits for the oldest: a second on a million of them with a commit graph, several without.
    first_commit_timeout_seconds: float = 10
    #: For all repositories of one pass; the rest is asked in the next.
    first_commits_seconds: float = 20
    #: A repository without a known first commit (empty, shallow, too slow) is asked again after a day.
    ask_again_seconds: int = 24 * 3600
    #: Repositories of which a pass checks what memory names, those with memory that ran last; and facts of each.
    max_checked_repositories: int = 20
    max_checked_facts: int = 300
    #: For all of them together; what is left is checked by the next pass. An unchanged repository costs nothing.
    checking_seconds: float = 4
    #: One question to git: searching a million files for a word takes seconds, and is not worth them.
    check_timeout_seconds: float = 2


class DatabaseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the state database."""

    #: How long a writer waits for another process's transaction. They take about a millisecond; a machine that just
    #: woke up, or a slow disk, gets this long before it is an error.
    busy_timeout_ms: int = 30_000
    #: The same for a command that a person waits for: whoever holds it so long is told, with what it is.
    impatient_timeout_ms: int = 3_000
    #: Threads registered in one transaction: a tenth of a second, for which other writers wait.
    threads_per_transaction: int = 2000
    #: Characters of a failure's reason that are kept: enough for a line of a report.
    max_reason_chars: int = 2000
    #: Reports of finished passes that are kept: months of them, at a few kilobytes each.
    passes_kept: int = 500
