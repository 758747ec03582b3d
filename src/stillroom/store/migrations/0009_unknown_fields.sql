-- Fields that this version does not know, in a sample of a session's records, when it was last read as a whole.
CREATE TABLE thread_unknown_fields (
    thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    field TEXT NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (thread_id, field)
) WITHOUT ROWID;
