/* What the errors of the server and of the library mean. */
#include "stores/mysql/mysql.h"

#include "base/banned.h"

/* HF_UNKNOWN, also for what is not here: the server may have ended the statement after its COMMIT. */
static const struct meaning {
    unsigned number;
    int code;
    const char *advice;
} meanings[] = {
    {1213, HF_UNAVAILABLE, "try again"},
    {1205, HF_UNAVAILABLE, "somebody keeps the lock's row locked; see SHOW ENGINE INNODB STATUS"},
    {1020, HF_UNAVAILABLE, "try again"},
    {3101, HF_UNAVAILABLE, "try again"}, /* a conflict with another member of the group */
    {1317, HF_UNKNOWN, "somebody ended the statement (KILL QUERY)"},
    {1969, HF_UNKNOWN, "the server's max_statement_time ended it"},
    {3024, HF_UNKNOWN, "the server's max_execution_time ended it"},
    {1053, HF_UNKNOWN, "the server is shutting down"},
    {1927, HF_UNKNOWN, "somebody ended the connection (KILL)"},
    {1180, HF_UNKNOWN, "the server could not commit"},
    {1030, HF_UNKNOWN, "the storage engine failed; see the server's log"},
    {2013, HF_UNKNOWN, "the connection was lost"},
    {2027, HF_UNKNOWN, "the server's reply makes no sense"},
    {2006, HF_UNAVAILABLE, "the server has closed the connection"},
    {4031, HF_UNAVAILABLE, "the server has closed the connection"},
    {2002, HF_UNAVAILABLE, "is the server running there?"},
    {2003, HF_UNAVAILABLE, "is the server running there?"},
    {2005, HF_UNAVAILABLE, "there is no such host"},
    {1040, HF_UNAVAILABLE, "the server has no connection left; lower max_active"},
    {1203, HF_UNAVAILABLE, "the account has no connection left; lower max_active"},
    {1226, HF_UNAVAILABLE, "the account's limit; lower max_active"},
    {1047, HF_UNAVAILABLE, "this node of the cluster is not ready (Galera)"},
    {HF__MY_TOO_LATE, HF_UNAVAILABLE, "the server is busy, or its clock was set forward"},
    {1290, HF_UNAVAILABLE, "this server is read-only; name the primary as well"},
    {1792, HF_UNAVAILABLE, "this server is read-only; name the primary as well"},
    {1836, HF_UNAVAILABLE, "this server is read-only; name the primary as well"},
    {1021, HF_FULL, "the server's disk is full"},
    {1026, HF_FULL, "the server cannot write; is its disk full?"},
    {1114, HF_FULL, "the server has no room left; is its disk full?"},
    {1037, HF_FULL, "the server is out of memory"},
    {1041, HF_FULL, "the server is out of memory"},
    {1665, HF_DENIED, "READ COMMITTED needs binlog_format MIXED or ROW"},
    {1044, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1142, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1143, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1227, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1370, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1045, HF_DENIED, "check user and password (password_file, option_file)"},
    {1698, HF_DENIED, "check user and password (password_file, option_file)"},
    {1130, HF_DENIED, "the server does not admit this machine"},
    {2026, HF_DENIED, "TLS: name the authority with tls_ca, or choose tls=insecure or tls=off"},
    {2059, HF_DENIED, "the library lacks this way to log in"},
    {1049, HF_DENIED, "name an existing database in the URL"},
    {1046, HF_DENIED, "name a database in the URL"},
    {1146, HF_DENIED, "create the tables with `holdfast setup`"},
    {1305, HF_DENIED, "create the procedures with `holdfast setup`"},
    {1318, HF_DENIED, "the procedures are of another version; run `holdfast setup`"},
    {1054, HF_DENIED, "the tables are of another version; run `holdfast setup`"},
    {1136, HF_DENIED, "the tables are of another version; run `holdfast setup`"},
    {1062, HF_CORRUPT, "a row contradicts another: rows were changed by hand"},
    {1406, HF_INVALID, "too long for the tables"},
};

int hf__my_fail(unsigned number, const char *text, bool reads, hf_error *err)
{
    const struct meaning *m = NULL;
    char shown[200];

    for (size_t i = 0; m == NULL && i < sizeof meanings / sizeof meanings[0]; i++) {
        if (meanings[i].number == number)
            m = &meanings[i];
    }
    int code = m != NULL ? m->code : HF_UNKNOWN;
    if (code == HF_UNKNOWN && reads)
        code = HF_UNAVAILABLE;
    hf__sentence(text, strlen(text), shown, sizeof shown);
    hf__fail(err, code, "mysql: %s%s%s", shown, m != NULL ? "; " : "", m != NULL ? m->advice : "");
    hf__set_store_code(err, (long)number);
    return code;
}

bool hf__my_is_loss(unsigned number)
{
    static const unsigned losses[] = {2013, 2006, 2055, 4031, 1053, 1927, 1290, 1792, 1836, 1047};

    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        if (losses[i] == number)
            return true;
    }
    return false;
}

bool hf__my_is_conflict(long store_code)
{
    return store_code == 1213 || store_code == 1205 || store_code == 1020 || store_code == 3101;
}
