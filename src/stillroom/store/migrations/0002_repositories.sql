-- Which project each folder of a thread belonged to when it was last there. Worktrees and clones come and go; what was
-- learnt in them keeps its project.
CREATE TABLE repositories (
    cwd TEXT PRIMARY KEY,
    -- Git's common directory, which all worktrees share; without git the folder; '' if the folder was never seen here.
    place TEXT NOT NULL,
    -- The top of the work tree; without git the folder itself.
    folder TEXT NOT NULL,
    is_git INTEGER NOT NULL,
    remote TEXT,
    -- The oldest root commit; NULL: not known.
    first_commit TEXT,
    -- When git was last asked for it.
    asked_at INTEGER
) WITHOUT ROWID;
