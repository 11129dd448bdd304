/* URLs: who is asked, who we are, and when TLS is spoken. */
#include "client.h"

static const struct good {
    const char *url;
    const char *contacts; /* "host port tls, ..." */
} good[] = {
    {"cassandra://localhost/k", "localhost 9042 plain, "},
    {"cassandra://127.0.0.1:9043,localhost,[::1]:1/k",
     "127.0.0.1 9043 plain, localhost 9042 plain, ::1 1 plain, "},
    {"cassandra://db.example.org/k?tls=off", "db.example.org 9042 plain, "},
    {"cassandra://db.example.org/k", "db.example.org 9042 tls, "},
    {"cassandra://db.example.org,127.0.0.1/k", "db.example.org 9042 tls, 127.0.0.1 9042 plain, "},
    {"cassandra://db.example.org,127.0.0.1/k?tls=insecure",
     "db.example.org 9042 tls, 127.0.0.1 9042 tls, "},
    {"cassandra://127.0.0.1/k?tls=verify", "127.0.0.1 9042 tls, "},
};

static void contacts_and_tls_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct hf__cql_settings set = {0};
        char got[400] = "";
        hf_error err;

        if (client_settings(good[i].url, &set, &err) != 0)
            fail_msg("%s: %s", good[i].url, err.text);
        for (size_t k = 0; k < set.contacts.count; k++) {
            const struct hf__server *c = &set.contacts.list[k];
            bool tls = set.tls != NULL && c->tls != HF__TLS_MODE_OFF;
            size_t used = strlen(got);
            snprintf(got + used, sizeof got - used, "%s %s %s, ", c->host, c->port,
                     tls ? "tls" : "plain");
        }
        check_text(good[i].url, got, good[i].contacts);
        hf__cql_settings_clear(&set);
    }
}

static const struct bad {
    const char *url, *says;
} bad[] = {
    {"cassandra:///k", "name the servers as in cassandra://"},
    {"cassandra://h/k?tls=maybe", "verify, insecure or off"},
    {"cassandra://h/k?tls=off&tls_ca=/x", "no use"},
    {"cassandra://127.0.0.1/k?tls_ca=/nowhere.pem", "tls_ca"},
    {"cassandra://u@h/k", "password"},
    {"cassandra://127.0.0.1/k?protocol=3", "4, 5, or 0"},
    {"cassandra://127.0.0.1/k?node_timeout=1ms", "node_timeout"},
    {"cassandra://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/k?tls=off", "at most 16"},
};

static void what_cannot_be_meant_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hf__cql_settings set = {0};
        hf_error err = {0};

        check_number(bad[i].url, client_settings(bad[i].url, &set, &err), HF_INVALID);
        check_contains(bad[i].url, err.text, bad[i].says);
        hf__cql_settings_clear(&set);
    }
}

static void names_that_need_no_quotes_are_known(void **state)
{
    (void)state;
    assert_true(hf__cql_is_name("holdfast"));
    assert_true(hf__cql_is_name("A_1"));
    assert_false(hf__cql_is_name(""));
    assert_false(hf__cql_is_name("1a"));
    assert_false(hf__cql_is_name("_a"));
    assert_false(hf__cql_is_name("a;b"));
    assert_false(hf__cql_is_name("a\""));
    assert_false(hf__cql_is_name("\303\266"));
    assert_true(hf__cql_is_name("a23456789012345678901234567890123456789012345678"));
    assert_false(hf__cql_is_name("a234567890123456789012345678901234567890123456789"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contacts_and_tls_are_read),
        cmocka_unit_test(what_cannot_be_meant_is_refused),
        cmocka_unit_test(names_that_need_no_quotes_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
