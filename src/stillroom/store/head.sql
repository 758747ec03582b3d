-- What `schema.sql` and all migrations come to, for new databases. Written by `make docs`; the reasons are there.

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
    recorded_mode TEXT NOT NULL,
    chosen_mode TEXT,
    archived INTEGER NOT NULL,
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
    is_eligible INTEGER NOT NULL DEFAULT 0
, switched_off INTEGER NOT NULL DEFAULT 0, memory_mode TEXT NOT NULL GENERATED ALWAYS AS (
    CASE
        WHEN switched_off = 1 AND coalesce(chosen_mode, recorded_mode) = 'enabled' THEN 'disabled'
        ELSE coalesce(chosen_mode, recorded_mode)
    END
) VIRTUAL, may_extract INTEGER NOT NULL GENERATED ALWAYS AS (
    archived = 0 AND missing = 0 AND preview <> '' AND switched_off = 0
    AND coalesce(chosen_mode, recorded_mode) = 'enabled'
    AND source IN ('cli', 'vscode', 'atlas', 'chatgpt', '{"custom":"atlas"}', '{"custom":"chatgpt"}')
) VIRTUAL, ended_at_ms INTEGER);

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
, held TEXT CHECK (held IN ('out', 'in')), prompt TEXT, release TEXT, last_given INTEGER, alive_at INTEGER NOT NULL GENERATED ALWAYS AS (
    max(generated_at, coalesce(last_usage, 0), coalesce(last_given, 0))
) VIRTUAL, holds_preferences INTEGER NOT NULL GENERATED ALWAYS AS (
    instr(replace(raw_memory, char(10, 10), char(10)), 'Preference signals:' || char(10) || '- ') > 0
) VIRTUAL);

CREATE INDEX stage1_outputs_latest ON stage1_outputs (source_updated_at DESC, thread_id DESC);

CREATE INDEX stage1_outputs_selected ON stage1_outputs (thread_id) WHERE selected_for_phase2 = 1;

CREATE TABLE jobs (
    kind TEXT NOT NULL,
    job_key TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'done', 'error')),
    worker_id TEXT,
    ownership_token TEXT,
    started_at INTEGER,
    leased_at INTEGER,
    lease_until INTEGER,
    finished_at INTEGER,
    retry_at INTEGER,
    retry_remaining INTEGER NOT NULL CHECK (retry_remaining >= 0),
    last_error TEXT,
    input_watermark INTEGER,
    last_success_watermark INTEGER,
    engine TEXT,
    reopened INTEGER NOT NULL DEFAULT 0, expired_at INTEGER,
    PRIMARY KEY (kind, job_key)
) WITHOUT ROWID;

CREATE INDEX jobs_running ON jobs (kind) WHERE status = 'running';

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

CREATE INDEX model_calls_at ON model_calls (at);

CREATE TABLE rate_limits (
    provider TEXT PRIMARY KEY,
    snapshot_json BLOB NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE passes (
    pass_id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    report_json BLOB NOT NULL
);

CREATE TABLE repositories (
    cwd TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    folder TEXT NOT NULL,
    is_git INTEGER NOT NULL,
    remote TEXT,
    first_commit TEXT,
    asked_at INTEGER
) WITHOUT ROWID;

CREATE TABLE usage_searches (
    thread_id TEXT PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE,
    file_size INTEGER NOT NULL,
    file_mtime_ns INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE memory_uses (
    thread_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    nth INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('citation', 'command')),
    at INTEGER NOT NULL,
    counted TEXT NOT NULL,
    PRIMARY KEY (thread_id, digest, nth)
) WITHOUT ROWID;

CREATE TABLE budget_trees (
    tree_id TEXT PRIMARY KEY,
    config_json BLOB NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE budget_nodes (
    node_id INTEGER PRIMARY KEY,
    tree_id TEXT NOT NULL REFERENCES budget_trees (tree_id) ON DELETE CASCADE,
    thread_id TEXT NOT NULL,
    parent_thread_id TEXT,
    limit_units INTEGER,
    own_units INTEGER NOT NULL DEFAULT 0 CHECK (own_units >= 0),
    used_units INTEGER NOT NULL DEFAULT 0 CHECK (used_units >= 0),
    crossed_by TEXT,
    closing_given INTEGER NOT NULL DEFAULT 0,
    delivered_window TEXT,
    delivered_index INTEGER,
    updated_at INTEGER NOT NULL,
    UNIQUE (tree_id, thread_id)
);

CREATE TABLE budget_reservations (
    reservation_id TEXT PRIMARY KEY,
    tree_id TEXT NOT NULL REFERENCES budget_trees (tree_id) ON DELETE CASCADE,
    thread_id TEXT NOT NULL,
    units INTEGER NOT NULL CHECK (units >= 0),
    lease_until_ms INTEGER NOT NULL,
    owner TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX budget_reservations_of_tree ON budget_reservations (tree_id);

CREATE TRIGGER threads_inserted AFTER INSERT ON threads WHEN new.may_extract <> new.is_eligible
BEGIN
    UPDATE threads SET is_eligible = may_extract WHERE thread_id = new.thread_id;
END;

CREATE TRIGGER threads_updated
AFTER UPDATE OF archived, missing, preview, chosen_mode, recorded_mode, source, switched_off ON threads
WHEN new.may_extract <> new.is_eligible
BEGIN
    UPDATE threads SET is_eligible = may_extract WHERE thread_id = new.thread_id;
END;

CREATE TABLE forgotten (
    digest BLOB PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE thread_reads (
    thread_id TEXT PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE,
    file_size INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    bad_lines INTEGER NOT NULL,
    long_lines INTEGER NOT NULL,
    cut_bytes INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE thread_unknown (
    thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (thread_id, kind)
) WITHOUT ROWID;

CREATE TABLE trusted_lines (
    line_id TEXT PRIMARY KEY,
    trusted_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE forgotten_exchanges (
    digest BLOB PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE thread_contents (
    thread_id TEXT PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE,
    chain BLOB NOT NULL,
    told_in TEXT REFERENCES threads (thread_id) ON DELETE SET NULL,
    told_items INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX thread_contents_opening ON thread_contents (substr(chain, 1, 8));

CREATE INDEX thread_contents_told_in ON thread_contents (told_in) WHERE told_in IS NOT NULL;

CREATE TABLE thread_copies (
    agent TEXT NOT NULL,
    rollout_path TEXT NOT NULL,
    thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    file_size INTEGER NOT NULL,
    file_mtime_ns INTEGER NOT NULL,
    file_offset INTEGER NOT NULL,
    PRIMARY KEY (agent, rollout_path)
) WITHOUT ROWID;

CREATE INDEX thread_copies_thread ON thread_copies (thread_id);

CREATE INDEX threads_eligible ON threads (updated_at_ms DESC, thread_id DESC, cwd, ended_at_ms, is_eligible)
WHERE is_eligible = 1;

CREATE TABLE memory_lines (
    thread_id TEXT NOT NULL REFERENCES stage1_outputs (thread_id) ON DELETE CASCADE,
    line_key TEXT NOT NULL,
    speaker TEXT NOT NULL,
    line_no INTEGER NOT NULL,
    quote TEXT NOT NULL,
    verdict TEXT NOT NULL,
    PRIMARY KEY (line_key, thread_id, speaker, line_no)
) WITHOUT ROWID;

CREATE INDEX memory_lines_of_thread ON memory_lines (thread_id);

CREATE TRIGGER memory_lines_follow AFTER UPDATE OF raw_memory, rollout_summary ON stage1_outputs
BEGIN
    DELETE FROM memory_lines WHERE thread_id = NEW.thread_id;
END;

CREATE TABLE tombstones (
    digest BLOB PRIMARY KEY,
    words INTEGER NOT NULL,
    at INTEGER NOT NULL,
    run TEXT NOT NULL
) WITHOUT ROWID;
