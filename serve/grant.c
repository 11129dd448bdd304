/* See grant.h. */
#include "grant.h"

#include "base/banned.h"

void grant_json(struct cli_json *json, const hf_lock *lock, int64_t ttl_ms)
{
    char sequencer[HF_SEQUENCER_MAX];
    uint64_t generation = 0;
    size_t len;
    const char *name = hf_lock_name(lock, &len);
    int64_t remaining_ms = hf_lock_remaining_ms(lock);

    hf_lock_generation(lock, &generation);
    cli_json_bytes(json, "name", name, len);
    cli_json_text(json, "ticket", hf_lock_ticket(lock));
    cli_json_generation(json, "generation", generation);
    cli_json_text(json, "sequencer",
                  hf_lock_sequencer(lock, sequencer, sizeof sequencer) == HF_OK ? sequencer : NULL);
    cli_json_span(json, "ttl_ms", ttl_ms);
    cli_json_span(json, "remaining_ms", remaining_ms == INT64_MAX ? HF_NEVER : remaining_ms);
}

void grant_reply(struct reply *reply, const hf_lock *lock, int64_t ttl_ms)
{
    struct reply_writer writer;

    if (!reply_begin(reply, 200, &writer))
        return;
    cli_json_open(&writer.json, NULL, '{');
    grant_json(&writer.json, lock, ttl_ms);
    cli_json_close(&writer.json, '}');
    reply_end(&writer);
}
