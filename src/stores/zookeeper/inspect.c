/* Looking: the children of a lock in their order, and what each says about itself.
 *
 * A sync goes first, so that the answer is not older than the question. What only the holder's
 * client knows (how long its lease still runs) is told for the bids of this client; of others the
 * span that their session may last is told. The age counts from the node's creation by the server's
 * clock, and is compared with the clock of this machine: it is for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "doorman/doorman.h"
#include "stores/search.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

struct view {
    struct hf__zk *zk;
    struct hf__zk_session *s;
    const struct hf__search *search;
    int64_t deadline_ns;
    struct hf__zk_call *requests;
};

struct name {
    char bytes[HF_NAME_MAX];
    size_t len;
};

struct seen {
    struct hf__zk_child child;
    struct hf__zk_call *node;
    bool waits;
};

static int by_name(const void *a, const void *b)
{
    const struct name *x = a, *y = b;

    return hf__bytes_order(x->bytes, x->len, y->bytes, y->len);
}

/* Holders first, then by their place. */
static int by_place(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    if (x->waits != y->waits)
        return x->waits ? 1 : -1;
    if (x->child.sequence == y->child.sequence)
        return 0;
    return hf__zk_before(x->child.sequence, y->child.sequence) ? -1 : 1;
}

/* As the node tells it. The generation of one that has moved is in its data: its czxid is that of
 * the move. */
static void describe(const struct view *v, const struct seen *seen, const struct hf__zk_details *d,
                     struct hf__entry *e)
{
    const struct hf_env *env = v->zk->base.host->env;
    const struct Stat *stat = &seen->node->stat;
    int64_t wall_ms = (int64_t)(env->wall_us(env->ctx) / 1000);
    bool foreign = d->ttl_ms < 0;
    int64_t ttl_ms = foreign ? HF__NEVER : d->ttl_ms;
    bool never = d->ttl_ms == HF__NEVER || (foreign && stat->ephemeralOwner == 0);
    char uuid[37];

    *e = (struct hf__entry){.ticket = d->ticket,
                            .place = seen->waits ? HF__PLACE_WAITING : HF__PLACE_INSIDE,
                            .mode = seen->child.mode,
                            .ttl_ms = ttl_ms,
                            .lock_delay_ms = d->lock_delay_ms,
                            .since_ms = wall_ms > stat->ctime ? wall_ms - stat->ctime : 0,
                            .until_ms =
                                never && !seen->waits ? HF__NEVER : hf__own_lease_ms(ttl_ms)};
    if (!d->has_ticket)
        hf__zk_ticket_of(seen->child.name, &e->ticket);
    if (seen->waits)
        return;
    e->generation = d->generation != 0 ? d->generation : (uint64_t)stat->czxid;
    e->claimed = !d->waits && (d->ttl_ms != HF__NEVER || stat->ephemeralOwner == 0);
    if (ttl_ms != HF__NEVER)
        e->until_ms = ttl_ms;
    hf__zk_uuid(&e->ticket, uuid);
    for (int i = 0; i < v->requests->name_count;
         i++) { /* it is broken, or its client says it is lost */
        if (strncmp(v->requests->names[i], uuid, 36) == 0)
            e->place = HF__PLACE_LINGERING;
    }
}

/* What this client knows better of its own bids than their nodes do. */
static void correct_own(const struct view *v, struct hf__entry *e)
{
    int64_t now_ns = hf__now_ns(v->zk->base.host->env);

    pthread_mutex_lock(&v->zk->mutex);
    struct hf__zk_bidding *b = hf__zk_lookup(v->zk, &e->ticket);
    if (b != NULL && b->state != HF__ZK_STATE_RETIRED) {
        if (b->until_ns == INT64_MAX)
            e->until_ms = HF__NEVER;
        else
            e->until_ms = b->until_ns > now_ns ? (b->until_ns - now_ns) / HF__NS_PER_MS : 0;
        if (e->place == HF__PLACE_INSIDE && b->state == HF__ZK_STATE_LINGERING)
            e->place = HF__PLACE_LINGERING;
        if (e->place == HF__PLACE_INSIDE)
            e->claimed = b->claimed;
    }
    pthread_mutex_unlock(&v->zk->mutex);
}

static int show(const struct view *v, const struct name *name, const struct seen *seen)
{
    struct hf__zk_details d;
    struct hf__entry e;

    hf__zk_parse(seen->node->text, seen->node->text_len, &d);
    describe(v, seen, &d, &e);
    correct_own(v, &e);
    if (!hf__search_is_old_enough(v->search, &e))
        return 0;
    struct hf__who who = {
        .host = d.host, .user = d.user, .program = d.program, .note = d.note, .pid = d.pid};
    const char *blind = d.ttl_ms < 0 ? hf__zk_blind(v->zk->layout, seen->child.name) : NULL;
    if (blind != NULL)
        who.note = blind;
    e.who = &who;
    return v->search->found(v->search->ctx, name->bytes, name->len, &e);
}

/* All nodes of one lock are asked for at once. */
static void read_nodes(const struct view *v, const char *directory, struct seen *seen, size_t count)
{
    char path[HF__ZK_PATH_MAX + 256];
    int *sent = calloc(count + 1, sizeof *sent);

    for (size_t i = 0; sent != NULL && i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, seen[i].child.name);
        sent[i] = ZSYSTEMERROR;
        if (seen[i].node == NULL)
            continue;
        hf__zk_call_ref(seen[i].node);
        sent[i] = zoo_aget(v->s->zh, path, 0, hf__zk_on_data, seen[i].node);
    }
    for (size_t i = 0; sent != NULL && i < count; i++) {
        if (seen[i].node != NULL)
            seen[i].node->rc = hf__zk_wait(v->zk, seen[i].node, sent[i], v->deadline_ns);
    }
    free(sent);
}

/* Who waits: the last writer before each is found once, not for each pair. */
static void sort_out(const struct hf__zk_call *list, struct seen *seen, size_t count)
{
    bool simple = false, writer_seen = false;

    for (size_t i = 0; i < count; i++)
        simple |= seen[i].child.simple;
    qsort(seen, count, sizeof *seen, by_place);
    for (size_t i = 0; i < count; i++) {
        const struct hf__zk_child *c = &seen[i].child;
        seen[i].waits = !c->simple && (simple || writer_seen || (i > 0 && c->mode == HF_EXCLUSIVE));
        for (int k = 0; c->simple && k < list->name_count; k++) {
            struct hf__zk_child other = hf__zk_child(list->names[k]);
            seen[i].waits |= strcmp(other.name, c->name) != 0 && hf__zk_blocks(&other, c);
        }
        writer_seen |= c->sequential && c->mode == HF_EXCLUSIVE;
    }
    qsort(seen, count, sizeof *seen, by_place);
}

static int show_list(const struct view *v, const struct name *name, const char *directory,
                     const struct hf__zk_call *list)
{
    struct seen *seen = calloc((size_t)list->name_count + 1, sizeof *seen);
    size_t count = 0;
    int r = 0;

    if (seen == NULL)
        return HF_NO_MEMORY;
    for (int i = 0; i < list->name_count; i++) {
        struct hf__zk_child c = hf__zk_child(list->names[i]);
        if (c.simple || c.sequential)
            seen[count++] = (struct seen){.child = c, .node = hf__zk_call_new()};
    }
    sort_out(list, seen, count);
    read_nodes(v, directory, seen, count);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (seen[i].node == NULL)
            r = HF_NO_MEMORY;
        else if (seen[i].node->rc == ZOK)
            r = show(v, name, &seen[i]);
    }
    for (size_t i = 0; i < count; i++)
        hf__zk_call_free(seen[i].node);
    free(seen);
    return r;
}

/* A lock whose directory has gone meanwhile is free: it is passed over. */
static int show_lock(const struct view *v, const struct name *name, bool sync, hf_error *err)
{
    char directory[HF__ZK_PATH_MAX];
    struct hf__zk_call *list = hf__zk_call_new();
    int r = 0;

    if (list == NULL ||
        !hf__zk_directory(v->zk, name->bytes, name->len, directory, sizeof directory)) {
        hf__zk_call_free(list);
        return hf__fail(err, list == NULL ? HF_NO_MEMORY : HF_INVALID, NULL);
    }
    int rc = hf__zk_children(v->s, directory, sync, v->deadline_ns, list);
    if (rc == ZOK)
        r = show_list(v, name, directory, list);
    else if (rc != ZNONODE)
        r = hf__zk_fail(err, rc, "children");
    hf__zk_call_free(list);
    return r;
}

static int show_all(const struct view *v, hf_error *err)
{
    struct hf__zk_call *list = hf__zk_call_new();
    size_t count = 0;
    int r = 0;

    if (list == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int rc = hf__zk_children(v->s, v->zk->prefix[0] != '\0' ? v->zk->prefix : "/", true,
                             v->deadline_ns, list);
    struct name *names = calloc((size_t)list->name_count + 1, sizeof *names);
    if (rc != ZOK && rc != ZNONODE)
        r = hf__zk_fail(err, rc, "children");
    else if (names == NULL)
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    for (int i = 0; r == 0 && i < list->name_count; i++) {
        struct name *name = &names[count];
        if (hf__zk_unescape(list->names[i], name->bytes, &name->len) &&
            hf__search_wants(v->search, name->bytes, name->len))
            count++;
    }
    if (r == 0)
        qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = show_lock(v, &names[i], false, err);
    free(names);
    hf__zk_call_free(list);
    return r;
}

int hf__zk_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err)
{
    struct view v = {.zk = (struct hf__zk *)store, .search = search, .deadline_ns = deadline_ns};
    char directory[HF__ZK_PATH_MAX];
    int r = hf__zk_any_session(v.zk, deadline_ns, &v.s, err);

    if (r != 0)
        return r;
    v.requests = hf__zk_call_new();
    snprintf(directory, sizeof directory, "%s/%s", v.zk->prefix, HF__ZK_BREAK_DIRECTORY);
    int rc = v.requests != NULL ? hf__zk_children(v.s, directory, true, deadline_ns, v.requests)
                                : ZSYSTEMERROR;
    if (rc != ZOK && rc != ZNONODE) {
        r = hf__zk_fail(err, rc, "children");
    } else if (search->name != NULL) {
        struct name name = {.len = search->name_len};
        memcpy(name.bytes, search->name, search->name_len);
        r = show_lock(&v, &name, false, err);
    } else {
        r = show_all(&v, err);
    }
    hf__zk_call_free(v.requests);
    hf__zk_unuse(v.s);
    return r;
}
