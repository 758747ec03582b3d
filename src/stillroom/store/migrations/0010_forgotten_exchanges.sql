-- What forgotten threads said, as hashes: of two messages, one after the other, and of their first words. By these a fork
-- is known to repeat them.
CREATE TABLE forgotten_exchanges (
    digest BLOB PRIMARY KEY
) WITHOUT ROWID;
