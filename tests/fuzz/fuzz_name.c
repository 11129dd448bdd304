/* Names, which are any bytes: each form in which they leave the library is printable and can be
 * read back. */
#include "core/error.h"
#include "core/sequencer.h"
#include "fuzz.h"

static void check_printable(const char *name, size_t len)
{
    char *whole = malloc(3 * len + 4), shown[40];

    REQUIRE(whole != NULL);
    hf__printable(name, len, whole, 3 * len + 4);
    REQUIRE(is_printable(whole) && strchr(whole, ' ') == NULL);
    for (size_t room = 4; room <= sizeof shown; room++) {
        hf__printable(name, len, shown, room);
        REQUIRE(strnlen(shown, room) < room);
        if (strcmp(shown, whole) == 0)
            continue;
        size_t kept = strlen(shown) - 3;
        REQUIRE(strcmp(shown + kept, "...") == 0 && memcmp(shown, whole, kept) == 0);
    }
    free(whole);
}

static void check_sequencer(const char *name, size_t len)
{
    struct hf__sequencer s = {.mode = HF_SHARED, .generation = len, .name_len = len}, back;
    char text[HF_SEQUENCER_MAX];

    if (len > HF_NAME_MAX || len == 0)
        return;
    memcpy(s.name, name, len);
    REQUIRE(hf__sequencer_format(&s, text, sizeof text) == 0);
    REQUIRE(is_printable(text) && strchr(text, ' ') == NULL);
    REQUIRE(hf__sequencer_parse(text, &back, NULL) == 0);
    REQUIRE(back.name_len == len && memcmp(back.name, name, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_printable((const char *)data, size);
    check_sequencer((const char *)data, size);
    return 0;
}
