/* The value of a lock (C15): a node beside the locks, <prefix>/%value/<name>, which only the live
 * exclusive holder writes.
 *
 *   read    multi [check own node, create %value/<name>/<uuid of the ticket>], then get and list that
 *           (a reader of a shared lock, and whoever has created that node, only checks)
 *   write   multi [check own node, set the value if it has the version that we know,
 *                  create ours below it, delete all others]
 *
 * Nobody tells us that a session has expired. So a holder that has opened the value leaves a node below
 * it that belongs to no session, and its release deletes that in the step in which it leaves. One that is
 * still there although its bid is not inside is of somebody who vanished or was broken: the value is in
 * doubt until the next write.
 *
 * A write that a cut connection delivers late finds another version, or no own node, and does nothing.
 *
 * A request to break its lock is a node of its own, and whether that is there cannot be compared in a
 * multi. So a holder may write until its client has heard of it; the lock is closed for all others at
 * least as long. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define TRIES  8  /* if others write, or remove an empty directory, in between */
#define OTHERS 60 /* nodes of those who vanished that one write deletes */

struct access {
    struct hf__zk *zk;
    struct hf__zk_session *s;
    struct hf__zk_bidding *b; /* NULL: whoever reads does not hold it */
    const struct hf__operation *op;
    char path[HF__ZK_PATH_MAX];
    struct hf__zk_call *node, *others; /* what stands there, and who has opened it */
    int64_t deadline_ns;
    hf_error *err;
};

static bool value_path(const struct hf__zk *zk, const char *directory, char *buf, size_t size)
{
    int used = snprintf(buf, size, "%s/%s%s", zk->prefix, HF__ZK_VALUE_DIRECTORY,
                        directory + strlen(zk->prefix));

    return used > 0 && (size_t)used + 38 < size; /* "/<uuid>" */
}

void hf__zk_opened_path(const struct hf__zk_bidding *b, char *buf, size_t size)
{
    char uuid[37];

    hf__zk_uuid(&b->ticket, uuid);
    if (value_path(b->zk, b->directory, buf, size))
        snprintf(buf + strlen(buf), size - strlen(buf), "/%s", uuid);
    else
        buf[0] = '\0';
}

/* The value's node, without a value. What is above it goes when it is empty; it stays. */
static int make_node(struct access *x)
{
    char above[HF__ZK_PATH_MAX];
    struct hf__zk_call *call = hf__zk_call_new();

    if (call == NULL)
        return ZSYSTEMERROR;
    snprintf(above, sizeof above, "%s/%s", x->zk->prefix, HF__ZK_VALUE_DIRECTORY);
    int rc = hf__zk_make_directory(x->s, above, x->deadline_ns);
    if (rc == ZOK)
        rc = hf__zk_make(x->s, x->path, NULL, ZOO_PERSISTENT, x->deadline_ns, call);
    hf__zk_call_free(call);
    return rc == ZNODEEXISTS ? ZOK : rc;
}

/* What stands there, and who has opened it, in one round trip. Without a node there is neither. */
static int look(struct access *x, struct hf__value *ret_value)
{
    hf__zk_call_free(x->node);
    hf__zk_call_free(x->others);
    x->node = hf__zk_call_new();
    x->others = hf__zk_call_new();
    *ret_value = (struct hf__value){0};
    if (x->node == NULL || x->others == NULL)
        return ZSYSTEMERROR;
    hf__zk_call_ref(x->node);
    int sent = zoo_aget(x->s->zh, x->path, 0, hf__zk_on_data, x->node);
    hf__zk_call_ref(x->others);
    int asked = zoo_aget_children(x->s->zh, x->path, 0, hf__zk_on_children, x->others);
    int rc = hf__zk_wait(x->zk, x->node, sent, x->deadline_ns);
    int listed = hf__zk_wait(x->zk, x->others, asked, x->deadline_ns);
    if (rc == ZOK && listed != ZNONODE)
        rc = listed;
    if (rc == ZOK && !hf__zk_parse_value(x->node->text, x->node->text_len, ret_value))
        rc = ZMARSHALLINGERROR;
    return rc;
}

static bool is_own(const struct access *x, const char *name)
{
    struct hf__ticket of;

    return hf__zk_ticket_of(name, &of) && hf__ticket_equal(&of, &x->op->bid->ticket);
}

/* One of those who have opened it is not the holder, who is us. */
static bool has_others(const struct access *x)
{
    for (int i = 0; i < x->others->name_count; i++) {
        if (!is_own(x, x->others->names[i]))
            return true;
    }
    return false;
}

/* What was seen, for the next write. */
static void remember(struct access *x, const struct hf__value *value)
{
    struct hf__zk_bidding *b = x->b;

    b->value.version = x->node->stat.version;
    b->value.order = value->generation == x->op->generation  ? value->order
                     : value->generation > x->op->generation ? UINT64_MAX
                                                             : 0;
    b->value.known = !has_others(x);
}

/* 1: there is no such grant any more. */
static int read_as_holder(struct access *x, struct hf__answer *ret)
{
    struct hf__zk_bidding *b = x->b;
    char own[HF__ZK_PATH_MAX];
    zoo_op_t ops[2];
    int rc = ZNONODE, bad = 0;

    hf__zk_opened_path(b, own, sizeof own);
    zoo_check_op_init(&ops[0], b->path, -1);
    zoo_create_op_init(&ops[1], own, NULL, -1, x->zk->acl, ZOO_PERSISTENT, NULL, 0);
    for (int i = 0; rc == ZNONODE && bad != 1 && i < TRIES; i++) {
        bool opens = b->mode == HF_EXCLUSIVE && !b->value.done;
        struct hf__zk_call *call = hf__zk_call_new();
        if (call == NULL)
            return hf__fail(x->err, HF_NO_MEMORY, NULL);
        b->value.asked |= opens; /* from here on it may be there, and the release must delete it */
        rc = i > 0 ? make_node(x) : ZOK;
        if (rc == ZOK)
            rc = hf__zk_multi(x->s, ops, opens ? 2 : 1, x->deadline_ns, call);
        bad = rc == ZNONODE && call->results != NULL && call->results[0].err == ZNONODE;
        hf__zk_call_free(call);
        if (rc == ZNODEEXISTS)
            rc = ZOK; /* by an earlier try */
        b->value.done |= opens && rc == ZOK;
    }
    if (bad)
        return 1;
    if (rc == ZOK)
        rc = look(x, x->op->value);
    if (rc != ZOK && rc != ZNONODE)
        return hf__zk_fail(x->err, rc, "read the value");
    ret->verdict = HF__VERDICT_DONE;
    if (rc == ZOK) {
        x->op->value->doubt = has_others(x);
        remember(x, x->op->value);
    }
    return 0;
}

/* 1: try again, by what is seen then; 2: there is no such grant any more. */
static int try_write(struct access *x, int *ret_rc)
{
    struct hf__zk_bidding *b = x->b;
    char own[HF__ZK_PATH_MAX], data[HF__ZK_VALUE_MAX];
    char(*paths)[HF__ZK_PATH_MAX] = calloc(OTHERS, sizeof *paths);
    zoo_op_t ops[3 + OTHERS];
    int count = 2, others = 0;
    struct hf__zk_call *call = hf__zk_call_new();

    if (call == NULL || paths == NULL) {
        hf__zk_call_free(call);
        free(paths);
        *ret_rc = ZSYSTEMERROR;
        return 0;
    }
    size_t len = hf__zk_format_value(x->op->value, x->op->generation, data);
    zoo_check_op_init(&ops[0], b->path, -1);
    zoo_set_op_init(&ops[1], x->path, data, (int)len, b->value.version, NULL);
    hf__zk_opened_path(b, own, sizeof own);
    bool opens = !b->value.done;
    b->value.asked = true;
    if (opens)
        zoo_create_op_init(&ops[count++], own, NULL, -1, x->zk->acl, ZOO_PERSISTENT, NULL, 0);
    for (int i = 0; !b->value.known && i < x->others->name_count && others < OTHERS; i++) {
        if (is_own(x, x->others->names[i]))
            continue;
        if (snprintf(paths[others], HF__ZK_PATH_MAX, "%s/%s", x->path, x->others->names[i]) >=
            HF__ZK_PATH_MAX)
            continue; /* none of ours is as long */
        zoo_delete_op_init(&ops[count++], paths[others++], -1);
    }
    int rc = hf__zk_multi(x->s, ops, count, x->deadline_ns, call), at = 0;
    while (call->results != NULL && at < count - 1 &&
           (call->results[at].err == ZOK || call->results[at].err == ZRUNTIMEINCONSISTENCY))
        at++;
    hf__zk_call_free(call);
    free(paths);
    *ret_rc = rc;
    b->value.done |= opens && (rc == ZOK || (rc == ZNODEEXISTS && at == 2));
    if (rc == ZOK) {
        b->value.version++;
        b->value.order = x->op->value->order;
        b->value.known = true;
        return 0;
    }
    b->value.known = false;
    if (rc == ZNONODE && at == 0)
        return 2;
    return rc == ZBADVERSION || rc == ZNONODE || rc == ZNODEEXISTS;
}

/* 1: there is no such grant any more. */
static int write_as_holder(struct access *x, struct hf__answer *ret)
{
    struct hf__zk_bidding *b = x->b;
    struct hf__value *there = malloc(sizeof *there);
    int rc = ZOK, r = 1;

    if (there == NULL)
        return hf__fail(x->err, HF_NO_MEMORY, NULL);
    for (int i = 0; r == 1 && i < TRIES; i++) {
        if (!b->value.known) {
            rc = look(x, there);
            if (rc == ZOK)
                remember(x, there);
            else if (rc == ZNONODE && (rc = make_node(x)) == ZOK)
                continue;
            if (rc != ZOK)
                r = 0;
        }
        if (r == 1 && b->value.order > x->op->value->order) {
            ret->verdict = HF__VERDICT_STALE;
            free(there);
            return 0;
        }
        if (r == 1)
            r = try_write(x, &rc);
    }
    free(there);
    if (r == 2)
        return 1;
    if (r == 1)
        return hf__fail(x->err, HF_UNAVAILABLE, "it is written to too often");
    if (rc != ZOK)
        return hf__zk_fail(x->err, rc, "write the value");
    ret->verdict = HF__VERDICT_DONE;
    return 0;
}

/* Whether one of those who have opened it is not inside any more, or is asked to leave. */
static int find_doubt(struct access *x, const char *directory, bool *ret_doubt)
{
    char requests_path[HF__ZK_PATH_MAX];
    struct hf__zk_call *list = hf__zk_call_new(), *requests = hf__zk_call_new();
    int rc = list != NULL && requests != NULL
                 ? hf__zk_children(x->s, directory, false, x->deadline_ns, list)
                 : ZSYSTEMERROR;

    snprintf(requests_path, sizeof requests_path, "%s/%s", x->zk->prefix, HF__ZK_BREAK_DIRECTORY);
    if (rc == ZOK || rc == ZNONODE)
        rc = hf__zk_children(x->s, requests_path, false, x->deadline_ns, requests);
    for (int i = 0; (rc == ZOK || rc == ZNONODE) && i < x->others->name_count; i++) {
        struct hf__ticket who, of;
        bool inside = false;
        if (!hf__zk_ticket_of(x->others->names[i], &who))
            continue;
        for (int k = 0; k < list->name_count; k++)
            inside |= hf__zk_ticket_of(list->names[k], &of) && hf__ticket_equal(&of, &who);
        for (int k = 0; k < requests->name_count; k++)
            inside &= !(hf__zk_ticket_of(requests->names[k], &of) && hf__ticket_equal(&of, &who));
        *ret_doubt |= !inside;
    }
    hf__zk_call_free(list);
    hf__zk_call_free(requests);
    return rc == ZNONODE ? ZOK : rc;
}

static int read_as_anybody(struct access *x, const char *directory, struct hf__answer *ret)
{
    struct hf__zk_call *sync = hf__zk_call_new();
    int r = hf__zk_any_session(x->zk, x->deadline_ns, &x->s, x->err);

    if (r != 0 || sync == NULL) {
        hf__zk_call_free(sync);
        if (r == 0)
            hf__zk_unuse(x->s);
        return r != 0 ? r : hf__fail(x->err, HF_NO_MEMORY, NULL);
    }
    int rc = hf__zk_children(x->s, x->path, true, x->deadline_ns, sync);
    hf__zk_call_free(sync);
    if (rc == ZOK)
        rc = look(x, x->op->value);
    if (rc == ZOK)
        rc = find_doubt(x, directory, &x->op->value->doubt);
    hf__zk_unuse(x->s);
    if (rc != ZOK && rc != ZNONODE)
        return hf__zk_fail(x->err, rc, "read the value");
    ret->verdict = HF__VERDICT_DONE;
    return 0;
}

/* With the bid to itself. 1: there is no such grant any more. */
static int access_as_holder(struct access *x, struct hf__answer *ret)
{
    struct hf__zk_bidding *b = x->b;

    hf__zk_renew_session(b, x->deadline_ns);
    pthread_mutex_lock(&x->zk->mutex);
    bool holds = b->state == HF__ZK_STATE_JOINED && b->inside && b->session != NULL &&
                 b->path != NULL && b->generation == x->op->generation;
    x->s = b->session;
    if (holds)
        hf__zk_use_locked(x->s);
    pthread_mutex_unlock(&x->zk->mutex);
    if (!holds)
        return 1;
    int r = 1;
    if (!hf__zk_await(x->s, x->deadline_ns))
        r = hf__fail(x->err, HF_UNAVAILABLE, "no server of %s answers", x->zk->hosts);
    else if (x->op->kind == HF__OPERATION_READ)
        r = read_as_holder(x, ret);
    else if (b->mode == HF_EXCLUSIVE)
        r = write_as_holder(x, ret);
    hf__zk_unuse(x->s);
    return r;
}

int hf__zk_value(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)store;
    struct access x = {.zk = zk, .op = op, .deadline_ns = deadline_ns, .err = err};
    struct hf__renewal renewal = {
        .name = op->bid->name, .name_len = op->bid->name_len, .ticket = op->bid->ticket};
    char directory[HF__ZK_PATH_MAX];
    int r = 1, rc = ZOK;

    if (!hf__zk_directory(zk, op->bid->name, op->bid->name_len, directory, sizeof directory) ||
        !value_path(zk, directory, x.path, sizeof x.path))
        return hf__fail(err, HF_INVALID, "the name is too long for this prefix");
    ret_answer->verdict = HF__VERDICT_GONE;
    if (op->generation == 0) {
        *op->value = (struct hf__value){0};
        r = read_as_anybody(&x, directory, ret_answer);
    } else {
        x.b = hf__zk_find(zk, &op->bid->ticket);
        if (x.b == NULL)
            rc = hf__zk_take_over(zk, &renewal, deadline_ns, &x.b);
        if (x.b == NULL && rc != ZNONODE)
            r = hf__zk_fail(err, rc, "look for the ticket");
        if (x.b != NULL && hf__zk_begin(x.b, deadline_ns)) {
            r = access_as_holder(&x, ret_answer);
            hf__zk_end(x.b);
        } else if (x.b != NULL) {
            r = hf__fail(err, HF_UNAVAILABLE, "another request of this ticket is under way");
        }
        if (x.b != NULL)
            hf__zk_bidding_unref(x.b);
    }
    hf__zk_call_free(x.node);
    hf__zk_call_free(x.others);
    return r == 1 ? 0 : r;
}
