-- From version 1 to 2: a lone holder stands in the lock's row. `holdfast setup` runs this where it finds tables of
-- version 1, then schema.sql. Locks that are held stay held. Clients of version 1 are refused from here on: the
-- column that their statements name is gone. (Version 1 was for MariaDB only, whose syntax this is.)

ALTER TABLE holdfast_lock
    DROP COLUMN IF EXISTS sole,
    ADD COLUMN IF NOT EXISTS inside BINARY(16),
    ADD COLUMN IF NOT EXISTS token BIGINT,
    ADD COLUMN IF NOT EXISTS since DATETIME(6),
    ADD COLUMN IF NOT EXISTS ttl BIGINT,
    ADD COLUMN IF NOT EXISTS retire BIGINT,
    ADD COLUMN IF NOT EXISTS wake VARCHAR(60) CHARACTER SET ascii,
    ADD COLUMN IF NOT EXISTS host VARCHAR(255) CHARACTER SET utf8mb4,
    ADD COLUMN IF NOT EXISTS username VARCHAR(255) CHARACTER SET utf8mb4,
    ADD COLUMN IF NOT EXISTS program VARCHAR(255) CHARACTER SET utf8mb4,
    ADD COLUMN IF NOT EXISTS pid BIGINT,
    ADD COLUMN IF NOT EXISTS note VARBINARY(256);

DROP PROCEDURE IF EXISTS holdfast_look;

UPDATE holdfast_schema SET version = 2;
