-- What a person took back: projects that are switched off, consolidations that were undone, threads that were forgotten.

-- The thread ran in a project whose memory is switched off. It is as good as `disabled` until the project is switched
-- on again; what its own files say is kept beside it.
ALTER TABLE threads ADD COLUMN switched_off INTEGER NOT NULL DEFAULT 0;

-- The generated columns are made again with it: SQLite can't change one.
DROP TRIGGER threads_inserted;
DROP TRIGGER threads_updated;
ALTER TABLE threads DROP COLUMN memory_mode;
ALTER TABLE threads DROP COLUMN may_extract;
ALTER TABLE threads ADD COLUMN memory_mode TEXT NOT NULL GENERATED ALWAYS AS (
    CASE
        WHEN switched_off = 1 AND coalesce(chosen_mode, recorded_mode) = 'enabled' THEN 'disabled'
        ELSE coalesce(chosen_mode, recorded_mode)
    END
) VIRTUAL;
ALTER TABLE threads ADD COLUMN may_extract INTEGER NOT NULL GENERATED ALWAYS AS (
    archived = 0 AND missing = 0 AND preview <> '' AND switched_off = 0
    AND coalesce(chosen_mode, recorded_mode) = 'enabled'
    AND source IN ('cli', 'vscode', 'atlas', 'chatgpt', '{"custom":"atlas"}', '{"custom":"chatgpt"}')
) VIRTUAL;

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

-- What an undo decided of an output until its thread changes: `out`, the folder is without it; `in`, the folder has it,
-- however old it is.
ALTER TABLE stage1_outputs ADD COLUMN held TEXT CHECK (held IN ('out', 'in'));

-- Threads that were forgotten, as hashes: of the id, and of what a copy under another id has in common with it.
CREATE TABLE forgotten (
    digest BLOB PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
