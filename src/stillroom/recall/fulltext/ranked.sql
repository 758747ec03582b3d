-- The full-text index, a file that can be built again at any time. Times are whole seconds.

-- create_passages --
-- A piece of memory that can be found: what was extracted of a session, or a part of a file in the memory folder.
CREATE TABLE passages (
    passage_id INTEGER PRIMARY KEY,
    -- What it comes from, and how that looked then: when the stamp changes, all its passages are made again.
    origin TEXT NOT NULL,
    stamp TEXT NOT NULL,
    -- Where the session ran, or what folder a part of the handbook is about; NULL: it is about none.
    cwd TEXT,
    updated_at INTEGER,
    -- The file in the memory folder that may have it, and where in it.
    path TEXT NOT NULL,
    line INTEGER NOT NULL
);

-- create_texts --
-- What a passage says, apart from it: a search for a common word goes through all passages, and shows ten.
CREATE TABLE texts (
    passage_id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    body TEXT NOT NULL
);

-- create_passages_by_origin --
-- Every refresh compares all stamps, and must not read the texts for it.
CREATE INDEX passages_by_origin ON passages (origin, stamp);

-- create_words --
-- The words of the passages, in the form that `words.indexed` gives them; the row ids are theirs.
CREATE VIRTUAL TABLE words USING fts5 (title, body, tokenize = 'unicode61 remove_diacritics 2');

-- list_stamps --
-- How everything looked when it was put in.
SELECT DISTINCT origin, stamp FROM passages;

-- list_folders --
-- Every folder that passages are about.
SELECT DISTINCT cwd FROM passages WHERE cwd IS NOT NULL;

-- delete_words --
-- Take an origin's words out, ahead of its passages.
DELETE FROM words WHERE rowid IN (SELECT passage_id FROM passages WHERE origin = :origin);

-- delete_texts --
-- Take an origin's texts out, ahead of its passages.
DELETE FROM texts WHERE passage_id IN (SELECT passage_id FROM passages WHERE origin = :origin);

-- delete_passages --
-- Take an origin out.
DELETE FROM passages WHERE origin = :origin;

-- add_passage --
-- Put a passage in.
INSERT INTO passages (origin, stamp, cwd, updated_at, path, line)
VALUES (:origin, :stamp, :cwd, :updated_at, :path, :line);

-- add_text --
-- Put the text of a passage in.
INSERT INTO texts (passage_id, title, body) VALUES (:passage_id, :title, :body);

-- add_words --
-- Put the words of a passage in.
INSERT INTO words (rowid, title, body) VALUES (:passage_id, :title, :body);

-- merge_words --
-- Leave nothing of what was deleted in the index.
INSERT INTO words (words) VALUES ('optimize');

-- find --
-- The passages that match best; a word of the title weighs as much as several of the text. Of equals the newest first.
SELECT origin, cwd, best.updated_at, path, line, title, body
FROM (
    SELECT passage_id, updated_at, bm25(words, :title_weight, 1.0) AS score
    FROM words
    JOIN passages ON passage_id = words.rowid
    WHERE words MATCH :expression
        AND (:folders IS NULL OR cwd IS NULL OR cwd IN (SELECT value FROM json_each(:folders)))
    ORDER BY score, updated_at DESC, passage_id
    LIMIT :limit OFFSET :offset
) AS best
JOIN passages USING (passage_id)
JOIN texts USING (passage_id)
ORDER BY score, best.updated_at DESC, passage_id;
