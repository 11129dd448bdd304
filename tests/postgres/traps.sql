-- Operators and functions named as those of the system, for every pair of types that the system has none for: they fit
-- better than what the system would convert to. Whoever may create in a schema that others look into can lay them, and
-- they run with the rights of the others. Each fails, so a statement that can be caught is seen.
CREATE SCHEMA trap;
DO $$
DECLARE
    types text[] := ARRAY['int', 'bigint', 'numeric', 'double precision', 'text', 'name', 'bytea', 'oid', 'regclass',
        'interval', 'timestamptz', '"char"', 'bytea[]', 'int[]', 'bigint[]'];
    operators text[] := ARRAY['+', '-', '*', '/', '||', '#', '&', '|', '<<', '>>', '=', '<>', '<', '>', '<=', '>=', '~~'];
    functions text[] := ARRAY['nextval', 'setval', 'pg_sequence_last_value', 'unnest', 'encode', 'date_trunc',
        'current_setting', 'string_agg', 'min', 'sum', 'bool_or', 'bool_and', 'sha256', 'substr', 'cardinality', 'floor',
        'pg_total_relation_size', 'pg_size_pretty', 'pg_notify', 'pg_advisory_lock', 'pg_advisory_lock_shared',
        'pg_try_advisory_lock', 'pg_try_advisory_lock_shared', 'pg_advisory_unlock', 'pg_advisory_xact_lock',
        'has_function_privilege', 'has_schema_privilege', 'has_database_privilege', 'has_table_privilege',
        'to_regclass', 'pg_cancel_backend', 'pg_terminate_backend', 'pg_blocking_pids'];
    a text;
    b text;
    f text;
BEGIN
    FOREACH a IN ARRAY types LOOP
        FOREACH b IN ARRAY types LOOP
            EXECUTE format('CREATE FUNCTION trap.caught(%s, %s) RETURNS boolean LANGUAGE plpgsql AS %L', a, b,
                format('BEGIN RAISE EXCEPTION ''trapped: %s, %s''; END', a, b));
            FOREACH f IN ARRAY operators LOOP
                CONTINUE WHEN to_regoperator(format('pg_catalog.%s(%s,%s)', f, a, b)) IS NOT NULL;
                EXECUTE format('CREATE OPERATOR trap.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = trap.caught)', f, a, b);
            END LOOP;
        END LOOP;
        FOREACH f IN ARRAY functions LOOP
            FOREACH b IN ARRAY types || ''::text LOOP
                CONTINUE WHEN to_regprocedure(format('pg_catalog.%I(%s)', f, concat_ws(',', a, nullif(b, '')))) IS NOT NULL;
                EXECUTE format('CREATE FUNCTION trap.%I(%s) RETURNS boolean LANGUAGE plpgsql AS %L', f,
                    concat_ws(',', a, nullif(b, '')), format('BEGIN RAISE EXCEPTION ''trapped: %s''; END', f));
            END LOOP;
        END LOOP;
    END LOOP;
END $$;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
