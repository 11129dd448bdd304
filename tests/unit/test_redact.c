/* URLs in messages: what must be shown is shown, what is secret never, not even of a malformed
 * URL. */
#include "base/url.h"
#include "lib/check.h"
#include "lib/random.h"

static void secrets_are_hidden_and_the_rest_is_shown(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"", ""},
        {"sqlite:/x", "sqlite:/x"},
        {"sqlite:/a@b", "sqlite:/a@b"},
        {"memory://name?op_timeout=5s", "memory://name?op_timeout=5s"},
        {"redis://h:6379/0", "redis://h:6379/0"},
        {"redis://u@h:6379/0", "redis://u@h:6379/0"},
        {"redis://u:p@h:6379/0?a=b", "redis://u:***@h:6379/0?a=b"},
        {"redis://u:@h", "redis://u:***@h"},
        {"redis://:p@h", "redis://:***@h"},
        {"redis://u:p@[::1]:1,[::2]:2", "redis://u:***@[::1]:1,[::2]:2"},
        {"redis://u@[::1]:1", "redis://u@[::1]:1"},
        {"x:/?password=p", "x:/?password=***"},
        {"x:/?password=", "x:/?password="},
        {"x:/?mode=pass&b=c", "x:/?mode=pass&b=c"},
        {"x:/?a=b&db_PassWord=p", "x:/?a=b&db_PassWord=***"},
        {"x:/?p%61ssword=p", "x:/?p%61ssword=***"},
        {"x:/?client_secret=p", "x:/?client_secret=***"},
        {"x:/?auth_token=p", "x:/?auth_token=***"},
        {"x:/?sslpassphrase=p", "x:/?sslpassphrase=***"},
        {"oracle://u@/?connect=UID=a;PWD=p", "oracle://u@/?connect=UID=a;PWD=***"},
        {"oracle://u@/?connect=UID=a%3Bpwd=p", "oracle://u@/?connect=UID=a%3Bpwd=***"},
        {"oracle:/?connect=DRIVER={A quite long name of a driver that nobody "
         "has};DBQ=//host:1521/service;A=b",
         "oracle:/"
         "?connect=DRIVER={A%20quite%20long%20name%20of%20a%20driver%20that%20nobody%20has};DBQ=//"
         "host:1521/service;A=b"},
        {"x:/?password_file=/run/p&sentinel_password_env=P&passfile=/q",
         "x:/?password_file=/run/p&sentinel_password_env=P&passfile=/q"},
        {"x:/?password_file=/run/p&password=p", "x:/?password_file=/run/p&password=***"},
        {"x:/***", "x:/***"},
        {"x:/a b\n", "x:/a%20b%0A"},
        {"x:/\xc3\xa4\x7f", "x:/%C3%A4%7F"},
        {"x:/a%20b", "x:/a%20b"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char shown[200];
        hf__url_redact(cases[i].text, shown, sizeof shown);
        check_text(cases[i].text, shown, cases[i].shown);
    }
}

/* The secret is always "Sesam", perhaps with something that should have been escaped in it. */
static void malformed_urls_hide_theirs_too(void **state)
{
    static const char *const cases[] = {
        "redis://u:Sesam@h",
        "redis://u:Sesam/Sesam@h/db",
        "redis://u:Sesam?Sesam@h/db",
        "redis://u:Sesam@Sesam@h/db",
        "redis://u:Sesam@Sesam/Sesam@h/db",
        "redis://u:Sesam:Sesam@h",
        "redis://u:Sesam#Sesam@h",
        "redis://u:Sesam%zz@h",
        "redis://u:Sesam\n@h",
        "redis://u:Sesam?token=Sesam@h",
        "redis://u:1?password=Sesam&Sesam@h",
        "redis:/u:Sesam@h",
        "redis:u:Sesam@h",
        "redis:////u:Sesam@h",
        "u:Sesam@h/db",
        "u:Sesam:Sesam@h/db",
        "//u:Sesam@h",
        " redis://u:Sesam@h",
        "://u:Sesam@h",
        ":Sesam@h",
        "x:/?password=Sesam&Sesam=Sesam",
        "x:/?password=Sesam?Sesam",
        "x:/?password=Sesam@Sesam:Sesam",
        "x://u:p@h/?password=Sesam@Sesam:Sesam",
        "x://h:1/?password=Sesam@Sesam",
        "x:/?a&password=Sesam",
        "x:/?a;password=Sesam",
        "x:/?password=Sesam&:a=b@c",
        "x:/?a=b;password=Sesam",
        "x:/?a=b?password=Sesam",
        "x:/?secret:?b=Sesam",
        "x:/?%50%41%53%53=Sesam",
        "x:/?secret==Sesam",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__url url;
        hf_error err;
        char shown[200];
        hf__url_redact(cases[i], shown, sizeof shown);
        check_lacks(cases[i], shown, "Sesam");
        if (hf__url_parse(cases[i], &url, &err) != 0)
            check_lacks(cases[i], err.text, "Sesam");
        else
            hf__url_clear(&url);
    }
}

static void a_url_that_parses_never_shows_its_password(void **state)
{
    static const char letters[] = "abcz019:/?@&=%#[].,+";
    struct random r = {4};
    size_t parsed = 0;

    (void)state;
    for (int round = 0; round < 100000; round++) {
        char text[64] = "x://u:Sesam";
        size_t len = strlen(text), more = random_below(&r, 24);
        for (size_t i = 0; i < more; i++)
            text[len + i] = letters[random_below(&r, sizeof letters - 1)];
        text[len + more] = '\0';

        struct hf__url url;
        char shown[200];
        if (hf__url_parse(text, &url, NULL) != 0)
            continue;
        hf__url_redact(text, shown, sizeof shown);
        if (url.password != NULL && strstr(url.password, "Sesam") != NULL) {
            check_lacks(text, shown, "Sesam");
            parsed++;
        }
        hf__url_clear(&url);
    }
    assert_true(parsed > 1000);
}

static void long_urls_are_cut_to_any_size(void **state)
{
    char whole[] = "redis://user:password@host:6379/0?op_timeout=5s\n\n";

    (void)state;
    for (size_t size = 0; size < 80; size++) {
        char shown[81];
        memset(shown, '#', sizeof shown);
        hf__url_redact(whole, shown, size);
        assert_int_equal(shown[size], '#');
        if (size == 0)
            continue;
        size_t len = strnlen(shown, size);
        assert_true(len < size);
        check_lacks("cut", shown, "password");
        if (size >= sizeof "..." && size < 50)
            check_text("the end", shown + len - 3, "...");
    }
}

static void it_says_whether_it_hid_something(void **state)
{
    char shown[80];

    (void)state;
    assert_true(hf__url_redact("redis://u:p@h", shown, sizeof shown));
    assert_true(hf__url_redact("redis://u:***@h", shown, sizeof shown));
    assert_true(hf__url_redact("x:/?password=p", shown, sizeof shown));
    assert_false(hf__url_redact("redis://u@h/a b", shown, sizeof shown));
    assert_false(hf__url_redact("redis://u@h?password_file=/p", shown, sizeof shown));
    assert_false(hf__url_redact("sqlite:/***", shown, sizeof shown));
}

static void secret_options_are_known_by_name(void **state)
{
    char longest[80];

    (void)state;
    assert_true(hf__option_is_secret("password"));
    assert_true(hf__option_is_secret("PASSWD"));
    assert_true(hf__option_is_secret("my_secret_x"));
    assert_false(hf__option_is_secret("op_timeout"));
    assert_false(hf__option_is_secret(""));
    assert_false(hf__option_is_secret("password_file"));
    assert_false(hf__option_is_secret("sentinel_password_env"));
    assert_false(hf__option_is_secret("PassFile"));
    assert_true(hf__option_is_secret("password_file_password"));
    memset(longest, 'a', sizeof longest);
    longest[64] = '\0';
    assert_false(hf__option_is_secret(longest));
    longest[64] = 'a';
    longest[65] = '\0';
    assert_true(hf__option_is_secret(longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_hidden_and_the_rest_is_shown),
        cmocka_unit_test(malformed_urls_hide_theirs_too),
        cmocka_unit_test(a_url_that_parses_never_shows_its_password),
        cmocka_unit_test(long_urls_are_cut_to_any_size),
        cmocka_unit_test(it_says_whether_it_hid_something),
        cmocka_unit_test(secret_options_are_known_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
