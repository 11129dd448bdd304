-- The same as traps.sql for a search_path that names another schema before pg_catalog: there even what fits exactly is
-- found before the system's own. Functions, operators and types of the system's names, all of which fail; but the clock
-- and the advisory locks lie, as somebody would let them who wants a lock that is held.
CREATE SCHEMA first;
DO $$
DECLARE
    f record;
BEGIN
    FOR f IN SELECT p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid) AS arguments,
                    pg_catalog.format_type(p.prorettype, NULL) AS result, p.proretset
               FROM pg_catalog.pg_proc p
              WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.provariadic = 0
                AND p.proargmodes IS NULL AND pg_catalog.format_type(p.prorettype, NULL) NOT LIKE '%"any%'
                AND pg_catalog.format_type(p.prorettype, NULL) !~ '^(any|internal|trigger|event_trigger|cstring|record|void|.*handler|"char")'
                AND pg_catalog.pg_get_function_identity_arguments(p.oid) !~ '(any|internal|cstring|"char"|unknown|handler)'
    LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION first.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS %L', f.proname, f.arguments,
                CASE WHEN f.proretset THEN 'SETOF' ELSE '' END, f.result,
                CASE f.proname WHEN 'clock_timestamp' THEN 'BEGIN RETURN ''2099-01-01''::pg_catalog.timestamptz; END'
                     WHEN 'pg_try_advisory_lock' THEN 'BEGIN RETURN true; END'
                     WHEN 'pg_try_advisory_lock_shared' THEN 'BEGIN RETURN true; END'
                     ELSE format('BEGIN RAISE EXCEPTION ''trapped: %s''; END', f.proname) END);
        EXCEPTION WHEN OTHERS THEN
            NULL; -- not all of them can be made again
        END;
    END LOOP;
    FOR f IN SELECT o.oprname, o.oprleft::regtype AS a, o.oprright::regtype AS b, o.oprresult::regtype AS result
               FROM pg_catalog.pg_operator o
              WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprkind = 'b'
                AND o.oprname IN ('+', '-', '*', '/', '||', '#', '&', '|', '<<', '>>', '=', '<>', '<', '>', '<=', '>=', '~~')
                AND o.oprleft::regtype::text !~ '^any' AND o.oprright::regtype::text !~ '^any'
                AND o.oprleft::regtype IN ('int', 'bigint', 'numeric', 'float8', 'text', 'name', 'bytea', 'oid', 'interval', 'timestamptz')
    LOOP
        EXECUTE format('CREATE FUNCTION first.caught(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', f.a, f.b, f.result,
            format('BEGIN RAISE EXCEPTION ''trapped: %s %s %s''; END', f.a, f.oprname, f.b));
        EXECUTE format('CREATE OPERATOR first.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = first.caught)', f.oprname, f.a, f.b);
        EXECUTE format('ALTER FUNCTION first.caught(%s, %s) RENAME TO caught_%s', f.a, f.b, (random() * 1e9)::bigint);
    END LOOP;
END $$;
CREATE DOMAIN first.timestamptz AS pg_catalog.text CHECK (VALUE = 'trapped');
CREATE DOMAIN first.bytea AS pg_catalog.text CHECK (VALUE = 'trapped');
CREATE DOMAIN first.text AS pg_catalog.bytea CHECK (VALUE = 'trapped');
CREATE DOMAIN first.name AS pg_catalog.text CHECK (VALUE = 'trapped');
GRANT USAGE ON SCHEMA first TO PUBLIC;
