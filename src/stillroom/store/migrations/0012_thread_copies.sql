-- Files that hold a thread too, which is read from another place: how they looked, so that they are not opened again.
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
