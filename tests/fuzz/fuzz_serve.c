/* What a stranger sends to the server: the target of a request, its headers, and the body. Nothing of it is read that is
 * not there, nobody gets a role without a token, and no host but ours is ours. */
#include "fuzz.h"
#include "serve/access.h"
#include "serve/fields.h"
#include "serve/target.h"

static void read_target(const char *text)
{
    struct target target = {0};
    int64_t number;

    if (!target_parse(text, &target)) {
        REQUIRE(target.text == NULL);
        return;
    }
    REQUIRE(target.part_count >= 1 && target.part_count <= TARGET_PARTS);
    REQUIRE(target.argument_count <= TARGET_ARGUMENTS);
    for (size_t i = 0; i < target.part_count; i++)
        REQUIRE(target.parts[i].at[target.parts[i].len] == '\0' &&
                target.parts[i].len < strlen(text));
    for (size_t i = 0; i < target.argument_count; i++) {
        const struct bytes *value = &target.arguments[i].value;
        REQUIRE(value->at[value->len] == '\0');
        if (bytes_number(value, 1000, &number))
            REQUIRE(number >= 0 && number <= 1000);
    }
    target_argument(&target, "limit");
    target_clear(&target);
}

static void read_headers(const char *text)
{
    static const char token[] = "0123456789abcdef";
    struct access access = {.has_tokens = true, .token_count = 1, .tokens[0] = {.role = ROLE_LOCK}};

    memcpy(access.tokens[0].text, token, sizeof token);
    if (access_role(&access, text) != ROLE_NONE)
        REQUIRE(strlen(text) == strlen("Bearer ") + strlen(token) && strstr(text, token) != NULL);
    if (access_is_our_host(&access, text))
        REQUIRE(strcasestr(text, "localhost") == text || strstr(text, "127.0.0.1") == text ||
                strstr(text, "[::1]") == text);
    REQUIRE(!access_is_our_origin("localhost:8117", "http://evil.example", text));
    if (access_is_our_origin("localhost:8117", text, NULL))
        REQUIRE(strlen(text) > strlen("://localhost:8117") - 1);
}

static void read_body(const char *text, size_t len)
{
    char *note = NULL;
    int64_t span = 7, number = 7;
    int mode = 7;
    bool now = false;
    const struct field fields[] = {
        {"note", FIELD_TEXT, &note, 0, 0, NULL, false},
        {"ttl_ms", FIELD_SPAN, &span, 100, 1000, NULL, true},
        {"limit", FIELD_NUMBER, &number, 1, 5, NULL, false},
        {"mode", FIELD_CHOICE, &mode, 0, 0, "exclusive|shared", false},
        {"now", FIELD_FLAG, &now, 0, 0, NULL, false},
        {0},
    };
    hf_error err = {0};
    int code = fields_read(text, len, fields, &err);

    if (code == HF_OK)
        REQUIRE((span == -1 || (span >= 100 && span <= 1000)) &&
                (number == 7 || (number >= 1 && number <= 5)) && (mode == 7 || mode <= 1));
    else
        REQUIRE(err.code == code && err.text[0] != '\0' && is_printable(err.text));
    free(note);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    read_target(text);
    read_headers(text);
    read_body(text, size);
    free(text);
    return 0;
}
