-- How sessions use memory, read out of what agents recorded.

-- How a session's file looked when it was last searched for uses of memory; an equal one is not opened.
CREATE TABLE usage_searches (
    thread_id TEXT PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE,
    file_size INTEGER NOT NULL,
    file_mtime_ns INTEGER NOT NULL
) WITHOUT ROWID;

-- Every message that cites memory and every command that reads it, whether it counts or not. One is known by what it
-- says and by how many in its session say the same: so a file that grew, moved or was written anew counts nothing
-- twice. No foreign key: a session that is deleted here and found again must not count again either.
CREATE TABLE memory_uses (
    -- The session that used memory; empty where nobody said which.
    thread_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    nth INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('citation', 'command')),
    at INTEGER NOT NULL,
    -- JSON: the threads whose memory was counted as used, or the kinds of memory that the command read.
    counted TEXT NOT NULL,
    PRIMARY KEY (thread_id, digest, nth)
) WITHOUT ROWID;
