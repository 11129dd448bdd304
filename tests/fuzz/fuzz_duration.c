/* Durations: what is read is in range and is written so that it reads the same. */
#include "base/duration.h"
#include "fuzz.h"

static void check_round_trip(int64_t ms)
{
    char text[24];
    int64_t back = -1;

    hf__format_duration(ms, text, sizeof text);
    REQUIRE(is_printable(text));
    if (ms >= 0 && ms <= HF__DURATION_MAX_MS)
        REQUIRE(hf__parse_duration(text, &back) && back == ms);
    else
        REQUIRE(!hf__parse_duration(text, &back));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    int64_t ms = -1;

    if (hf__parse_duration(text, &ms)) {
        REQUIRE(ms >= 0 && ms <= HF__DURATION_MAX_MS);
        check_round_trip(ms);
    } else {
        REQUIRE(ms == -1);
    }
    if (size >= sizeof ms) {
        memcpy(&ms, data, sizeof ms);
        check_round_trip(ms);
    }
    free(text);
    return 0;
}
