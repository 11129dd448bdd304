/* The value of a lock (C15): one script reads or writes it, in one step with the look at who asks.
 *
 *      EVALSHA <sha1> 2 <key> <book> <ticket> <generation> <retain>                     a read
 *      EVALSHA <sha1> 2 <key> <book> <ticket> <generation> <retain> <order> <bytes>     a write
 *
 * Its key has no time to live: what was acknowledged stays until it is empty and purged. */
#include <stdlib.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

int hf__redis_value(struct hf__redis *s, const struct hf__operation *op, int64_t deadline_ns,
                    struct hf__answer *ret_answer, hf_error *err)
{
    bool writes = op->kind == HF__OPERATION_WRITE;
    struct hf__redis_conn *c = NULL;
    struct hf__redis_names names;
    redisReply *reply = NULL;
    int r = hf__redis_name(s, op->bid->name, op->bid->name_len, &names, err);

    if (r == 0)
        r = hf__redis_take(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    hf__redis_script(c, HF__REDIS_SCRIPT_VALUE, 2, writes ? 5 : 3);
    hf__redis_add_names(c, &names);
    hf__redis_add_ticket(c, &op->bid->ticket);
    hf__redis_add_number(c, op->generation);
    hf__redis_add_settings(s, c, &names);
    if (writes) {
        hf__redis_add_number(c, op->value->order);
        hf__redis_add(c, op->value->bytes, op->value->len);
    }
    r = hf__redis_run(c, HF__REDIS_SCRIPT_VALUE, deadline_ns, &reply, err);
    hf__redis_give(s, c);
    bool sound = r == 0 && (writes || hf__redis_read_value(reply, op->value));
    if (r == 0 && !sound)
        r = hf__fail(err, HF_CORRUPT, "the value cannot be read: somebody else wrote it");
    if (r == 0)
        r = hf__redis_answer(HF__REDIS_SCRIPT_VALUE, NULL, writes ? reply : reply->element[0],
                             ret_answer, NULL, err);
    freeReplyObject(reply);
    return r;
}
