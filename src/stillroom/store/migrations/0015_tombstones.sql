-- Statements that a person removed. A later run keeps them out, whoever extracts or consolidates, until a session that
-- began later has the person say it again.
CREATE TABLE tombstones (
    -- A hash of the words: what they were stands in the history of the folder alone.
    digest BLOB PRIMARY KEY,
    -- How many words that are: so many are looked at together.
    words INTEGER NOT NULL,
    at INTEGER NOT NULL,
    -- Of the version that removed it: to take that back lifts the stone.
    run TEXT NOT NULL
) WITHOUT ROWID;
