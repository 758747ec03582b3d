-- What sessions say, of those whose format gives them no name that holds elsewhere: by it copies of one are known.
CREATE TABLE thread_contents (
    thread_id TEXT PRIMARY KEY REFERENCES threads (thread_id) ON DELETE CASCADE,
    -- Eight bytes for each item: a digest of all items up to it.
    chain BLOB NOT NULL,
    -- The session that tells the beginning of this one, and how many items that is; all of them: nothing is left to say.
    told_in TEXT REFERENCES threads (thread_id) ON DELETE SET NULL,
    told_items INTEGER NOT NULL DEFAULT 0
);

-- Sessions that begin alike.
CREATE INDEX thread_contents_opening ON thread_contents (substr(chain, 1, 8));
CREATE INDEX thread_contents_told_in ON thread_contents (told_in) WHERE told_in IS NOT NULL;
