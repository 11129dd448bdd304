/* URLs: what is read is well-formed, what is refused is refused in one printable line, and a
 * password is shown in neither case. */
#include "base/url.h"
#include "fuzz.h"

static const struct hf__option table[] = {
    {"mode", HF__OPTION_TEXT, "wal", 0, 0, "text"},
    {"count", HF__OPTION_NUMBER, "3", -10, 10, "a number"},
    {"every", HF__OPTION_DURATION, "5s", 1000, 60000, "a duration"},
    {"push", HF__OPTION_SWITCH, "yes", 0, 0, "a switch"},
    {0},
};

/* A password that occurs just once in the text must not occur in what is shown. */
static void check_hidden(const char *text, const char *password, const char *shown)
{
    if (password == NULL || strlen(password) < 4 || strcmp(password, "***") == 0)
        return;
    const char *first = strstr(text, password);
    if (first != NULL && strstr(first + 1, password) == NULL)
        REQUIRE(strstr(shown, password) == NULL);
}

static void check_url(const char *text, struct hf__url *url)
{
    char shown[3 * HF__URL_MAX + 8];
    hf_error err;

    REQUIRE(strcmp(url->text, text) == 0 && strlen(text) <= HF__URL_MAX);
    REQUIRE(url->scheme[0] >= 'a' && url->scheme[0] <= 'z');
    REQUIRE(url->password == NULL || url->user != NULL);
    REQUIRE(url->setting_count <= HF__SETTINGS_MAX);
    for (const char *c = url->host; *c != '\0'; c++)
        REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f && *c != '@');
    hf__url_redact(text, shown, sizeof shown);
    check_hidden(text, url->password, shown);
    for (size_t i = 0; i < url->setting_count; i++) {
        if (hf__option_is_secret(url->settings[i].name))
            check_hidden(text, url->settings[i].value, shown);
    }

    if (hf__url_check(url, table, &err) != 0) {
        REQUIRE(err.code == HF_INVALID && is_printable(err.text));
        return;
    }
    int64_t count = hf__url_number(url, "count"), every = hf__url_number(url, "every");
    REQUIRE(count >= -10 && count <= 10 && every >= 1000 && every <= 60000);
    REQUIRE(hf__url_number(url, "op_timeout") >= 100);
    REQUIRE(hf__url_text(url, "mode") != NULL);
    (void)hf__url_switch(url, "push");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), shown[64];
    struct hf__url url;
    hf_error err;

    for (size_t room = 0; room <= sizeof shown; room += 7) {
        hf__url_redact(text, shown, room);
        REQUIRE(room == 0 || (strnlen(shown, room) < room && is_printable(shown)));
    }
    if (hf__url_parse(text, &url, &err) == 0) {
        check_url(text, &url);
        hf__url_clear(&url);
    } else {
        REQUIRE(err.code == HF_INVALID && is_printable(err.text));
    }
    free(text);
    return 0;
}
