-- How long what was extracted stays, and which sessions are over.

-- When a session was last given lines of its project's memory. It is a use in time, not in rank.
ALTER TABLE stage1_outputs ADD COLUMN last_given INTEGER;

-- Age counts from what was last: the extraction, a citation, or that a session was given it. A session's own date does
-- not count: a backfill would pay for what the next pass removes.
ALTER TABLE stage1_outputs ADD COLUMN alive_at INTEGER NOT NULL GENERATED ALWAYS AS (
    max(generated_at, coalesce(last_usage, 0), coalesce(last_given, 0))
) VIRTUAL;

-- It has a point under `Preference signals:`: what a person said holds until it is replaced or taken back.
ALTER TABLE stage1_outputs ADD COLUMN holds_preferences INTEGER NOT NULL GENERATED ALWAYS AS (
    instr(replace(raw_memory, char(10, 10), char(10)), 'Preference signals:' || char(10) || '- ') > 0
) VIRTUAL;

-- When what was extracted of the thread was removed because nobody used it; the next extraction clears it.
ALTER TABLE jobs ADD COLUMN expired_at INTEGER;

-- When the client said that the session is over. Words after that moment make it go on.
ALTER TABLE threads ADD COLUMN ended_at_ms INTEGER;

-- The scan asks for it of sessions that were active a moment ago.
DROP INDEX threads_eligible;
CREATE INDEX threads_eligible ON threads (updated_at_ms DESC, thread_id DESC, cwd, ended_at_ms, is_eligible)
WHERE is_eligible = 1;
