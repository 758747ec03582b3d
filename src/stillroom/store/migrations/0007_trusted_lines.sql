-- Lines of memory that only a tool or the web said, and that a person lets in all the same.
CREATE TABLE trusted_lines (
    -- A hash of the words: what they were stands in the output alone, and is forgotten with it.
    line_id TEXT PRIMARY KEY,
    trusted_at INTEGER NOT NULL
) WITHOUT ROWID;
