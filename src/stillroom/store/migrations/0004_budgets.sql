-- Ledgers of session trees that are shared between processes. Amounts are millionths of a weighted token: whole
-- numbers, which add up to the same sum in any order.

CREATE TABLE budget_trees (
    tree_id TEXT PRIMARY KEY,
    -- What the tree was begun with; a later configuration does not change it.
    config_json BLOB NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- A tree and its threads. The tree itself is the row whose thread id is empty.
CREATE TABLE budget_nodes (
    -- In the order in which they were seen.
    node_id INTEGER PRIMARY KEY,
    tree_id TEXT NOT NULL REFERENCES budget_trees (tree_id) ON DELETE CASCADE,
    thread_id TEXT NOT NULL,
    parent_thread_id TEXT,
    -- NULL: only the limits above count.
    limit_units INTEGER,
    -- By this thread itself, and with all that is below it.
    own_units INTEGER NOT NULL DEFAULT 0 CHECK (own_units >= 0),
    used_units INTEGER NOT NULL DEFAULT 0 CHECK (used_units >= 0),
    -- The thread whose charge reached the limit.
    crossed_by TEXT,
    closing_given INTEGER NOT NULL DEFAULT 0,
    -- The last reminder that stands in the thread's history.
    delivered_window TEXT,
    delivered_index INTEGER,
    updated_at INTEGER NOT NULL,
    UNIQUE (tree_id, thread_id)
);

-- Tokens held for requests under way.
CREATE TABLE budget_reservations (
    reservation_id TEXT PRIMARY KEY,
    tree_id TEXT NOT NULL REFERENCES budget_trees (tree_id) ON DELETE CASCADE,
    thread_id TEXT NOT NULL,
    units INTEGER NOT NULL CHECK (units >= 0),
    lease_until_ms INTEGER NOT NULL,
    -- The process: a hold ends with it.
    owner TEXT NOT NULL
) WITHOUT ROWID;

-- A reservation is given only after all holds of its tree are added up.
CREATE INDEX budget_reservations_of_tree ON budget_reservations (tree_id);
