-- The state database, version 1. A later version adds a file under `migrations/` and never edits this one.
-- Times are whole seconds since the Unix epoch unless the name ends in `_ms` or `_ns`. Columns that Codex has too
-- keep Codex's names.

-- What is known of every session, without its body.
CREATE TABLE threads (
    thread_id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    rollout_path TEXT NOT NULL,
    source TEXT NOT NULL,
    cwd TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    title TEXT NOT NULL,
    preview TEXT NOT NULL,
    -- What the agent's own files say.
    recorded_mode TEXT NOT NULL,
    -- What was set here, by the user or because of external context; NULL: nothing was.
    chosen_mode TEXT,
    -- The one that counts. Generated, so that no statement can forget to keep it.
    memory_mode TEXT NOT NULL GENERATED ALWAYS AS (coalesce(chosen_mode, recorded_mode)) VIRTUAL,
    archived INTEGER NOT NULL,
    -- The rollout was gone at the last scan: nothing to extract, but its memory stays.
    missing INTEGER NOT NULL DEFAULT 0,
    parent_thread_id TEXT,
    git_branch TEXT,
    git_sha TEXT,
    git_origin_url TEXT,
    cli_version TEXT,
    model_provider TEXT,
    file_size INTEGER NOT NULL,
    file_mtime_ns INTEGER NOT NULL,
    file_offset INTEGER NOT NULL,
    -- What phase 1 may look at at all: sessions with a person at the other end. Codex stores the last two sources as
    -- JSON and so never finds them.
    may_extract INTEGER NOT NULL GENERATED ALWAYS AS (
        archived = 0 AND missing = 0 AND preview <> '' AND coalesce(chosen_mode, recorded_mode) = 'enabled'
        AND source IN ('cli', 'vscode', 'atlas', 'chatgpt', '{"custom":"atlas"}', '{"custom":"chatgpt"}')
    ) VIRTUAL,
    -- The same as a plain column, kept by the triggers below: an index never covers a query on a generated column.
    is_eligible INTEGER NOT NULL DEFAULT 0
);

CREATE TRIGGER threads_inserted AFTER INSERT ON threads WHEN new.may_extract <> new.is_eligible
BEGIN
    UPDATE threads SET is_eligible = may_extract WHERE thread_id = new.thread_id;
END;

CREATE TRIGGER threads_updated
AFTER UPDATE OF archived, missing, preview, chosen_mode, recorded_mode, source ON threads
WHEN new.may_extract <> new.is_eligible
BEGIN
    UPDATE threads SET is_eligible = may_extract WHERE thread_id = new.thread_id;
END;

-- A pass looks at the newest eligible threads only. The index has all that the scan asks for, so that claiming among
-- 100,000 threads never touches the table.
CREATE INDEX threads_eligible ON threads (updated_at_ms DESC, thread_id DESC, cwd, is_eligible) WHERE is_eligible = 1;

-- What phase 1 made of a thread. The foreign key makes an orphan impossible.
CREATE TABLE stage1_outputs (
    thread_id TEXT PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE,
    source_updated_at INTEGER NOT NULL,
    raw_memory TEXT NOT NULL,
    rollout_summary TEXT NOT NULL,
    rollout_slug TEXT,
    generated_at INTEGER NOT NULL,
    engine TEXT NOT NULL,
    usage_count INTEGER NOT NULL DEFAULT 0,
    last_usage INTEGER,
    selected_for_phase2 INTEGER NOT NULL DEFAULT 0,
    selected_for_phase2_source_updated_at INTEGER
);

-- Listings show the latest first.
CREATE INDEX stage1_outputs_latest ON stage1_outputs (source_updated_at DESC, thread_id DESC);

-- The previous selection is a few hundred rows of many: pollution, deletion and selection all ask for it.
CREATE INDEX stage1_outputs_selected ON stage1_outputs (thread_id) WHERE selected_for_phase2 = 1;

-- One row a thread for phase 1, one row in all for phase 2.
CREATE TABLE jobs (
    kind TEXT NOT NULL,
    job_key TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'done', 'error')),
    worker_id TEXT,
    ownership_token TEXT,
    started_at INTEGER,
    -- When the lease was last given or renewed: a clock that jumped back shows in it.
    leased_at INTEGER,
    lease_until INTEGER,
    finished_at INTEGER,
    retry_at INTEGER,
    retry_remaining INTEGER NOT NULL CHECK (retry_remaining >= 0),
    last_error TEXT,
    input_watermark INTEGER,
    last_success_watermark INTEGER,
    -- Who did a stage-1 job last: `offline`, or a model. Known also when there was nothing durable.
    engine TEXT,
    -- Extract it again although the watermark is reached; the next success clears it.
    reopened INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, job_key)
) WITHOUT ROWID;

-- Every claim counts the running jobs; they are few among all that were ever done.
CREATE INDEX jobs_running ON jobs (kind) WHERE status = 'running';

-- Every request to a model, failed ones too.
CREATE TABLE model_calls (
    call_id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    phase TEXT NOT NULL,
    model TEXT NOT NULL,
    outcome TEXT NOT NULL,
    thread_id TEXT,
    duration_ms INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost_usd REAL,
    error TEXT
);

-- Totals are asked for a span of time: a day's cap, a month's bill.
CREATE INDEX model_calls_at ON model_calls (at);

-- The last rate-limit snapshot of each provider.
CREATE TABLE rate_limits (
    provider TEXT PRIMARY KEY,
    snapshot_json BLOB NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;

-- The reports of finished passes.
CREATE TABLE passes (
    pass_id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    report_json BLOB NOT NULL
);
