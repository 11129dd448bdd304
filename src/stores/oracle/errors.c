/* What the servers' errors mean. Oracle's are those of its own numbers (ORA-nnnnn), which its ODBC
 * driver passes on; what has no row is told by its SQLSTATE. */
#include <string.h>

#include "stores/oracle/oracle.h"

#include "base/banned.h"

#define RIGHTS "see the rights in `holdfast setup --print`"
#define SETUP  "run `holdfast setup`, or let a DBA apply what `holdfast setup --print` shows"
#define LOGIN  "check user and password (password_file, password_env)"

extern const struct hf__ora_meaning hf__ora_meanings[], hf__ora_mariadb_meanings[];

const struct hf__ora_meaning hf__ora_meanings[] = {
    {1, HF_CORRUPT, HF__ORA_KIND_DUPLICATE, "a row contradicts another: rows were changed by hand"},
    {18, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "the server has no session left; lower max_active"},
    {20, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "the server has no process left; lower max_active"},
    {28, HF_UNKNOWN, HF__ORA_KIND_LOST, "somebody ended the session (ALTER SYSTEM KILL SESSION)"},
    {54, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "somebody keeps the lock's row locked; see V$LOCK"},
    {60, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "a deadlock; try again"},
    {600, HF_UNKNOWN, HF__ORA_KIND_OTHER, "an internal error of the server; see its alert log"},
    {904, HF_DENIED, HF__ORA_KIND_CHANGED, "the tables are of another version; " SETUP},
    {913, HF_DENIED, HF__ORA_KIND_CHANGED, "the tables are of another version; " SETUP},
    {942, HF_DENIED, HF__ORA_KIND_CHANGED,
     "create the tables with `holdfast setup`, or name their"
     " owner in the URL"},
    {947, HF_DENIED, HF__ORA_KIND_CHANGED, "the tables are of another version; " SETUP},
    {955, HF_DENIED, HF__ORA_KIND_EXISTS, "something of this name is there already"},
    {1012, HF_UNAVAILABLE, HF__ORA_KIND_LOST, "the session is over; nothing was sent"},
    {1013, HF_UNKNOWN, HF__ORA_KIND_OTHER, "the statement was cancelled"},
    {1017, HF_DENIED, HF__ORA_KIND_OTHER, LOGIN},
    {1031, HF_DENIED, HF__ORA_KIND_CHANGED, RIGHTS},
    {1033, HF_UNAVAILABLE, HF__ORA_KIND_LOST, "the server is starting or stopping"},
    {1034, HF_UNAVAILABLE, HF__ORA_KIND_LOST, "the server does not run"},
    {1045, HF_DENIED, HF__ORA_KIND_OTHER, "the account lacks CREATE SESSION"},
    {1089, HF_UNKNOWN, HF__ORA_KIND_LOST, "the server is shutting down"},
    {1403, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "the lock's row was removed meanwhile; try again"},
    {1435, HF_DENIED, HF__ORA_KIND_OTHER,
     "there is no such user: name the tables' owner in the URL"},
    {1536, HF_FULL, HF__ORA_KIND_OTHER, "the tablespace's quota is used up"},
    {1653, HF_FULL, HF__ORA_KIND_OTHER, "the tablespace is full"},
    {2049, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN,
     "a distributed transaction keeps the row; try again"},
    {2091, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "the transaction was rolled back; try again"},
    {3113, HF_UNKNOWN, HF__ORA_KIND_LOST, "the connection was lost"},
    {3114, HF_UNAVAILABLE, HF__ORA_KIND_LOST, "not connected any more; nothing was sent"},
    {3135, HF_UNKNOWN, HF__ORA_KIND_LOST, "the connection was lost"},
    {4021, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "somebody changes the package; try again"},
    {4061, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "the package was replaced; try again"},
    {4063, HF_DENIED, HF__ORA_KIND_CHANGED, "the package has errors; " SETUP},
    {4068, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "the package was replaced; try again"},
    {6550, HF_DENIED, HF__ORA_KIND_CHANGED,
     "the package is missing, or may not be executed; " SETUP},
    {8177, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "try again"},
    {12154, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "tnsnames.ora does not know this name"},
    {12170, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "the listener does not answer"},
    {12514, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "the listener does not know this service"},
    {12541, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "no listener there: is the server running?"},
    {12543, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "the host cannot be reached"},
    {12545, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "the host cannot be reached"},
    {12899, HF_INVALID, HF__ORA_KIND_OTHER, "too long for the tables"},
    {16000, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "this database is read-only; name the primary"},
    {25401, HF_UNKNOWN, HF__ORA_KIND_LOST, "a failover in the middle of it"},
    {25402, HF_UNAVAILABLE, HF__ORA_KIND_LOST, "a failover: the transaction was rolled back"},
    {25408, HF_UNKNOWN, HF__ORA_KIND_LOST, "a failover in the middle of it: cannot be replayed"},
    {28000, HF_DENIED, HF__ORA_KIND_OTHER, "the account is locked"},
    {28001, HF_DENIED, HF__ORA_KIND_OTHER, "the password has expired"},
    {30006, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "somebody keeps the lock's row locked; see V$LOCK"},
    {0},
};

const struct hf__ora_meaning hf__ora_mariadb_meanings[] = {
    {1213, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "a deadlock; try again"},
    {1205, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "somebody keeps the lock's row locked"},
    {1020, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "try again"},
    {1329, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "the lock's row was removed meanwhile; try again"},
    {1317, HF_UNKNOWN, HF__ORA_KIND_OTHER, "somebody ended the statement (KILL QUERY)"},
    {1969, HF_UNKNOWN, HF__ORA_KIND_OTHER, "the server's max_statement_time ended it"},
    {1053, HF_UNKNOWN, HF__ORA_KIND_LOST, "the server is shutting down"},
    {1927, HF_UNKNOWN, HF__ORA_KIND_LOST, "somebody ended the connection (KILL)"},
    {1180, HF_UNKNOWN, HF__ORA_KIND_OTHER, "the server could not commit"},
    {2013, HF_UNKNOWN, HF__ORA_KIND_LOST, "the connection was lost"},
    {2006, HF_UNAVAILABLE, HF__ORA_KIND_LOST, "the server has closed the connection"},
    {2002, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "is the server running there?"},
    {2003, HF_UNAVAILABLE, HF__ORA_KIND_OTHER, "is the server running there?"},
    {1040, HF_UNAVAILABLE, HF__ORA_KIND_OTHER,
     "the server has no connection left; lower max_active"},
    {1044, HF_DENIED, HF__ORA_KIND_CHANGED, RIGHTS},
    {1045, HF_DENIED, HF__ORA_KIND_OTHER, LOGIN},
    {1049, HF_DENIED, HF__ORA_KIND_OTHER, "there is no such database"},
    {1050, HF_DENIED, HF__ORA_KIND_EXISTS, "a table of this name is there already"},
    {1142, HF_DENIED, HF__ORA_KIND_CHANGED, RIGHTS},
    {1146, HF_DENIED, HF__ORA_KIND_CHANGED, "create the tables with `holdfast setup`"},
    {1227, HF_DENIED, HF__ORA_KIND_CHANGED, RIGHTS},
    {1305, HF_DENIED, HF__ORA_KIND_CHANGED, "the package is missing; " SETUP},
    {1318, HF_DENIED, HF__ORA_KIND_CHANGED, "the package is of another version; " SETUP},
    {1370, HF_DENIED, HF__ORA_KIND_CHANGED, RIGHTS},
    {1062, HF_CORRUPT, HF__ORA_KIND_DUPLICATE,
     "a row contradicts another: rows were changed by hand"},
    {1114, HF_FULL, HF__ORA_KIND_OTHER, "the server has no room left; is its disk full?"},
    {1406, HF_INVALID, HF__ORA_KIND_OTHER, "too long for the tables"},
    {0},
};

static const struct by_state {
    const char *begins; /* a SQLSTATE, or how it begins */
    struct hf__ora_meaning means;
} by_state[] = {
    {"08001", {0, HF_UNAVAILABLE, HF__ORA_KIND_LOST, "is the server running there?"}},
    {"08003", {0, HF_UNAVAILABLE, HF__ORA_KIND_LOST, "not connected any more; nothing was sent"}},
    {"08004", {0, HF_DENIED, HF__ORA_KIND_OTHER, "the server refused the connection"}},
    {"08", {0, HF_UNKNOWN, HF__ORA_KIND_LOST, "the connection was lost"}},
    {"23", {0, HF_CORRUPT, HF__ORA_KIND_DUPLICATE, "a row contradicts another"}},
    {"28", {0, HF_DENIED, HF__ORA_KIND_OTHER, LOGIN}},
    {"40", {0, HF_UNAVAILABLE, HF__ORA_KIND_AGAIN, "try again"}},
    {"42501", {0, HF_DENIED, HF__ORA_KIND_CHANGED, RIGHTS}},
    {"42S01", {0, HF_DENIED, HF__ORA_KIND_EXISTS, "something of this name is there already"}},
    {"42S02", {0, HF_DENIED, HF__ORA_KIND_CHANGED, "create the tables with `holdfast setup`"}},
    {"42", {0, HF_DENIED, HF__ORA_KIND_CHANGED, "create the tables with `holdfast setup`"}},
    {"HYT", {0, HF_UNKNOWN, HF__ORA_KIND_OTHER, "the server did not answer in time"}},
    {"HY008", {0, HF_UNKNOWN, HF__ORA_KIND_OTHER, "the statement was cancelled"}},
    {"HY018", {0, HF_UNKNOWN, HF__ORA_KIND_OTHER, "the statement was cancelled"}},
    {"IM002", {0, HF_DENIED, HF__ORA_KIND_OTHER, "there is no such dsn; see odbcinst -q -s"}},
    {"IM003",
     {0, HF_DENIED, HF__ORA_KIND_OTHER, "the driver cannot be loaded; see odbcinst -q -d"}},
    {"01000",
     {0, HF_DENIED, HF__ORA_KIND_OTHER, "the driver cannot be loaded; see odbcinst -q -d"}},
};

static const struct hf__ora_meaning *find_state(const char *state)
{
    for (size_t i = 0; i < sizeof by_state / sizeof by_state[0]; i++) {
        if (strncmp(by_state[i].begins, state, strlen(by_state[i].begins)) == 0)
            return &by_state[i].means;
    }
    return NULL;
}

/* A login fails before it is known whose numbers they are; Oracle says so in its texts. */
static const struct hf__ora_meaning *find(const struct hf__ora_dialect *dialect,
                                          const struct hf__ora_trouble *t)
{
    const struct hf__ora_meaning *m = dialect != NULL                    ? dialect->meanings
                                      : strncmp(t->text, "ORA-", 4) == 0 ? hf__ora_meanings
                                                                         : NULL;

    for (; m != NULL && m->native != 0; m++) {
        if (m->native == t->native)
            return m;
    }
    return find_state(t->state);
}

int hf__ora_fail(const struct hf__ora_dialect *dialect, const struct hf__ora_trouble *t, bool reads,
                 enum hf__ora_kind *ret_kind, hf_error *err)
{
    const struct hf__ora_meaning *m = find(dialect, t);
    /* What is not known may have happened after a COMMIT of the routine's own. */
    int code = m != NULL ? m->code : HF_UNKNOWN;

    if (code == HF_UNKNOWN && reads)
        code = HF_UNAVAILABLE;
    hf__fail(err, code, "oracle: %s%s%s", t->text, m != NULL ? "; " : "",
             m != NULL ? m->advice : "");
    hf__set_store_code(err, t->native);
    *ret_kind = strncmp(t->state, "08", 2) == 0 ? HF__ORA_KIND_LOST
                : m != NULL                     ? m->kind
                                                : HF__ORA_KIND_OTHER;
    return code;
}
