-- The trail (option history=N): made by the first client whose URL asks for it, and written by such clients only, in
-- the transaction that changes the lock. They go with the lock's row.
CREATE TABLE IF NOT EXISTS holdfast_history (
    id         INTEGER PRIMARY KEY,        -- the lock's id, times 2^32, and a place in its ring: trail.c
    at         INTEGER NOT NULL,           -- ms since 1970
    what       INTEGER NOT NULL,           -- 1 granted, 2 released, 3 lost, 4 broken, 5 withdrawn, 6 vanished
    mode       INTEGER NOT NULL,           -- 0 exclusive, 1 shared
    ticket     BLOB NOT NULL,
    generation INTEGER NOT NULL,           -- the fencing token; 0: it was not let in
    span       INTEGER NOT NULL,           -- ms for which it had held, or waited
    host       TEXT NOT NULL,
    user       TEXT NOT NULL,
    program    TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    note       TEXT NOT NULL,
    cause      TEXT NOT NULL
) STRICT;
