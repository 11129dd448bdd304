/* Hosts, accounts and TLS as the URLs of all stores with servers say them. */
#include <stdlib.h>

#include "base/servers.h"
#include "lib/check.h"

static const struct hf__option table[] = {
    HF__PASSWORD_OPTIONS,
    HF__TLS_OPTIONS,
    {"other_user", HF__OPTION_TEXT, NULL, 0, 0, "a second account"},
    {"other_password_file", HF__OPTION_TEXT, NULL, 0, 0, "its password"},
    {"other_password_env", HF__OPTION_TEXT, NULL, 0, 0, "its password"},
    {0},
};

static void parse(const char *text, struct hf__url *url)
{
    hf_error err;

    if (hf__url_parse(text, url, &err) != 0 || hf__url_check(url, table, &err) != 0)
        fail_msg("%s: %s", text, err.text);
}

/* "host port tls, ..." */
static const char *shown(const struct hf__servers *servers)
{
    static const char *const modes[] = {"by host", "verify", "insecure", "off"};
    static char text[400];
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < servers->count; i++) {
        const struct hf__server *s = &servers->list[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s %s", i > 0 ? ", " : "",
                                 s->host, s->port, modes[s->tls]);
    }
    return text;
}

static int read_servers(const struct hf__url *url, const struct hf__servers_form *form,
                        struct hf__servers *servers, hf_error *err)
{
    struct hf__tls_settings tls;
    int r = hf__tls_settings_read(url, HF__TLS_MODE_BY_HOST, &tls, err);

    return r != 0 ? r : hf__servers_read(url, form, &tls, servers, err);
}

static void hosts_have_ports_and_tls(void **state)
{
    static const struct {
        const char *url, *servers;
    } cases[] = {
        {"x://db.example.org", "db.example.org 1234 verify"},
        {"x://db:1", "db 1 verify"},
        {"x://localhost,127.0.0.9:5,[::1],[::1]:7",
         "localhost 1234 off, 127.0.0.9 5 off, ::1 1234 off, ::1 7 off"},
        {"x://[fe80::1]:8,b\303\266se", "fe80::1 8 verify, b\303\266se 1234 verify"},
        {"x://%2Frun%2Fa%20b,h?tls=verify", "/run/a b 1234 off, h 1234 verify"},
        {"x://db,localhost", "db 1234 verify, localhost 1234 off"},
        {"x://db,localhost?tls=off", "db 1234 off, localhost 1234 off"},
        {"x://db,localhost?tls=insecure", "db 1234 insecure, localhost 1234 insecure"},
        {"x://localhost?tls=verify", "localhost 1234 verify"},
        {"x://localhost?tls_ca=/a.pem", "localhost 1234 verify"},
        {"x://localhost?tls_cert=/a.pem", "localhost 1234 verify"},
        {"x://localhost?tls_key=/a.pem", "localhost 1234 verify"},
        {"x://localhost?tls=insecure&tls_cert=/a.pem", "localhost 1234 insecure"},
    };
    static const struct hf__servers_form form = {
        .port = "1234", .max = 4, .example = "x://h", .sockets = true};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__servers servers = {0};
        struct hf__url url;
        hf_error err = {0};
        parse(cases[i].url, &url);
        if (read_servers(&url, &form, &servers, &err) != 0)
            fail_msg("%s: %s", cases[i].url, err.text);
        hf__url_clear(&url);
        check_text(cases[i].url, shown(&servers), cases[i].servers);
        check_number(cases[i].url, hf__servers_use_tls(&servers),
                     strstr(cases[i].servers, "verify") != NULL ||
                         strstr(cases[i].servers, "insecure") != NULL);
        hf__servers_clear(&servers);
    }
}

static void a_mistake_about_servers_is_told_in_a_sentence(void **state)
{
    static const struct {
        const char *url, *message;
        struct hf__servers_form form;
    } cases[] = {
        {"x:///path",
         "name the servers as in x://h1,h2",
         {.port = "1", .max = 4, .example = "x://h1,h2"}},
        {"x://a,b", "name one server only", {.port = "1", .max = 1}},
        {"x://a,b,c,d", "name at most 3 servers", {.port = "1", .max = 3}},
        {"x://a%20b",
         "'a b' is no host: write host, host:port or [address]:port",
         {.port = "1", .max = 4}},
        {"x://a,%2Frun%2Fs",
         "'/run/s' is no host: write host, host:port or [address]:port",
         {.port = "1", .max = 4}},
        {"x://h?tls=maybe",
         "option 'tls' is 'maybe': it must be verify, insecure or off",
         {.port = "1", .max = 4}},
        {"x://h?tls=off&tls_ca=/a.pem",
         "tls=off has no use for certificates: write tls=verify",
         {.port = "1", .max = 4}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__servers servers = {0};
        struct hf__url url;
        hf_error err = {0};
        parse(cases[i].url, &url);
        check_number(cases[i].url, read_servers(&url, &cases[i].form, &servers, &err), HF_INVALID);
        check_text(cases[i].url, err.text, cases[i].message);
        hf__servers_clear(&servers);
        hf__url_clear(&url);
    }
}

static void no_server_may_be_meant(void **state)
{
    static const struct hf__servers_form form = {.port = "1", .max = 4};
    static const struct hf__servers_form own = {.port = "1", .max = 4, .host = "localhost"};
    struct hf__servers servers = {0};
    struct hf__url url;

    (void)state;
    parse("x:///path", &url);
    assert_int_equal(read_servers(&url, &form, &servers, NULL), 0);
    check_number("servers", servers.count, 0);
    assert_false(hf__servers_use_tls(&servers));
    assert_int_equal(read_servers(&url, &own, &servers, NULL), 0);
    check_text("the store's own", shown(&servers), "localhost 1 off");
    hf__servers_clear(&servers);
    hf__url_clear(&url);
}

static void servers_are_named_as_in_urls(void **state)
{
    static char host[] = "db", address[] = "::1", port[] = "1";
    static const struct hf__server named = {.host = host, .port = port},
                                   six = {.host = address, .port = port};
    char text[20];

    (void)state;
    check_number("length", hf__server_text(&named, text, sizeof text), 4);
    check_text("a name", text, "db:1");
    check_number("length", hf__server_text(&six, text, sizeof text), 7);
    check_text("an address", text, "[::1]:1");
}

static void files_are_passed_on(void **state)
{
    struct hf__tls_settings tls;
    struct hf__url url;

    (void)state;
    parse("x://h?tls_ca=/a&tls_cert=/b&tls_key=/c", &url);
    assert_int_equal(hf__tls_settings_read(&url, HF__TLS_MODE_BY_HOST, &tls, NULL), 0);
    check_number("mode", tls.mode, HF__TLS_MODE_VERIFY);
    check_text("ca", tls.ca_file, "/a");
    check_text("cert", tls.cert_file, "/b");
    check_text("key", tls.key_file, "/c");
    hf__url_clear(&url);
    parse("x://h", &url);
    assert_int_equal(hf__tls_settings_read(&url, HF__TLS_MODE_BY_HOST, &tls, NULL), 0);
    check_number("mode", tls.mode, HF__TLS_MODE_BY_HOST);
    assert_null(tls.ca_file);
    hf__url_clear(&url);
}

static void a_store_may_have_a_mode_of_its_own(void **state)
{
    static const struct {
        const char *url;
        enum hf__tls_mode preset, mode;
    } cases[] = {
        {"x://h", HF__TLS_MODE_OFF, HF__TLS_MODE_OFF},
        {"x://h?tls=verify", HF__TLS_MODE_OFF, HF__TLS_MODE_VERIFY},
        {"x://localhost", HF__TLS_MODE_VERIFY, HF__TLS_MODE_VERIFY},
        {"x://localhost?tls=off", HF__TLS_MODE_VERIFY, HF__TLS_MODE_OFF},
    };
    struct hf__tls_settings tls;
    struct hf__url url;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        parse(cases[i].url, &url);
        assert_int_equal(hf__tls_settings_read(&url, cases[i].preset, &tls, NULL), 0);
        check_number(cases[i].url, tls.mode, cases[i].mode);
        hf__url_clear(&url);
    }
    parse("x://h?tls_ca=/a", &url);
    assert_int_equal(hf__tls_settings_read(&url, HF__TLS_MODE_OFF, &tls, NULL), HF_INVALID);
    hf__url_clear(&url);
}

#define NEEDS_PASSWORD \
    "a user needs a password, and there is no password: give password_file or password_env"
#define NEEDS_USER "a password needs a user: write user@ before the hosts"

static void accounts_follow_their_rule(void **state)
{
    static const struct {
        const char *url, *user, *password;
        const char *user_needs_password, *both_or_none; /* what these rules say; NULL: nothing */
    } cases[] = {
        {"x://h", NULL, NULL, NULL, NULL},
        {"x://ann:Sesam@h", "ann", "Sesam", NULL, NULL},
        {"x://ann:@h", "ann", "", NULL, NULL},
        {"x://ann@h?password_env=SERVERS_PASSWORD", "ann", "from env", NULL, NULL},
        {"x://ann@h", "ann", NULL, NEEDS_PASSWORD, NEEDS_PASSWORD},
        {"x://:Sesam@h", NULL, "Sesam", NULL, NEEDS_USER},
    };

    (void)state;
    setenv("SERVERS_PASSWORD", "from env", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const says[] = {NULL, cases[i].user_needs_password, cases[i].both_or_none};
        struct hf__url url;
        parse(cases[i].url, &url);
        for (size_t rule = 0; rule < COUNT(says); rule++) {
            struct hf__account account = {0};
            hf_error err = {0};
            check_number(cases[i].url,
                         hf__account_read(&url, (enum hf__account_rule)rule, &account, &err),
                         says[rule] != NULL ? HF_INVALID : 0);
            check_text(cases[i].url, err.text, says[rule] != NULL ? says[rule] : "");
            check_text(cases[i].url, account.user, cases[i].user);
            check_text(cases[i].url, account.password, cases[i].password);
            hf__account_clear(&account);
            assert_null(account.password);
        }
        hf__url_clear(&url);
    }
}

static void a_second_account_is_in_options(void **state)
{
    struct hf__account account = {0};
    struct hf__url url;
    hf_error err = {0};

    (void)state;
    setenv("SERVERS_PASSWORD", "from env", 1);
    parse("x://ann:Sesam@h?other_user=bob&other_password_env=SERVERS_PASSWORD", &url);
    assert_int_equal(
        hf__account_read_options(&url, "other_", HF__ACCOUNT_BOTH_OR_NONE, &account, &err), 0);
    check_text("user", account.user, "bob");
    check_text("password", account.password, "from env");
    hf__account_clear(&account);
    hf__url_clear(&url);

    parse("x://ann:Sesam@h?other_user=bob", &url);
    assert_int_equal(
        hf__account_read_options(&url, "other_", HF__ACCOUNT_BOTH_OR_NONE, &account, &err),
        HF_INVALID);
    check_contains("no password", err.text, "give other_password_file or other_password_env");
    hf__account_clear(&account);
    hf__url_clear(&url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_have_ports_and_tls),
        cmocka_unit_test(a_mistake_about_servers_is_told_in_a_sentence),
        cmocka_unit_test(no_server_may_be_meant),
        cmocka_unit_test(servers_are_named_as_in_urls),
        cmocka_unit_test(files_are_passed_on),
        cmocka_unit_test(a_store_may_have_a_mode_of_its_own),
        cmocka_unit_test(accounts_follow_their_rule),
        cmocka_unit_test(a_second_account_is_in_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
