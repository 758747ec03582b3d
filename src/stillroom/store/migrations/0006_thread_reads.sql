-- What a session's file held when it was last read as a whole. Registering reads only its ends, so most have no row until
-- they are extracted, or counted because somebody asked.
CREATE TABLE thread_reads (
    thread_id TEXT PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE,
    -- How the file looked then: of another size, it went on since.
    file_size INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    -- Of what memory keeps, four bytes to a token.
    tokens INTEGER NOT NULL,
    bad_lines INTEGER NOT NULL,
    long_lines INTEGER NOT NULL,
    cut_bytes INTEGER NOT NULL
) WITHOUT ROWID;

-- Records in it of a kind that this version does not know.
CREATE TABLE thread_unknown (
    thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (thread_id, kind)
) WITHOUT ROWID;
