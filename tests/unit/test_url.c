/* Store URLs: parts, escapes, caps, refusals. Options are in test_options.c, secrets in
 * test_redact.c. */
#include <stdlib.h>

#include "base/url.h"
#include "lib/check.h"
#include "lib/random.h"

static void parts_are_found(void **state)
{
    static const struct {
        const char *text, *scheme, *user, *password, *host, *path;
    } cases[] = {
        {"sqlite:/x", "sqlite", NULL, NULL, "", "/x"},
        {"sqlite:x", "sqlite", NULL, NULL, "", "x"},
        {"sqlite:", "sqlite", NULL, NULL, "", ""},
        {"sqlite:./a/b.db", "sqlite", NULL, NULL, "", "./a/b.db"},
        {"sqlite:///x", "sqlite", NULL, NULL, "", "/x"},
        {"sqlite:///x?", "sqlite", NULL, NULL, "", "/x"},
        {"sqlite:/a b/\xc3\xa4.db", "sqlite", NULL, NULL, "", "/a b/\xc3\xa4.db"},
        {"sqlite:/a%20b%3Fc%23d%25", "sqlite", NULL, NULL, "", "/a b?c#d%"},
        {"sqlite:/a#b+c", "sqlite", NULL, NULL, "", "/a#b+c"},
        {"sqlite:/a@b:c", "sqlite", NULL, NULL, "", "/a@b:c"},
        {"sqlite:/a%0Ab", "sqlite", NULL, NULL, "", "/a\nb"},
        {"SQLite:/X", "sqlite", NULL, NULL, "", "/X"},
        {"memory://name", "memory", NULL, NULL, "name", ""},
        {"memory://name?a=/b", "memory", NULL, NULL, "name", ""},
        {"memory://", "memory", NULL, NULL, "", ""},
        {"memory:name", "memory", NULL, NULL, "", "name"},
        {"memory://a%20b", "memory", NULL, NULL, "a b", ""},
        {"trace+sqlite:/x", "trace+sqlite", NULL, NULL, "", "/x"},
        {"fault+trace+memory://m", "fault+trace+memory", NULL, NULL, "m", ""},
        {"redis://h", "redis", NULL, NULL, "h", ""},
        {"redis://h:6379/0", "redis", NULL, NULL, "h:6379", "/0"},
        {"redis://u@h", "redis", "u", NULL, "h", ""},
        {"redis://u:p@h", "redis", "u", "p", "h", ""},
        {"redis://u:@h", "redis", "u", "", "h", ""},
        {"redis://:p@h", "redis", "", "p", "h", ""},
        {"redis://@h", "redis", "", NULL, "h", ""},
        {"redis://u:p@", "redis", "u", "p", "", ""},
        {"redis://u:p:q@h", "redis", "u", "p:q", "h", ""},
        {"redis://u%3Av:p%40q%2Fr%3F@h", "redis", "u:v", "p@q/r?", "h", ""},
        {"redis://h1:1,h2:2,h3/0", "redis", NULL, NULL, "h1:1,h2:2,h3", "/0"},
        {"redis://u:p@h1:1,[fe80::1]:2", "redis", "u", "p", "h1:1,[fe80::1]:2", ""},
        {"redis://[::1]", "redis", NULL, NULL, "[::1]", ""},
        {"redis://[::ffff:127.0.0.1]:65535/", "redis", NULL, NULL, "[::ffff:127.0.0.1]:65535", "/"},
        {"redis://127.0.0.1:1", "redis", NULL, NULL, "127.0.0.1:1", ""},
        {"redis://%2Frun%2Fredis.sock/0", "redis", NULL, NULL, "/run/redis.sock", "/0"},
        {"redis+sentinel://a,b/m?x=1", "redis+sentinel", NULL, NULL, "a,b", "/m"},
        {"h2.x-y+z:q", "h2.x-y+z", NULL, NULL, "", "q"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__url url;
        hf_error err;
        if (hf__url_parse(cases[i].text, &url, &err) != 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        check_text(cases[i].text, url.text, cases[i].text);
        check_text(cases[i].text, url.scheme, cases[i].scheme);
        check_text(cases[i].text, url.user, cases[i].user);
        check_text(cases[i].text, url.password, cases[i].password);
        check_text(cases[i].text, url.host, cases[i].host);
        check_text(cases[i].text, url.path, cases[i].path);
        hf__url_clear(&url);
        assert_null(url.text);
    }
}

static void settings_are_kept_in_order(void **state)
{
    struct hf__url url;

    (void)state;
    assert_int_equal(hf__url_parse("x:/p?a=1&b%3D=%26&a=&c==d?e&f=/:@", &url, NULL), 0);
    static const char *const wanted[][2] = {
        {"a", "1"}, {"b=", "&"}, {"a", ""}, {"c", "=d?e"}, {"f", "/:@"},
    };
    assert_int_equal(url.setting_count, COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++) {
        check_text("name", url.settings[i].name, wanted[i][0]);
        check_text("value", url.settings[i].value, wanted[i][1]);
    }
    hf__url_clear(&url);
}

static void what_is_wrong_is_told_in_a_sentence(void **state)
{
    static const struct {
        const char *text, *hint;
    } cases[] = {
        {NULL, "a URL is needed"},
        {"", "begin with a scheme"},
        {"x", "begin with a scheme"},
        {"/var/lib/locks.db", "sqlite:/path"},
        {"./locks.db", "sqlite:/path"},
        {":x", "begin with a scheme"},
        {"1x:y", "begin with a scheme"},
        {"a b:c", "begin with a scheme"},
        {"a_b:c", "begin with a scheme"},
        {" sqlite:/x", "begin with a scheme"},
        {"sqlite:/a\nb", "control byte"},
        {"sqlite:/a\x7f", "control byte"},
        {"sqlite:/a\tb", "control byte"},
        {"sqlite:/a%00b", "%00"},
        {"memory://a%00", "%00"},
        {"redis://u:p@q@h", "%40"},
        {"redlock://u:p@h1,u:p@h2", "once, before the first host"},
        {"redis://u%00:p@h", "%00"},
        {"redis://u:%00@h", "%00"},
        {"x:/?a%00=1", "%00"},
        {"x:/?a=%00", "%00"},
        {"sqlite:/a%", "two hex digits"},
        {"sqlite:/a%4", "two hex digits"},
        {"sqlite:/a%4?x=1", "two hex digits"},
        {"sqlite:/a%zz", "two hex digits"},
        {"sqlite:/a%+1", "two hex digits"},
        {"memory://a%g0", "two hex digits"},
        {"redis://h:", "1 to 65535"},
        {"redis://h:0", "1 to 65535"},
        {"redis://h:65536", "1 to 65535"},
        {"redis://h:123456", "1 to 65535"},
        {"redis://h:+1", "1 to 65535"},
        {"redis://h:1a", "1 to 65535"},
        {"redis://h:1:2", "1 to 65535"},
        {"redis://fe80::1", "[ ]"},
        {"redis://:6379", "host is missing"},
        {"redis://a,,b", "host is missing"},
        {"redis://,a", "host is missing"},
        {"redis://a,", "host is missing"},
        {"redis://,", "host is missing"},
        {"redis://[::1", "[::1]"},
        {"redis://[]", "[::1]"},
        {"redis://[x]", "[::1]"},
        {"redis://::1]", "host is missing"},
        {"redis://a]b", "[::1]"},
        {"redis://a[b", "[::1]"},
        {"redis://[::1]x", ":port"},
        {"redis://[::1]:", "1 to 65535"},
        {"redis://a%2Cb", "may not stand for"},
        {"redis://a%3Ab", "may not stand for"},
        {"redis://a%40b", "may not stand for"},
        {"redis://%5B::1%5D", "may not stand for"},
        {"redis://a%0Ab", "may not stand for"},
        {"redis://a%7f", "may not stand for"},
        {"x:/?a", "name=value"},
        {"x:/?=1", "name=value"},
        {"x:/?&", "name=value"},
        {"x:/?a=1&", "name=value"},
        {"x:/?a=1&&b=2", "name=value"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *what = cases[i].text != NULL ? cases[i].text : "(null)";
        struct hf__url url = {.setting_count = 77};
        hf_error err = {0};
        check_number(what, hf__url_parse(cases[i].text, &url, &err), HF_INVALID);
        check_number(what, err.code, HF_INVALID);
        check_contains(what, err.text, cases[i].hint);
        check_lacks(what, err.text, "\n");
        check_number("a refused URL leaves the result alone", (int64_t)url.setting_count, 77);
        check_number(what, hf__url_parse(cases[i].text, &url, NULL), HF_INVALID);
    }
}

static void a_url_is_at_most_4096_bytes(void **state)
{
    struct hf__url url;
    hf_error err;
    char text[HF__URL_MAX + 2];

    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "x:/", 3);
    text[HF__URL_MAX] = '\0';
    assert_int_equal(hf__url_parse(text, &url, &err), 0);
    assert_int_equal(strlen(url.path), HF__URL_MAX - 2);
    hf__url_clear(&url);
    text[HF__URL_MAX] = 'a';
    text[HF__URL_MAX + 1] = '\0';
    assert_int_equal(hf__url_parse(text, &url, &err), HF_INVALID);
    check_contains("too long", err.text, "4096");
}

static void a_url_has_at_most_64_options(void **state)
{
    char text[HF__URL_MAX] = "x:/?a=";
    struct hf__url url;
    hf_error err;
    size_t len = strlen(text);

    (void)state;
    for (int i = 1; i < HF__SETTINGS_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "&a%d=%d", i, i);
    assert_int_equal(hf__url_parse(text, &url, &err), 0);
    assert_int_equal(url.setting_count, HF__SETTINGS_MAX);
    assert_string_equal(url.settings[HF__SETTINGS_MAX - 1].value, "63");
    hf__url_clear(&url);
    snprintf(text + len, sizeof text - len, "&b=");
    assert_int_equal(hf__url_parse(text, &url, &err), HF_INVALID);
    check_contains("too many", err.text, "too many options");
}

/* Every byte but NUL can be put into a password, a path and a value. */
static void escaped_bytes_come_back(void **state)
{
    struct random r = {3};

    (void)state;
    for (int round = 0; round < 2000; round++) {
        char bytes[41], escaped[3 * 40 + 1], text[512];
        size_t len = random_below(&r, sizeof bytes);
        for (size_t i = 0; i < len; i++) {
            bytes[i] = (char)(1 + random_below(&r, 255));
            snprintf(escaped + 3 * i, 4, i % 2 ? "%%%02x" : "%%%02X", (unsigned char)bytes[i]);
        }
        bytes[len] = escaped[3 * len] = '\0';
        snprintf(text, sizeof text, "x://%s:%s@h/%s?o=%s", escaped, escaped, escaped, escaped);

        struct hf__url url;
        hf_error err;
        if (hf__url_parse(text, &url, &err) != 0)
            fail_msg("%s: %s", text, err.text);
        check_text("user", url.user, bytes);
        check_text("password", url.password, bytes);
        check_text("path", url.path + 1, bytes);
        check_text("value", url.settings[0].value, bytes);
        hf__url_clear(&url);
    }
}

static void clearing_twice_is_fine(void **state)
{
    struct hf__url url;

    (void)state;
    assert_int_equal(hf__url_parse("x://u:p@h/p?a=b", &url, NULL), 0);
    hf__url_clear(&url);
    hf__url_clear(&url);
    assert_null(url.settings);
}

/* Whoever is taken for loopback is spoken to without TLS. */
static void only_this_machine_is_loopback(void **state)
{
    static const char *const here[] = {"localhost", "localhost:1",    "LocalHost",
                                       "127.0.0.1", "127.0.0.1:2379", "127.255.0.9",
                                       "::1",       "[::1]",          "[::1]:1"};
    static const char *const elsewhere[] = {"",
                                            "h",
                                            "127.example.org",
                                            "127.0.0.1.example.org",
                                            "127.0.0.1.example.org:1",
                                            "localhost.example.org",
                                            "128.0.0.1",
                                            "::2",
                                            "[::2]:1",
                                            "127.1.2",
                                            "127."};

    (void)state;
    for (size_t i = 0; i < COUNT(here); i++)
        check_number(here[i], hf__url_is_loopback(here[i]), true);
    for (size_t i = 0; i < COUNT(elsewhere); i++)
        check_number(elsewhere[i], hf__url_is_loopback(elsewhere[i]), false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_found),
        cmocka_unit_test(settings_are_kept_in_order),
        cmocka_unit_test(what_is_wrong_is_told_in_a_sentence),
        cmocka_unit_test(a_url_is_at_most_4096_bytes),
        cmocka_unit_test(a_url_has_at_most_64_options),
        cmocka_unit_test(escaped_bytes_come_back),
        cmocka_unit_test(clearing_twice_is_fine),
        cmocka_unit_test(only_this_machine_is_loopback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
