-- Every statement that Stillroom runs on its state database. A query starts with its name between dashes, then a
-- sentence about what it is for. Parameters are `:name`.

-- save_thread --
-- Insert a thread, or refresh it. A mode that was set here stays, except that a thread which was switched on here
-- follows the agent's files again as soon as these switch it off.
INSERT INTO threads (
    thread_id, agent, rollout_path, source, cwd, created_at_ms, updated_at_ms, title, preview, recorded_mode, archived,
    parent_thread_id, git_branch, git_sha, git_origin_url, cli_version, model_provider,
    file_size, file_mtime_ns, file_offset
) VALUES (
    :thread_id, :agent, :rollout_path, :source, :cwd, :created_at_ms, :updated_at_ms, :title, :preview, :recorded_mode,
    :archived, :parent_thread_id, :git_branch, :git_sha, :git_origin_url, :cli_version, :model_provider,
    :file_size, :file_mtime_ns, :file_offset
)
ON CONFLICT (thread_id) DO UPDATE SET
    agent = excluded.agent,
    rollout_path = excluded.rollout_path,
    source = excluded.source,
    cwd = excluded.cwd,
    created_at_ms = excluded.created_at_ms,
    updated_at_ms = excluded.updated_at_ms,
    title = excluded.title,
    preview = excluded.preview,
    chosen_mode = CASE
        WHEN threads.chosen_mode = 'enabled' AND excluded.recorded_mode <> 'enabled'
            AND excluded.recorded_mode <> threads.recorded_mode THEN NULL
        ELSE threads.chosen_mode
    END,
    recorded_mode = excluded.recorded_mode,
    archived = excluded.archived,
    missing = 0,
    parent_thread_id = excluded.parent_thread_id,
    git_branch = excluded.git_branch,
    git_sha = excluded.git_sha,
    git_origin_url = excluded.git_origin_url,
    cli_version = excluded.cli_version,
    model_provider = excluded.model_provider,
    file_size = excluded.file_size,
    file_mtime_ns = excluded.file_mtime_ns,
    file_offset = excluded.file_offset;

-- get_thread --
-- One thread with everything that is known of it.
SELECT
    thread_id, agent, rollout_path, source, cwd, created_at_ms, updated_at_ms, title, preview, memory_mode, archived,
    parent_thread_id, git_branch, git_sha, git_origin_url, cli_version, model_provider
FROM threads
WHERE thread_id = :thread_id;

-- find_threads --
-- The threads whose ids begin so, the one of exactly this id first.
SELECT
    thread_id, agent, rollout_path, source, cwd, created_at_ms, updated_at_ms, title, preview, memory_mode, archived,
    parent_thread_id, git_branch, git_sha, git_origin_url, cli_version, model_provider
FROM threads
WHERE substr(thread_id, 1, length(:prefix)) = :prefix
ORDER BY length(thread_id), thread_id
LIMIT :limit;

-- list_threads --
-- The newest threads first, of one agent or of all.
SELECT
    thread_id, agent, rollout_path, source, cwd, created_at_ms, updated_at_ms, title, preview, memory_mode, archived,
    parent_thread_id, git_branch, git_sha, git_origin_url, cli_version, model_provider
FROM threads
WHERE :agent IS NULL OR agent = :agent
ORDER BY updated_at_ms DESC, thread_id DESC
LIMIT :limit;

-- list_file_stamps --
-- How every rollout of an agent looked when it was last read; those that vanished are read anew if they come back.
SELECT thread_id, rollout_path, file_size, file_mtime_ns, file_offset
FROM threads
WHERE agent = :agent AND missing = 0;

-- list_copies --
-- The same of files that hold threads which are read from another place.
SELECT rollout_path, file_size, file_mtime_ns, file_offset
FROM thread_copies
WHERE agent = :agent;

-- get_place --
-- Where a thread is read.
SELECT agent, rollout_path, updated_at_ms, file_size, file_mtime_ns, file_offset
FROM threads
WHERE thread_id = :thread_id AND missing = 0;

-- save_copy --
-- A file that holds a thread too.
INSERT INTO thread_copies (agent, rollout_path, thread_id, file_size, file_mtime_ns, file_offset)
SELECT :agent, :rollout_path, thread_id, :file_size, :file_mtime_ns, :file_offset
FROM threads
WHERE thread_id = :thread_id
ON CONFLICT (agent, rollout_path) DO UPDATE SET
    thread_id = excluded.thread_id,
    file_size = excluded.file_size,
    file_mtime_ns = excluded.file_mtime_ns,
    file_offset = excluded.file_offset;

-- end_thread --
-- The client said that the session is over.
UPDATE threads SET ended_at_ms = :at_ms
WHERE thread_id = :thread_id AND coalesce(ended_at_ms, 0) < :at_ms;

-- forget_copy --
-- A file that is gone, or is read itself.
DELETE FROM thread_copies
WHERE agent = :agent AND rollout_path = :rollout_path;

-- forget_copies --
-- Other places of a thread: they are to be looked at again.
DELETE FROM thread_copies
WHERE thread_id = :thread_id;

-- mark_missing --
-- The thread's rollout is gone: nothing is left to extract.
UPDATE threads SET missing = 1
WHERE thread_id = :thread_id;

-- choose_mode --
-- Set the mode of a thread here, whatever the agent's files say.
UPDATE threads SET chosen_mode = :mode
WHERE thread_id = :thread_id;

-- list_forgotten --
-- The hashes of everything that was forgotten.
SELECT digest
FROM forgotten;

-- get_forgotten --
-- Whether this was forgotten.
SELECT 1
FROM forgotten
WHERE digest = :digest;

-- save_forgotten --
-- It must not be learnt again.
INSERT INTO forgotten (digest, at)
VALUES (:digest, :at)
ON CONFLICT (digest) DO NOTHING;

-- save_forgotten_exchange --
-- A session that has this has it from a thread that was forgotten.
INSERT INTO forgotten_exchanges (digest)
VALUES (:digest)
ON CONFLICT (digest) DO NOTHING;

-- get_forgotten_exchange --
-- Whether a forgotten thread had this.
SELECT 1
FROM forgotten_exchanges
WHERE digest = :digest;

-- any_forgotten_exchange --
-- Whether there is one at all.
SELECT 1
FROM forgotten_exchanges
LIMIT 1;

-- delete_uses --
-- What the thread used of memory.
DELETE FROM memory_uses
WHERE thread_id = :thread_id;

-- unname_calls --
-- What the thread cost stays in the sums, without its name.
UPDATE model_calls SET thread_id = NULL, error = NULL
WHERE thread_id = :thread_id;

-- rename_budget_node --
-- A ledger goes on without the thread's name.
UPDATE budget_nodes SET thread_id = :name
WHERE thread_id = :thread_id;

-- rename_budget_parent --
-- Likewise where it is a parent.
UPDATE budget_nodes SET parent_thread_id = :name
WHERE parent_thread_id = :thread_id;

-- rename_budget_crosser --
-- Likewise where it reached the limit.
UPDATE budget_nodes SET crossed_by = :name
WHERE crossed_by = :thread_id;

-- rename_budget_hold --
-- Likewise where it holds tokens.
UPDATE budget_reservations SET thread_id = :name
WHERE thread_id = :thread_id;

-- drop_unused_folders --
-- Folders in which no known thread ran.
DELETE FROM repositories
WHERE NOT EXISTS (SELECT 1 FROM threads WHERE threads.cwd = repositories.cwd);

-- list_learnt --
-- Where and when something was learnt, and at which commit, oldest first.
SELECT thread.cwd, thread.updated_at_ms / 1000 AS at, thread.git_sha AS commit_id
FROM stage1_outputs AS output
JOIN threads AS thread ON thread.thread_id = output.thread_id
ORDER BY at, thread.thread_id;

-- list_raw_memories --
-- The raw memory of every thread, whatever its mode; or of one in so many.
SELECT thread_id, source_updated_at, raw_memory
FROM stage1_outputs
WHERE rowid % :one_in = 0
ORDER BY thread_id;

-- count_outputs --
-- How many there are, whatever the modes of their threads.
SELECT count(*) AS outputs FROM stage1_outputs;

-- get_raw_memory --
-- That of one thread.
SELECT thread_id, source_updated_at, raw_memory
FROM stage1_outputs
WHERE thread_id = :thread_id;

-- list_kept_outputs --
-- Everything that is kept of threads, whatever their modes.
SELECT thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, selected_for_phase2
FROM stage1_outputs;

-- list_output_texts --
-- What was extracted.
SELECT thread_id, raw_memory, rollout_summary, rollout_slug
FROM stage1_outputs;

-- set_output_texts --
-- Write it back, changed.
UPDATE stage1_outputs SET raw_memory = :raw_memory, rollout_summary = :rollout_summary, rollout_slug = :rollout_slug
WHERE thread_id = :thread_id;

-- list_thread_texts --
-- What lists show of threads.
SELECT thread_id, title, preview, git_branch, git_origin_url
FROM threads;

-- set_thread_texts --
-- Write it back, changed.
UPDATE threads SET title = :title, preview = :preview, git_branch = :git_branch, git_origin_url = :git_origin_url
WHERE thread_id = :thread_id;

-- list_job_texts --
-- Who worked on jobs, and why they failed.
SELECT kind, job_key, worker_id, last_error
FROM jobs;

-- set_job_texts --
-- Write it back, changed.
UPDATE jobs SET worker_id = :worker_id, last_error = :last_error
WHERE kind = :kind AND job_key = :job_key;

-- list_call_texts --
-- Why calls of models failed.
SELECT call_id, error
FROM model_calls
WHERE error IS NOT NULL;

-- set_call_texts --
-- Write it back, changed.
UPDATE model_calls SET error = :error
WHERE call_id = :call_id;

-- list_pass_texts --
-- The reports of passes.
SELECT pass_id, report_json
FROM passes;

-- set_pass_texts --
-- Write it back, changed.
UPDATE passes SET report_json = :report_json
WHERE pass_id = :pass_id;

-- list_citations --
-- When memory was cited since a moment, and whose was counted.
SELECT at, counted
FROM memory_uses
WHERE kind = 'citation' AND at >= :since
ORDER BY at;

-- list_use_texts --
-- Whose memory was used.
SELECT thread_id, digest, nth, counted
FROM memory_uses;

-- set_use_texts --
-- Write it back, changed.
UPDATE memory_uses SET counted = :counted
WHERE thread_id = :thread_id AND digest = :digest AND nth = :nth;

-- restore_output --
-- An output as it was once; who made that version is not known. One that was extracted anew and not yet consolidated is
-- news, and stays.
INSERT INTO stage1_outputs (
    thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, generated_at, engine
)
SELECT :thread_id, :source_updated_at, :raw_memory, :rollout_summary, :rollout_slug, :generated_at, 'unknown'
WHERE EXISTS (SELECT 1 FROM threads WHERE thread_id = :thread_id)
ON CONFLICT (thread_id) DO UPDATE SET
    source_updated_at = excluded.source_updated_at,
    raw_memory = excluded.raw_memory,
    rollout_summary = excluded.rollout_summary,
    rollout_slug = excluded.rollout_slug,
    generated_at = excluded.generated_at,
    engine = excluded.engine,
    prompt = NULL,
    release = NULL
WHERE NOT (
        held IS NULL AND selected_for_phase2_source_updated_at IS NOT stage1_outputs.source_updated_at
        AND stage1_outputs.source_updated_at > excluded.source_updated_at
    )
    AND (
        stage1_outputs.source_updated_at <> excluded.source_updated_at
        OR trim(stage1_outputs.raw_memory, char(32, 9, 10, 13)) <> trim(excluded.raw_memory, char(32, 9, 10, 13))
        OR stage1_outputs.rollout_summary <> excluded.rollout_summary
    );

-- get_output_texts --
-- What there is of an output, whether it may be remembered or not.
SELECT source_updated_at, raw_memory, rollout_summary
FROM stage1_outputs
WHERE thread_id = :thread_id;

-- list_selected --
-- The previous selection, with the version that was consolidated and the one that there is.
SELECT thread_id, source_updated_at, selected_for_phase2_source_updated_at
FROM stage1_outputs
WHERE selected_for_phase2 = 1;

-- hold_in --
-- The folder has this version again, however old it is.
UPDATE stage1_outputs SET
    held = 'in', selected_for_phase2 = 1, selected_for_phase2_source_updated_at = source_updated_at
WHERE thread_id = :thread_id AND source_updated_at = :source_updated_at;

-- hold_out --
-- The folder is without it again.
UPDATE stage1_outputs SET
    held = CASE WHEN selected_for_phase2_source_updated_at = source_updated_at THEN 'out' END,
    selected_for_phase2 = 0, selected_for_phase2_source_updated_at = NULL
WHERE thread_id = :thread_id;

-- reopen_undone --
-- Of threads that an undo gave an older output, the newer one is extracted again.
UPDATE jobs SET reopened = 1, retry_at = NULL
WHERE kind = 'memory_stage1' AND status <> 'running' AND EXISTS (
    SELECT 1
    FROM stage1_outputs AS output
    WHERE output.thread_id = jobs.job_key AND held = 'in' AND source_updated_at < jobs.last_success_watermark
);

-- let_go --
-- No undo decides any more.
UPDATE stage1_outputs SET held = NULL
WHERE held IS NOT NULL;

-- list_switched_off --
-- The folders of threads whose project is switched off.
SELECT DISTINCT cwd
FROM threads
WHERE switched_off = 1;

-- switch_off --
-- The memory of a folder's threads is switched off.
UPDATE threads SET switched_off = 1
WHERE cwd = :cwd AND switched_off = 0;

-- switch_on --
-- The memory of a folder's threads is switched on again.
UPDATE threads SET switched_off = 0
WHERE cwd = :cwd AND switched_off = 1;

-- count_folder --
-- How many threads ran in a folder, and how many of them are in the memory folder.
SELECT count(*) AS threads, sum(output.selected_for_phase2) AS selected
FROM threads AS thread
LEFT JOIN stage1_outputs AS output ON output.thread_id = thread.thread_id
WHERE thread.cwd = :cwd;

-- delete_thread --
-- Forget that the thread exists; its output goes with it.
DELETE FROM threads
WHERE thread_id = :thread_id;

-- find_scan_edge --
-- The last of the newest eligible threads that a pass looks at. The limit counts them before anyone asks whether they
-- are extracted already, so that a pass stays short on a home with years of sessions.
SELECT updated_at_ms, thread_id
FROM threads
WHERE is_eligible = 1 AND updated_at_ms >= :oldest_ms AND thread_id IS NOT :current_thread_id
    AND (updated_at_ms <= :newest_ms OR ended_at_ms + :slack_ms >= updated_at_ms)
    AND (:cwd IS NULL OR cwd = :cwd OR substr(cwd, 1, length(:cwd) + 1) = :cwd || '/')
ORDER BY updated_at_ms DESC, thread_id DESC
LIMIT 1 OFFSET :scan_limit - 1;

-- scan_threads --
-- Eligible threads down to the edge that are not extracted up to their last activity, newest first, with what their
-- job says. Rows are made as they are fetched: whoever wants two pays for two. The job is asked first, so that the
-- large rows of the outputs are read only for threads that are behind.
SELECT
    thread.thread_id, thread.updated_at_ms / 1000 AS updated_at,
    job.status, job.leased_at, job.lease_until, job.finished_at, job.retry_at, job.retry_remaining, job.last_error,
    job.input_watermark, job.last_success_watermark, job.reopened
FROM threads AS thread
LEFT JOIN jobs AS job ON job.kind = 'memory_stage1' AND job.job_key = thread.thread_id
LEFT JOIN stage1_outputs AS output ON output.thread_id = thread.thread_id
WHERE thread.is_eligible = 1 AND thread.updated_at_ms >= :oldest_ms
    AND (thread.updated_at_ms <= :newest_ms OR thread.ended_at_ms + :slack_ms >= thread.updated_at_ms)
    AND thread.thread_id IS NOT :current_thread_id
    AND (:sessions IS NULL OR thread.thread_id IN (SELECT value FROM json_each(:sessions)))
    AND (:cwd IS NULL OR thread.cwd = :cwd OR substr(thread.cwd, 1, length(:cwd) + 1) = :cwd || '/')
    AND (thread.updated_at_ms, thread.thread_id) >= (:oldest_ms, :edge_thread_id)
    AND (job.reopened = 1 OR thread.updated_at_ms >= :oldest_new_ms)
    AND (job.reopened = 1 OR coalesce(job.last_success_watermark, -1) < thread.updated_at_ms / 1000)
    AND (job.reopened = 1 OR coalesce(output.source_updated_at, -1) < thread.updated_at_ms / 1000)
ORDER BY thread.updated_at_ms DESC, thread.thread_id DESC;

-- count_left --
-- Why the threads that are not extracted are not; NULL for those that are. The first reason that holds counts.
SELECT
    CASE
        WHEN thread.memory_mode <> 'enabled' THEN 'switched_off'
        WHEN coalesce(job.reopened, 0) = 0 AND (
            coalesce(job.last_success_watermark, -1) >= thread.updated_at_ms / 1000
            OR coalesce(output.source_updated_at, -1) >= thread.updated_at_ms / 1000
        ) THEN NULL
        WHEN thread.missing = 1 THEN NULL
        WHEN thread.archived = 1 THEN 'archived'
        WHEN thread.is_eligible = 0 THEN 'not_interactive'
        WHEN thread.thread_id IS :current_thread_id THEN 'current'
        WHEN thread.updated_at_ms > :newest_ms
            AND coalesce(thread.ended_at_ms + :slack_ms < thread.updated_at_ms, 1) THEN 'not_idle'
        WHEN thread.updated_at_ms < :oldest_ms THEN 'too_old'
        WHEN thread.updated_at_ms < :oldest_new_ms AND coalesce(job.reopened, 0) = 0 THEN 'too_old'
        WHEN job.status = 'running' AND job.lease_until > :now
            AND job.lease_until - :now <= 2 * (job.lease_until - job.leased_at) THEN 'running'
        WHEN coalesce(job.input_watermark, -1) < thread.updated_at_ms / 1000 THEN 'waiting'
        WHEN job.retry_remaining - (job.status = 'running') <= 0 THEN 'given_up'
        WHEN job.retry_at > :now AND job.retry_at - :now <= 2 * (job.retry_at - job.finished_at) THEN 'retry_later'
        ELSE 'waiting'
    END AS reason,
    count(*) AS threads
FROM threads AS thread
LEFT JOIN jobs AS job ON job.kind = 'memory_stage1' AND job.job_key = thread.thread_id
LEFT JOIN stage1_outputs AS output ON output.thread_id = thread.thread_id
WHERE (:cwd IS NULL OR thread.cwd = :cwd OR substr(thread.cwd, 1, length(:cwd) + 1) = :cwd || '/')
    AND (:sessions IS NULL OR thread.thread_id IN (SELECT value FROM json_each(:sessions)))
GROUP BY reason;

-- list_facts --
-- What the rules ask of every thread, in no order. Columns are read by their places. Jobs and outputs are looked up by
-- their threads in memory: that takes half the time of a join.
SELECT
    thread_id, updated_at_ms, file_size, cwd,
    agent, source, preview <> '', recorded_mode, chosen_mode, switched_off, archived, missing,
    coalesce(ended_at_ms + :slack_ms >= updated_at_ms, 0)
FROM threads;

-- list_jobs --
-- How each job of a kind stands.
SELECT
    job_key, status, retry_remaining, worker_id, leased_at, lease_until, finished_at, retry_at, last_error,
    input_watermark, last_success_watermark, reopened, engine, expired_at
FROM jobs
WHERE kind = :kind;

-- list_output_watermarks --
-- Up to when each thread that has an output was extracted.
SELECT thread_id, source_updated_at
FROM stage1_outputs;

-- list_shown --
-- What a list of threads shows of them beside how they stand: of all, or of one. Columns are read by their places.
SELECT
    thread.thread_id, agent, rollout_path, source, thread.cwd, created_at_ms, updated_at_ms, title, preview,
    memory_mode, archived, parent_thread_id, git_branch, git_sha, git_origin_url, cli_version, model_provider,
    coalesce(git_origin_url, remote, CASE WHEN is_git THEN folder END) AS repository,
    thread.file_size, seen.messages, seen.tokens, seen.file_size AS seen_size
FROM threads AS thread
LEFT JOIN thread_reads AS seen ON seen.thread_id = thread.thread_id
LEFT JOIN repositories AS repository ON repository.cwd = thread.cwd
WHERE :thread_id IS NULL OR thread.thread_id = :thread_id;

-- get_ranked_output --
-- What was extracted of a thread, without its texts, with its rank among all that may be selected.
WITH ranked AS (
    SELECT output.thread_id, row_number() OVER (
        ORDER BY usage_count DESC, coalesce(last_usage, source_updated_at) DESC, source_updated_at DESC,
            output.thread_id DESC
    ) - 1 AS rank
    FROM stage1_outputs AS output
    JOIN threads AS thread ON thread.thread_id = output.thread_id
    WHERE memory_mode = 'enabled'
        AND (trim(raw_memory, char(32, 9, 10, 13)) <> '' OR trim(rollout_summary, char(32, 9, 10, 13)) <> '')
        AND held IS NOT 'out' AND (held = 'in' OR holds_preferences = 1 OR alive_at >= :cutoff)
)
SELECT
    source_updated_at, generated_at, usage_count, last_usage, last_given, alive_at, holds_preferences,
    trim(raw_memory, char(32, 9, 10, 13)) = '' AND trim(rollout_summary, char(32, 9, 10, 13)) = '' AS is_blank,
    selected_for_phase2 AS selected, selected_for_phase2_source_updated_at AS selected_source_updated_at, held,
    ranked.rank
FROM stage1_outputs AS output
LEFT JOIN ranked ON ranked.thread_id = output.thread_id
WHERE output.thread_id = :thread_id;

-- get_job --
-- One job with its lease, its retries and its watermarks.
SELECT
    status, worker_id, ownership_token, started_at, leased_at, lease_until, finished_at, retry_at, retry_remaining,
    last_error, input_watermark, last_success_watermark, reopened, engine, expired_at
FROM jobs
WHERE kind = :kind AND job_key = :job_key;

-- list_running_leases --
-- The leases that count against the cap of running jobs, fresh or not.
SELECT leased_at, lease_until
FROM jobs
WHERE kind = :kind AND status = 'running';

-- list_schema --
-- What a database is made of, without what SQLite makes by itself.
SELECT type, name
FROM sqlite_master
WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\';

-- list_running_jobs --
-- Every job that somebody has, or had when it was killed.
SELECT
    kind, job_key, status, worker_id, ownership_token, started_at, leased_at, lease_until, finished_at, retry_at,
    retry_remaining, last_error, input_watermark, last_success_watermark, reopened
FROM jobs
WHERE status = 'running'
ORDER BY kind, job_key;

-- count_missing --
-- Sessions whose files were gone at the last scan, with and without something that was extracted of them.
SELECT count(*) AS threads, count(output.thread_id) AS extracted
FROM threads AS thread
LEFT JOIN stage1_outputs AS output ON output.thread_id = thread.thread_id
WHERE thread.missing = 1;

-- newest_moment --
-- The latest moment that anything here was written at, in seconds.
SELECT max(
    coalesce((SELECT max(at) FROM passes), 0),
    coalesce((SELECT max(at) FROM model_calls), 0),
    coalesce((SELECT max(leased_at) FROM jobs WHERE status = 'running'), 0)
) AS at;

-- take_job --
-- Give a job to a new owner. The caller has decided, in this same transaction, that it may be taken.
INSERT INTO jobs (
    kind, job_key, status, worker_id, ownership_token, started_at, leased_at, lease_until, retry_remaining,
    input_watermark, last_success_watermark
) VALUES (
    :kind, :job_key, 'running', :worker_id, :token, :now, :now, :lease_until, :retry_remaining, :input_watermark, NULL
)
ON CONFLICT (kind, job_key) DO UPDATE SET
    status = 'running',
    worker_id = excluded.worker_id,
    ownership_token = excluded.ownership_token,
    started_at = excluded.started_at,
    leased_at = excluded.leased_at,
    lease_until = excluded.lease_until,
    finished_at = NULL,
    retry_at = NULL,
    last_error = NULL,
    expired_at = NULL,
    retry_remaining = excluded.retry_remaining,
    input_watermark = excluded.input_watermark;

-- renew_lease --
-- A heartbeat. It can't revive a lease that has run out.
UPDATE jobs SET leased_at = :now, lease_until = :lease_until
WHERE kind = :kind AND job_key = :job_key AND status = 'running' AND ownership_token = :token AND lease_until > :now;

-- fail_job --
-- The owner gives up: one retry less, and none before `retry_at`.
UPDATE jobs SET
    status = 'error',
    finished_at = :now,
    leased_at = NULL,
    lease_until = NULL,
    retry_at = :retry_at,
    retry_remaining = max(retry_remaining - 1, 0),
    last_error = :reason
WHERE kind = :kind AND job_key = :job_key AND status = 'running'
    AND (ownership_token = :token OR (:or_unowned AND ownership_token IS NULL));

-- release_job --
-- The owner was stopped and hands the job back as it was: no retry is spent.
UPDATE jobs SET
    status = 'pending',
    worker_id = NULL,
    ownership_token = NULL,
    leased_at = NULL,
    lease_until = NULL
WHERE kind = :kind AND job_key = :job_key AND status = 'running' AND ownership_token = :token;

-- exhaust_job --
-- Its last lease ran out without a word from the owner: no retry is left.
UPDATE jobs SET
    status = 'error',
    finished_at = :now,
    ownership_token = NULL,
    leased_at = NULL,
    lease_until = NULL,
    retry_remaining = 0,
    last_error = :reason
WHERE kind = :kind AND job_key = :job_key AND status = 'running' AND ownership_token IS :token;

-- finish_stage1_job --
-- Done up to the watermark that was claimed; if the thread was not looked into, with the reason.
UPDATE jobs SET
    status = 'done',
    finished_at = :now,
    leased_at = NULL,
    lease_until = NULL,
    last_error = :reason,
    last_success_watermark = input_watermark,
    engine = :engine,
    reopened = 0
WHERE kind = 'memory_stage1' AND job_key = :thread_id AND status = 'running' AND ownership_token = :token;

-- delete_stage1_job --
-- Forget that the thread was ever extracted.
DELETE FROM jobs
WHERE kind = 'memory_stage1' AND job_key = :thread_id;

-- get_output_watermark --
-- Up to which activity a thread's output goes.
SELECT source_updated_at
FROM stage1_outputs
WHERE thread_id = :thread_id;

-- save_output --
-- Store what was extracted. An older extraction never replaces a newer one; use and selection stay as they are.
INSERT INTO stage1_outputs (
    thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, generated_at, engine, prompt, release
) VALUES (
    :thread_id, :source_updated_at, :raw_memory, :rollout_summary, :rollout_slug, :now, :engine, :prompt, :release
)
ON CONFLICT (thread_id) DO UPDATE SET
    source_updated_at = excluded.source_updated_at,
    raw_memory = excluded.raw_memory,
    rollout_summary = excluded.rollout_summary,
    rollout_slug = excluded.rollout_slug,
    generated_at = excluded.generated_at,
    engine = excluded.engine,
    prompt = excluded.prompt,
    release = excluded.release,
    held = CASE WHEN excluded.source_updated_at = stage1_outputs.source_updated_at THEN stage1_outputs.held END
WHERE excluded.source_updated_at >= stage1_outputs.source_updated_at;

-- delete_output --
-- The thread holds nothing durable any more.
DELETE FROM stage1_outputs
WHERE thread_id = :thread_id;

-- list_outputs --
-- The latest outputs of threads that may be remembered; blank ones are skipped.
SELECT
    output.thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, rollout_path, cwd, git_branch,
    git_origin_url, generated_at, engine, prompt, release, usage_count, last_usage
FROM stage1_outputs AS output
JOIN threads AS thread ON thread.thread_id = output.thread_id
WHERE memory_mode = 'enabled'
    AND (trim(raw_memory, char(32, 9, 10, 13)) <> '' OR trim(rollout_summary, char(32, 9, 10, 13)) <> '')
ORDER BY source_updated_at DESC, output.thread_id DESC
LIMIT :limit;

-- list_output_stamps --
-- Which version there is of every output that `list_outputs` would show, but those that an undo took out of the memory;
-- a full-text index compares them.
SELECT output.thread_id, source_updated_at, generated_at, cwd
FROM stage1_outputs AS output
JOIN threads AS thread ON thread.thread_id = output.thread_id
WHERE memory_mode = 'enabled' AND held IS NOT 'out';

-- get_output --
-- One output of a thread that may be remembered.
SELECT
    output.thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, rollout_path, cwd, git_branch,
    git_origin_url, generated_at, engine, prompt, release, usage_count, last_usage
FROM stage1_outputs AS output
JOIN threads AS thread ON thread.thread_id = output.thread_id
WHERE memory_mode = 'enabled' AND output.thread_id = :thread_id;

-- select_outputs --
-- The inputs of a consolidation, most used first, then most recently used. What was not used for too long is out, unless
-- it holds preferences or an undo brought it back; what an undo took out is out.
SELECT
    output.thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, rollout_path, cwd, git_branch,
    git_origin_url, generated_at, engine, prompt, release, usage_count, last_usage
FROM stage1_outputs AS output
JOIN threads AS thread ON thread.thread_id = output.thread_id
WHERE memory_mode = 'enabled'
    AND (trim(raw_memory, char(32, 9, 10, 13)) <> '' OR trim(rollout_summary, char(32, 9, 10, 13)) <> '')
    AND held IS NOT 'out' AND (held = 'in' OR holds_preferences = 1 OR alive_at >= :cutoff)
ORDER BY usage_count DESC, coalesce(last_usage, source_updated_at) DESC, source_updated_at DESC, output.thread_id DESC
LIMIT :limit;

-- select_previous_outputs --
-- What the last successful consolidation had selected and may still be remembered, in the same order.
SELECT
    output.thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, rollout_path, cwd, git_branch,
    git_origin_url, generated_at, engine, prompt, release, usage_count, last_usage
FROM stage1_outputs AS output
JOIN threads AS thread ON thread.thread_id = output.thread_id
WHERE selected_for_phase2 = 1 AND memory_mode = 'enabled' AND held IS NOT 'out'
    AND (trim(raw_memory, char(32, 9, 10, 13)) <> '' OR trim(rollout_summary, char(32, 9, 10, 13)) <> '')
ORDER BY usage_count DESC, coalesce(last_usage, source_updated_at) DESC, source_updated_at DESC, output.thread_id DESC
LIMIT :limit;

-- list_selected_refused --
-- Threads of the previous selection that may not be remembered any more: something is to be forgotten.
SELECT output.thread_id
FROM stage1_outputs AS output
JOIN threads AS thread ON thread.thread_id = output.thread_id
WHERE selected_for_phase2 = 1 AND memory_mode <> 'enabled';

-- is_selected --
-- Whether the previous selection holds the thread.
SELECT 1
FROM stage1_outputs
WHERE thread_id = :thread_id AND selected_for_phase2 = 1;

-- use_output --
-- A session drew on this memory.
UPDATE stage1_outputs SET usage_count = usage_count + 1, last_usage = max(coalesce(last_usage, :now), :now)
WHERE thread_id = :thread_id;

-- list_unsearched --
-- Sessions whose file was not yet searched for uses of memory, or looks different now; oldest first.
SELECT
    thread.thread_id, agent, rollout_path, source, cwd, created_at_ms, updated_at_ms, title, preview, memory_mode,
    archived, parent_thread_id, git_branch, git_sha, git_origin_url, cli_version, model_provider,
    thread.file_size, thread.file_mtime_ns
FROM threads AS thread
LEFT JOIN usage_searches AS search ON search.thread_id = thread.thread_id
WHERE missing = 0
    AND (search.file_size IS NOT thread.file_size OR search.file_mtime_ns IS NOT thread.file_mtime_ns)
ORDER BY created_at_ms, thread.thread_id;

-- save_search --
-- The session was searched for uses of memory when its file looked like this.
INSERT INTO usage_searches (thread_id, file_size, file_mtime_ns)
SELECT :thread_id, :file_size, :file_mtime_ns
WHERE EXISTS (SELECT 1 FROM threads WHERE thread_id = :thread_id)
ON CONFLICT (thread_id) DO UPDATE SET file_size = excluded.file_size, file_mtime_ns = excluded.file_mtime_ns;

-- list_uses --
-- The uses of memory that are known of a session.
SELECT digest, nth, counted
FROM memory_uses
WHERE thread_id = :thread_id;

-- save_use --
-- A message that cites memory, or a command that reads it.
INSERT INTO memory_uses (thread_id, digest, nth, kind, at, counted)
VALUES (:thread_id, :digest, :nth, :kind, :at, :counted);

-- save_read --
-- What a session's file held; it looks as it did at the last scan.
INSERT INTO thread_reads (thread_id, file_size, messages, tokens, bad_lines, long_lines, cut_bytes)
SELECT thread_id, file_size, :messages, :tokens, :bad_lines, :long_lines, :cut_bytes
FROM threads
WHERE thread_id = :thread_id
ON CONFLICT (thread_id) DO UPDATE SET
    file_size = excluded.file_size,
    messages = excluded.messages,
    tokens = excluded.tokens,
    bad_lines = excluded.bad_lines,
    long_lines = excluded.long_lines,
    cut_bytes = excluded.cut_bytes;

-- clear_unknown --
-- The session is read anew.
DELETE FROM thread_unknown
WHERE thread_id = :thread_id;

-- save_unknown --
-- Records of a kind that this version does not know.
INSERT INTO thread_unknown (thread_id, kind, records)
SELECT thread_id, :kind, :records
FROM threads
WHERE thread_id = :thread_id;

-- total_unknown --
-- What this version does not know, by agent, kind and the client's version.
SELECT agent, kind, cli_version AS version, sum(records) AS records, count(*) AS threads
FROM thread_unknown AS unknown
JOIN threads AS thread ON thread.thread_id = unknown.thread_id
GROUP BY agent, kind, cli_version
ORDER BY agent, kind, cli_version;

-- find_told --
-- The thread that has the longest beginning of this one, all of it if it can be: its own chain ends where that beginning
-- ends, or it goes on. One that leaves something to this thread, or to one that does, has nothing to give it.
WITH RECURSIVE leaning (thread_id) AS (
    SELECT :thread_id
    UNION
    SELECT contents.thread_id
    FROM thread_contents AS contents
    JOIN leaning ON contents.told_in = leaning.thread_id
)
SELECT contents.thread_id, min(length(chain), :size) AS size
FROM thread_contents AS contents
JOIN jobs ON kind = :kind AND job_key = contents.thread_id AND status IN ('running', 'done')
WHERE substr(chain, 1, 8) = substr(:chain, 1, 8)
    AND CASE
        WHEN length(chain) >= :size THEN substr(chain, :size - 7, 8) = :last
        ELSE substr(chain, -8) = substr(:chain, length(chain) - 7, 8)
    END
    AND contents.thread_id NOT IN (SELECT thread_id FROM leaning)
ORDER BY size DESC, told_in IS NOT NULL, contents.thread_id
LIMIT 1;

-- save_contents --
-- What a thread says, as of now.
INSERT INTO thread_contents (thread_id, chain, told_in, told_items)
SELECT thread_id, :chain, :told_in, :told_items
FROM threads
WHERE thread_id = :thread_id
ON CONFLICT (thread_id) DO UPDATE SET
    chain = excluded.chain,
    told_in = excluded.told_in,
    told_items = excluded.told_items;

-- reopen_resting --
-- What these threads left to another one was not extracted there.
UPDATE jobs SET reopened = 1, retry_at = NULL
WHERE kind = 'memory_stage1' AND status = 'done'
    AND job_key IN (SELECT thread_id FROM thread_contents WHERE told_in = :thread_id);

-- reopen_left --
-- What these threads left to another one it does not say any more.
UPDATE jobs SET reopened = 1, retry_at = NULL
WHERE kind = 'memory_stage1' AND status = 'done'
    AND job_key IN (
        SELECT thread_id
        FROM thread_contents
        WHERE told_in = :thread_id AND substr(chain, told_items * 8 - 7, 8) <> substr(:chain, told_items * 8 - 7, 8)
    );

-- list_told --
-- The threads that begin with what another one tells.
SELECT thread_id, told_in, told_items, length(chain) AS size
FROM thread_contents
WHERE told_in IS NOT NULL;

-- total_reads --
-- What was read of each agent's sessions, and what could not be.
SELECT
    agent, count(*) AS threads, sum(messages) AS messages, sum(tokens) AS tokens, sum(bad_lines) AS bad_lines,
    sum(long_lines) AS long_lines, sum(cut_bytes) AS cut_bytes
FROM thread_reads AS seen
JOIN threads AS thread ON thread.thread_id = seen.thread_id
GROUP BY agent
ORDER BY agent;

-- worth_of_outputs --
-- What the memory holds, and how much of it is used.
SELECT
    count(*) AS outputs, coalesce(sum(selected_for_phase2), 0) AS selected, coalesce(sum(usage_count), 0) AS citations,
    coalesce(sum(last_usage >= :since), 0) AS used_lately, max(last_usage) AS last_used,
    coalesce(sum(held = 'out'), 0) AS undone
FROM stage1_outputs;

-- prune_outputs --
-- Remove the oldest outputs that nobody used for too long and that no memory file rests on. One with preferences stays
-- as long as its thread may be remembered.
DELETE FROM stage1_outputs
WHERE thread_id IN (
    SELECT output.thread_id
    FROM stage1_outputs AS output
    JOIN threads AS thread ON thread.thread_id = output.thread_id
    WHERE selected_for_phase2 = 0 AND held IS NOT 'in' AND alive_at < :cutoff
        AND (holds_preferences = 0 OR memory_mode <> 'enabled')
    ORDER BY alive_at, source_updated_at, output.thread_id
    LIMIT :limit
)
RETURNING thread_id, rollout_slug;

-- mark_expired --
-- What was extracted of the thread is gone because nobody used it.
UPDATE jobs SET expired_at = :now
WHERE kind = 'memory_stage1' AND job_key = :thread_id;

-- list_leaving --
-- What the memory rests on and will lose, because nobody used it since; those that leave first at first.
SELECT output.thread_id, rollout_slug, thread.cwd, alive_at
FROM stage1_outputs AS output
JOIN threads AS thread ON thread.thread_id = output.thread_id
WHERE selected_for_phase2 = 1 AND memory_mode = 'enabled' AND held IS NULL AND holds_preferences = 0
    AND alive_at < :before
ORDER BY alive_at, output.thread_id;

-- get_name --
-- What a person calls a thread's output.
SELECT rollout_slug, thread.cwd, thread.title, thread.preview
FROM threads AS thread
LEFT JOIN stage1_outputs AS output ON output.thread_id = thread.thread_id
WHERE thread.thread_id = :thread_id;

-- list_rested_on --
-- What the memory rests on, and where each ran.
SELECT output.thread_id, thread.cwd, raw_memory
FROM stage1_outputs AS output
JOIN threads AS thread ON thread.thread_id = output.thread_id
WHERE selected_for_phase2 = 1;

-- give_output --
-- A session was given what was extracted of this thread.
UPDATE stage1_outputs SET last_given = :at
WHERE thread_id = :thread_id AND coalesce(last_given, 0) < :at AND generated_at <= :at;

-- list_empty_answers --
-- Threads in which another engine than the offline one found nothing, newest first. What was not looked into has a
-- reason.
SELECT job.job_key AS thread_id
FROM jobs AS job
JOIN threads AS thread ON thread.thread_id = job.job_key
WHERE job.kind = 'memory_stage1' AND job.status = 'done' AND job.last_error IS NULL
    AND job.engine <> :engine AND thread.missing = 0
    AND NOT EXISTS (SELECT 1 FROM stage1_outputs WHERE thread_id = job.job_key)
ORDER BY thread.updated_at_ms DESC, thread.thread_id DESC;

-- reopen_jobs --
-- Make every thread that this engine did last claimable once more, with all its retries: also those in which it found
-- nothing. A running job is left alone, and so is what an undo took out of the memory: it would be paid for, and stay out.
UPDATE jobs SET
    reopened = 1,
    retry_at = NULL,
    retry_remaining = max(retry_remaining, :retries)
WHERE kind = 'memory_stage1' AND engine = :engine AND status <> 'running'
    AND job_key NOT IN (SELECT thread_id FROM stage1_outputs WHERE held = 'out');

-- reopen_for_again --
-- Make threads that were extracted claimable once more, with all their retries: these; without any all that gave
-- nothing, or whose memory another engine made, or other words (of the offline engine: another release).
UPDATE jobs SET
    reopened = 1,
    retry_at = NULL,
    retry_remaining = max(retry_remaining, :retries)
WHERE kind = 'memory_stage1' AND status <> 'running'
    AND job_key NOT IN (SELECT thread_id FROM stage1_outputs WHERE held = 'out')
    AND CASE
        WHEN :sessions IS NOT NULL THEN job_key IN (SELECT value FROM json_each(:sessions))
        ELSE status = 'done' AND last_error IS NULL AND job_key NOT IN (
            SELECT thread_id FROM stage1_outputs
            WHERE engine = :engine AND prompt IS :prompt AND (prompt IS NOT NULL OR release IS :release)
        )
    END;

-- save_fallback --
-- The job that failed, or was handed back, has the offline engine's result until the next success; nothing that a model
-- made is replaced by it.
UPDATE jobs SET reopened = 1
WHERE kind = 'memory_stage1' AND job_key = :thread_id AND status IN ('error', 'pending')
    AND NOT EXISTS (
        SELECT 1 FROM stage1_outputs
        WHERE thread_id = :thread_id AND (engine <> :engine OR source_updated_at > :source_updated_at)
    );

-- retry_failed_jobs --
-- What failed may be tried again at once, with all its retries: of one phase. So may what a killed process held. A
-- thread is reopened, so that a retry knows it however old it is.
UPDATE jobs SET
    reopened = (kind = 'memory_stage1'),
    retry_at = NULL,
    retry_remaining = max(retry_remaining, :retries)
WHERE kind = :kind AND (status = 'error' OR status = 'running' AND lease_until <= :now);

-- reopen_expired --
-- What was extracted of the thread and left unused may be had again.
UPDATE jobs SET reopened = 1, retry_at = NULL
WHERE kind = 'memory_stage1' AND job_key = :thread_id AND status = 'done' AND expired_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM stage1_outputs WHERE thread_id = :thread_id);

-- reopen_unread --
-- A thread of which nothing was extracted while it was not to be remembered is claimable again.
UPDATE jobs SET reopened = 1, retry_at = NULL
WHERE kind = 'memory_stage1' AND job_key = :thread_id AND status = 'done'
    AND NOT EXISTS (SELECT 1 FROM stage1_outputs WHERE thread_id = :thread_id);

-- enqueue_consolidation --
-- There is something new to consolidate. Lifts the pause after a failure while retries are left; never the cooldown
-- after a success. The watermark only grows.
INSERT INTO jobs (kind, job_key, status, retry_remaining, input_watermark, last_success_watermark)
VALUES ('memory_consolidate_global', 'global', 'pending', :retries, :watermark, 0)
ON CONFLICT (kind, job_key) DO UPDATE SET
    status = CASE WHEN jobs.status = 'running' THEN 'running' ELSE 'pending' END,
    retry_at = CASE WHEN jobs.status = 'running' OR jobs.retry_remaining = 0 THEN jobs.retry_at END,
    input_watermark = CASE
        WHEN excluded.input_watermark > coalesce(jobs.input_watermark, 0) THEN excluded.input_watermark
        ELSE coalesce(jobs.input_watermark, 0) + 1
    END;

-- finish_consolidation_job --
-- The folder holds everything up to the watermark; the retries are full again.
UPDATE jobs SET
    status = 'done',
    finished_at = :now,
    leased_at = NULL,
    lease_until = NULL,
    last_error = NULL,
    retry_remaining = :retries,
    last_success_watermark = max(coalesce(last_success_watermark, 0), :watermark)
WHERE kind = 'memory_consolidate_global' AND job_key = 'global' AND status = 'running' AND ownership_token = :token;

-- clear_selection --
-- Nothing is selected any more.
UPDATE stage1_outputs SET selected_for_phase2 = 0, selected_for_phase2_source_updated_at = NULL
WHERE selected_for_phase2 = 1;

-- mark_selected --
-- Remember that this very version of the output went into the memory folder.
UPDATE stage1_outputs SET selected_for_phase2 = 1, selected_for_phase2_source_updated_at = source_updated_at
WHERE thread_id = :thread_id AND source_updated_at = :source_updated_at;

-- save_call --
-- One request to a model, failed ones too.
INSERT INTO model_calls (
    at, phase, model, outcome, thread_id, duration_ms, input_tokens, cached_input_tokens, cache_write_tokens,
    output_tokens, reasoning_tokens, cost_usd, error
) VALUES (
    :at, :phase, :model, :outcome, :thread_id, :duration_ms, :input_tokens, :cached_input_tokens, :cache_write_tokens,
    :output_tokens, :reasoning_tokens, :cost_usd, :error
);

-- list_calls --
-- The latest calls first, of one thread or of all.
SELECT
    at, phase, model, outcome, thread_id, duration_ms, input_tokens, cached_input_tokens, cache_write_tokens,
    output_tokens, reasoning_tokens, cost_usd, error
FROM model_calls
WHERE :thread_id IS NULL OR thread_id = :thread_id
ORDER BY call_id DESC
LIMIT :limit;

-- total_calls --
-- What was spent in a span of time, by day (UTC), phase and model. A call that nobody answered has no price to be known.
SELECT
    date(at, 'unixepoch') AS day, phase, model,
    count(*) AS calls,
    sum(outcome <> 'ok') AS failed_calls,
    sum(cost_usd IS NULL AND (outcome = 'ok' OR input_tokens + output_tokens > 0)) AS unpriced_calls,
    total(cost_usd) AS cost_usd,
    sum(input_tokens) AS input_tokens,
    sum(cached_input_tokens) AS cached_input_tokens,
    sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens,
    sum(reasoning_tokens) AS reasoning_tokens
FROM model_calls
WHERE at >= :since AND at < :until
GROUP BY day, phase, model
ORDER BY day, phase, model;

-- sum_new_calls --
-- What calls used that were recorded after one of them: the `+` keeps SQLite from looking through the whole span.
SELECT
    coalesce(max(call_id), :after) AS last_id,
    coalesce(sum(input_tokens), 0) AS input_tokens,
    coalesce(sum(cached_input_tokens), 0) AS cached_input_tokens,
    coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens,
    coalesce(sum(output_tokens), 0) AS output_tokens,
    coalesce(sum(reasoning_tokens), 0) AS reasoning_tokens
FROM model_calls
WHERE call_id > :after AND +at >= :since;

-- save_rate_limits --
-- Keep the newest snapshot of a provider; one that arrives late does not replace a newer one.
INSERT INTO rate_limits (provider, snapshot_json, at)
VALUES (:provider, :snapshot_json, :at)
ON CONFLICT (provider) DO UPDATE SET snapshot_json = excluded.snapshot_json, at = excluded.at
WHERE excluded.at >= rate_limits.at OR rate_limits.at > :now;

-- get_rate_limits --
-- The newest snapshot of a provider.
SELECT provider, snapshot_json, at
FROM rate_limits
WHERE provider = :provider;

-- save_pass --
-- Keep the report of a finished pass.
INSERT INTO passes (at, report_json)
VALUES (:at, :report_json);

-- drop_old_passes --
-- Only the newest reports are worth their space.
DELETE FROM passes
WHERE pass_id <= (SELECT max(pass_id) FROM passes) - :kept;

-- list_passes --
-- The newest reports first.
SELECT at, report_json
FROM passes
ORDER BY pass_id DESC
LIMIT :limit;

-- list_folders --
-- Every folder in which a thread ran, newest first, with the remote that the agent recorded, and what is known of it.
SELECT
    thread.cwd, max(thread.git_origin_url) AS git_origin_url, max(thread.updated_at_ms) AS updated_at_ms,
    max(output.thread_id IS NOT NULL) AS has_output,
    repository.cwd IS NOT NULL AS is_known, repository.place, repository.folder, repository.is_git, repository.remote,
    repository.first_commit, repository.asked_at
FROM threads AS thread
LEFT JOIN stage1_outputs AS output ON output.thread_id = thread.thread_id
LEFT JOIN repositories AS repository ON repository.cwd = thread.cwd
GROUP BY thread.cwd
ORDER BY updated_at_ms DESC
LIMIT :limit;

-- save_folder --
-- What the folder is now.
INSERT INTO repositories (cwd, place, folder, is_git, remote, first_commit, asked_at)
VALUES (:cwd, :place, :folder, :is_git, :remote, :first_commit, :asked_at)
ON CONFLICT (cwd) DO UPDATE SET
    place = excluded.place,
    folder = excluded.folder,
    is_git = excluded.is_git,
    remote = excluded.remote,
    first_commit = excluded.first_commit,
    asked_at = excluded.asked_at;

-- begin_budget_tree --
-- The first configuration wins.
INSERT INTO budget_trees (tree_id, config_json, created_at)
VALUES (:tree_id, :config_json, :now)
ON CONFLICT (tree_id) DO NOTHING;

-- use_budget_tree --
-- To go on with a tree is to use it.
UPDATE budget_nodes
SET updated_at = max(updated_at, :now)
WHERE tree_id = :tree_id AND thread_id = '';

-- drop_unused_budget_trees --
-- With their threads and what they hold. A clock that jumps makes every tree old at once: the last used stay.
DELETE FROM budget_trees
WHERE tree_id IN (
    SELECT old.tree_id
    FROM (
        SELECT node.tree_id, node.updated_at
        FROM budget_nodes AS node
        WHERE node.thread_id = ''
        ORDER BY node.updated_at DESC, node.node_id DESC
        LIMIT -1 OFFSET :kept
    ) AS old
    WHERE old.updated_at < :before
);

-- get_budget_tree --
-- What a tree was begun with.
SELECT config_json
FROM budget_trees
WHERE tree_id = :tree_id;

-- list_budget_trees --
-- The trees, the last used first.
SELECT tree.tree_id, tree.config_json
FROM budget_trees AS tree
JOIN budget_nodes AS node ON node.tree_id = tree.tree_id AND node.thread_id = ''
ORDER BY node.updated_at DESC, node.node_id DESC
LIMIT :limit;

-- add_budget_node --
-- A known thread keeps its parent.
INSERT INTO budget_nodes (tree_id, thread_id, parent_thread_id, limit_units, updated_at)
VALUES (:tree_id, :thread_id, :parent_thread_id, :limit_units, :now)
ON CONFLICT (tree_id, thread_id) DO NOTHING;

-- lower_budget_limit --
-- A thread's own limit only ever falls.
UPDATE budget_nodes
SET limit_units = min(coalesce(limit_units, :limit_units), :limit_units)
WHERE tree_id = :tree_id AND thread_id = :thread_id;

-- get_budget_node --
-- A thread, or the tree.
SELECT
    thread_id, parent_thread_id, limit_units, own_units, used_units, crossed_by, closing_given, delivered_window,
    delivered_index
FROM budget_nodes
WHERE tree_id = :tree_id AND thread_id = :thread_id;

-- list_budget_nodes --
-- The tree and its threads, in the order in which they were seen.
SELECT
    thread_id, parent_thread_id, limit_units, own_units, used_units, crossed_by, closing_given, delivered_window,
    delivered_index
FROM budget_nodes
WHERE tree_id = :tree_id
ORDER BY node_id;

-- charge_budget_node --
-- Add a charge to the tree, or to a thread on the way down to the one that used it. Sums stop at the largest amount.
UPDATE budget_nodes
SET
    used_units = min(used_units + :charge, :most),
    own_units = CASE WHEN thread_id = :used_by THEN min(own_units + :charge, :most) ELSE own_units END,
    crossed_by = CASE
        WHEN crossed_by IS NULL AND used_units + :charge > limit_units THEN :used_by ELSE crossed_by
    END,
    updated_at = :now
WHERE tree_id = :tree_id AND thread_id = :thread_id
RETURNING limit_units, used_units;

-- set_budget_closing --
-- Whether the closing answer of this limit is given.
UPDATE budget_nodes
SET closing_given = :given
WHERE tree_id = :tree_id AND thread_id = :thread_id;

-- set_budget_delivery --
-- The last reminder that stands in the thread's history; NULL: none.
UPDATE budget_nodes
SET delivered_window = :window_id, delivered_index = :index
WHERE tree_id = :tree_id AND thread_id = :thread_id;

-- save_budget_hold --
-- Hold tokens for a request.
INSERT INTO budget_reservations (reservation_id, tree_id, thread_id, units, lease_until_ms, owner)
VALUES (:reservation_id, :tree_id, :thread_id, :units, :lease_until_ms, :owner);

-- list_budget_holds --
-- Everything that is held in a tree, also by processes that are no more.
SELECT reservation_id, thread_id, units, lease_until_ms, owner
FROM budget_reservations
WHERE tree_id = :tree_id
ORDER BY lease_until_ms, reservation_id;

-- drop_budget_hold --
-- The request is over.
DELETE FROM budget_reservations
WHERE reservation_id = :reservation_id;

-- list_trusted_lines --
-- Lines that a person lets in although only a tool or the web said them.
SELECT line_id FROM trusted_lines;

-- trust_line --
-- A person lets a line in; twice is once.
INSERT INTO trusted_lines (line_id, trusted_at)
VALUES (:line_id, :now)
ON CONFLICT (line_id) DO NOTHING;

-- delete_memory_lines --
-- What the lines of a thread's output rested on.
DELETE FROM memory_lines
WHERE thread_id = :thread_id;

-- save_memory_line --
-- What a line rests on; a text of a session says some lines twice.
INSERT OR IGNORE INTO memory_lines (thread_id, line_key, speaker, line_no, quote, verdict)
VALUES (:thread_id, :line_key, :speaker, :line_no, :quote, :verdict);

-- repeat_memory_line --
-- A line that a consolidating model wrote anew rests on what the line rests on that it was made of.
INSERT OR IGNORE INTO memory_lines (thread_id, line_key, speaker, line_no, quote, verdict)
SELECT thread_id, :line_key, speaker, line_no, quote, verdict
FROM memory_lines
WHERE line_key = :source_key;

-- list_lines_of_thread --
-- What all lines of a thread's output rest on.
SELECT thread_id, line_key, speaker, line_no, quote, verdict
FROM memory_lines
WHERE thread_id = :thread_id;

-- list_memory_lines --
-- What a person said comes first, then the newest.
SELECT line.thread_id, line.speaker, line.line_no, line.quote, line.verdict
FROM memory_lines AS line
JOIN stage1_outputs AS output USING (thread_id)
WHERE line.line_key = :line_key
ORDER BY line.speaker <> 'user', output.source_updated_at DESC, line.thread_id, line.line_no;

-- list_tombstones --
-- The statements that a person removed, by the hashes of their words.
SELECT digest, words, at, run
FROM tombstones;

-- save_tombstone --
-- It stays out from now on; of two removals the later one counts.
INSERT INTO tombstones (digest, words, at, run)
VALUES (:digest, :words, :at, :run)
ON CONFLICT (digest) DO UPDATE SET at = excluded.at, run = excluded.run;

-- delete_tombstones_of --
-- What this version removed may come back.
DELETE FROM tombstones
WHERE run = :run;
