/* Sequencers and tickets: whatever is read has exactly this one spelling. */
#include <strings.h>

#include "base/sequencer.h"
#include "base/ticket.h"
#include "fuzz.h"

/* A ticket has one spelling as well, but for the case of its digits. */
static void check_ticket(const char *text)
{
    struct hf__ticket ticket;
    char again[HF_TICKET_SIZE];

    if (!hf__ticket_parse(text, &ticket))
        return;
    hf__ticket_format(&ticket, again);
    REQUIRE(strlen(text) == 32 && strcasecmp(text, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), again[HF_SEQUENCER_MAX];
    struct hf__sequencer s;
    hf_error err;

    if (hf__sequencer_parse(text, &s, &err) == 0) {
        REQUIRE(s.generation != 0 && s.name_len >= 1 && s.name_len <= HF_NAME_MAX);
        REQUIRE(hf__sequencer_format(&s, again, sizeof again) == 0);
        REQUIRE(strcmp(text, again) == 0);
        REQUIRE(hf__sequencer_format(&s, again, strlen(text) + 1) == 0);
        REQUIRE(hf__sequencer_format(&s, again, strlen(text)) == HF_INVALID);
    } else {
        REQUIRE(err.code == HF_INVALID && is_printable(err.text));
    }
    check_ticket(text);
    free(text);
    return 0;
}
