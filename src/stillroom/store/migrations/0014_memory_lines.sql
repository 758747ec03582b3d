-- What each line of an output rests on: written with the output, and gone with it.
CREATE TABLE memory_lines (
    thread_id TEXT NOT NULL REFERENCES stage1_outputs (thread_id) ON DELETE CASCADE,
    -- A short hash of the line's words, without what consolidation adds to it (`lanes.line_key`).
    line_key TEXT NOT NULL,
    -- 'user', 'assistant', 'agent', 'harness', 'tool'; 'nobody': its words were not found in the session.
    speaker TEXT NOT NULL,
    -- The record of the session's file; 0: not known.
    line_no INTEGER NOT NULL,
    -- The words there, redacted.
    quote TEXT NOT NULL,
    -- 'kept', or 'held': it instructs, and nobody who is trusted said it.
    verdict TEXT NOT NULL,
    PRIMARY KEY (line_key, thread_id, speaker, line_no)
) WITHOUT ROWID;

CREATE INDEX memory_lines_of_thread ON memory_lines (thread_id);

-- Words that are taken out of an output stay in no quote of it.
CREATE TRIGGER memory_lines_follow AFTER UPDATE OF raw_memory, rollout_summary ON stage1_outputs
BEGIN
    DELETE FROM memory_lines WHERE thread_id = NEW.thread_id;
END;
