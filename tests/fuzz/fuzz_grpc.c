/* What a server sends over HTTP/2, into a session with two calls under way: whatever comes, both end
 * or go on, nothing is said twice, and what the session has to say fits. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "grpc/session.h"

static struct hf__grpc_call *begin(struct hf__grpc_session *s, bool open)
{
    struct hf__buffer body = {0};
    struct hf__grpc_request request = {
        .path = "/p.S/M", .body = &body, .token = open ? "t" : NULL, .timeout_ms = 9, .open = open};

    hf__grpc_end_message(&body, hf__grpc_begin_message(&body));
    return hf__grpc_session_call(s, &request);
}

/* In pieces of all sizes up to 40, as a network would. */
static bool feed(struct hf__grpc_session *s, const uint8_t *data, size_t size,
                 struct hf__buffer *out)
{
    bool well = true;

    for (size_t at = 0, n = 1; well && at < size; at += n, n = n % 40 + 1) {
        well = hf__grpc_session_feed(s, data + at, n < size - at ? n : size - at) &&
               hf__grpc_session_pull(s, out);
    }
    return well;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf__grpc_session s;
    struct hf__buffer out = {.cap = 64 << 20};
    struct hf__slice message;

    REQUIRE(hf__grpc_session_init(&s, "h:1", false));
    struct hf__grpc_call *one = begin(&s, false), *open = begin(&s, true), *left = begin(&s, false);
    REQUIRE(one != NULL && open != NULL && left != NULL);
    REQUIRE(hf__grpc_session_pull(&s, &out));
    hf__grpc_session_release(left, true);
    REQUIRE(s.waited_for == 2);
    bool well = feed(&s, data, size, &out);
    struct hf__slice rest = {open->in.data, open->in.len};
    while (hf__grpc_take(&rest, &message) == 1)
        ;
    rest = (struct hf__slice){one->in.data, one->in.len};
    hf__grpc_take(&rest, &message);
    REQUIRE(memchr(one->message, '\0', sizeof one->message) != NULL);
    REQUIRE(hf__grpc_session_say(open, "more", 4));
    if (well)
        hf__grpc_session_pull(&s, &out);
    if (!well)
        hf__grpc_session_abort(&s);
    hf__grpc_session_release(one, false);
    hf__grpc_session_release(open, false);
    hf__grpc_session_abort(&s);
    REQUIRE(s.calls == NULL && s.waited_for == 0);
    hf__grpc_session_clear(&s);
    hf__buffer_clear(&out);
    return 0;
}
