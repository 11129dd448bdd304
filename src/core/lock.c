/* A lock handle: its making and end, its duties, and what is known of it. Giving it back: release.c. */
#include "core/lock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/started.h"

#include "base/banned.h"

int hf__name_len(const char *name, size_t given, size_t *ret_len, hf_error *err)
{
    if (name == NULL)
        return hf__fail(err, HF_INVALID, "a lock needs a name");
    size_t len = given == HF_NTS ? strnlen(name, HF_NAME_MAX + 1) : given;
    if (len == 0)
        return hf__fail(err, HF_INVALID, "the name is empty; give it 1 to %d bytes", HF_NAME_MAX);
    if (len > HF_NAME_MAX)
        return hf__fail(err, HF_INVALID, "the name is too long; at most %d bytes", HF_NAME_MAX);
    *ret_len = len;
    return 0;
}

#define WHO_ALIGN _Alignof(struct hf__who)

/* Making, counting, freeing. ------------------------------------------------------------------- */
hf_lock *hf__lock_new(hf_client *client, const struct hf__name *name, const hf_options *opt)
{
    size_t note_len = opt->note != NULL ? strlen(opt->note) : 0;
    size_t who_at =
        (offsetof(hf_lock, name) + name->len + 1 + WHO_ALIGN - 1) / WHO_ALIGN * WHO_ALIGN;
    size_t size = note_len > 0 ? who_at + sizeof(struct hf__who) + note_len + 1
                               : offsetof(hf_lock, name) + name->len + 1;
    hf_lock *lock = malloc(size); /* glibc's calloc() goes past the thread's cache */

    if (lock == NULL)
        return NULL;
    memset(lock, 0, size);
    memcpy(lock->name, name->bytes, name->len);
    lock->client = client;
    lock->refs = 1;
    lock->count = 1;
    lock->lost_fd = -1;
    lock->owner = hf__reentry_owner(opt->owner);
    lock->reentrant = opt->reentrant != 0;
    lock->by_hand = opt->by_hand != 0;
    lock->on_at_risk = opt->on_at_risk;
    lock->on_lost = opt->on_lost;
    lock->on_wanted = opt->on_wanted;
    lock->arg = opt->arg;
    lock->max_hold_ns = INT64_MAX;
    lock->bid =
        (struct hf__bid){.name = lock->name,
                         .name_len = name->len,
                         .mode = opt->mode,
                         .limit = opt->mode == HF_SHARED ? opt->limit : 0,
                         .ttl_ms = opt->ttl_ms == HF_NEVER ? HF__NEVER : opt->ttl_ms,
                         .lock_delay_ms = opt->lock_delay_ms,
                         .retire_ms = client->retire_ms,
                         .queue = opt->wait_ms != 0,
                         .tell = opt->wanted != 0 || opt->on_wanted != NULL || opt->cached != 0,
                         .cached = opt->cached != 0,
                         .who = &client->self};
    if (note_len > 0) {
        struct hf__who *who = (struct hf__who *)((char *)lock + who_at);
        *who = client->self;
        who->note = memcpy(who + 1, opt->note, note_len); /* its NUL is there */
        lock->bid.who = who;
    }
    return lock;
}

int hf__lock_join(hf_lock *lock)
{
    hf_client *client = lock->client;
    struct hf__heap *heaps[] = {&client->keeper.timers, &client->renewer.jobs,
                                &client->withdrawer.jobs, &client->notifier.jobs};
    bool has_callback =
        lock->on_at_risk != NULL || lock->on_lost != NULL || lock->on_wanted != NULL;

    for (size_t i = 0; i < (has_callback ? 4 : 3); i++) { /* and one place for the log's turn */
        if (!hf__heap_reserve(heaps[i], client->lock_count + 2))
            return HF_NO_MEMORY;
    }
    client->lock_count++;
    client->refs++;
    return 0;
}

void hf__lock_ref(hf_lock *lock)
{
    lock->refs++;
}

void hf__lock_unref(hf_lock *lock)
{
    if (--lock->refs > 0)
        return;
    lock->client->lock_count--;
    lock->client->refs--; /* never the last: whoever calls this has one of its own */
    if (lock->lost_fd >= 0)
        close(lock->lost_fd);
    free(lock->trouble);
    hf__started_free(lock->started);
    free(lock);
}

int hf__lock_new_ticket(hf_lock *lock, hf_error *err)
{
    if (hf__draw_ticket(lock->client, &lock->bid.ticket) < 0)
        return hf__fail(err, HF_SYSTEM, "there is no randomness to be had");
    hf__ticket_format(&lock->bid.ticket, lock->ticket);
    hf__bidder_init(&lock->bidder);
    lock->in_store = lock->claim_unanswered = lock->lost_told = lock->called = false;
    lock->opened_value = false;
    lock->local_grants = 0;
    lock->value_order = 0;
    return 0;
}

/* Duties. -------------------------------------------------------------------------------------- */

/* Out of every queue, and an answer that is still to come is of no duty any more. */
static void drop_job(hf_lock *lock)
{
    hf_client *client = lock->client;
    struct hf__workers *workers =
        lock->duty == HF__DUTY_UNDO ? &client->withdrawer : &client->renewer;
    bool queued = lock->job == HF__JOB_QUEUED;

    lock->job = HF__JOB_NONE;
    lock->job_again = false;
    lock->job_number++;
    if (queued) {
        hf__heap_remove(&workers->jobs, &lock->job_turn);
        lock->refs--; /* not the last: it has a duty */
    }
}

/* Only a lock that waits or is kept can be called by its store. */
static bool is_called(enum hf__duty duty)
{
    return duty == HF__DUTY_WAIT || duty == HF__DUTY_KEEP;
}

/* What the duties have to leave behind and to begin with, whatever comes before and after. */
static void change_duty(hf_lock *lock, enum hf__duty duty)
{
    hf_client *client = lock->client;

    drop_job(lock);
    if (lock->waiter != NULL && duty != HF__DUTY_WAIT) {
        hf__waiter_unref(lock->waiter);
        lock->waiter = NULL;
    }
    if (is_called(lock->duty) && !is_called(duty))
        hf__table_remove(&client->by_ticket, &lock->by_ticket);
    if (!is_called(lock->duty) && is_called(duty))
        hf__table_add(&client->by_ticket, &lock->by_ticket,
                      hf__hash(client->seed, lock->bid.ticket.bits, sizeof lock->bid.ticket.bits));
    if (client->meter != NULL && lock->duty == HF__DUTY_KEEP && duty != HF__DUTY_KEEP)
        hf__meter_keep_ends(lock);
    client->in_duty[lock->duty]--;
    client->in_duty[duty]++;
    lock->duty = duty;
    lock->failures = 0;
    lock->retry_ns = 0;
    lock->risk_told = lock->wanted_told = false;
}

void hf__duty_begin(hf_lock *lock, enum hf__duty duty)
{
    hf_client *client = lock->client;

    if (lock->duty == HF__DUTY_NONE) {
        lock->refs++;
        lock->next = client->on_duty;
        if (lock->next != NULL)
            lock->next->prev = lock;
        client->on_duty = lock;
    }
    change_duty(lock, duty);
}

void hf__duty_end(hf_lock *lock)
{
    hf_client *client = lock->client;

    if (lock->duty == HF__DUTY_NONE)
        return;
    change_duty(lock, HF__DUTY_NONE);
    hf__keeper_schedule(lock);
    if (lock->prev != NULL)
        lock->prev->next = lock->next;
    else
        client->on_duty = lock->next;
    if (lock->next != NULL)
        lock->next->prev = lock->prev;
    lock->prev = lock->next = NULL;
    hf__lock_unref(lock);
}

/* Once for each time that it becomes so. */
static void tell_wanted(hf_lock *lock)
{
    bool wanted = lock->bidder.wanted && lock->bidder.phase == HF__PHASE_HOLDING;

    if (lock->duty != HF__DUTY_KEEP || wanted == lock->wanted_told)
        return;
    lock->wanted_told = wanted;
    if (!wanted)
        return;
    hf__tell_event(lock, HF__TELL_WANTED);
    if (lock->on_wanted != NULL) {
        lock->call_wanted = true;
        hf__notifier_push(lock);
    }
}

void hf__lock_keep(hf_lock *lock, int64_t max_hold_ms)
{
    if (max_hold_ms > 0)
        lock->max_hold_ns = hf__moment_after(hf__now_ns(lock->client->env), max_hold_ms);
    hf__duty_begin(lock, HF__DUTY_KEEP);
    if (lock->client->meter != NULL)
        hf__raise(&lock->client->meter->seen.grants);
    tell_wanted(lock);
    if (lock->called && !lock->bidder.wanted)
        hf__renewer_push(lock);
    lock->called &= lock->bid.cached;
    lock->used_since_renewal = true;
    hf__keeper_schedule(lock);
}

/* What is known of it. ------------------------------------------------------------------------- */
void hf__lock_show_lost(hf_lock *lock)
{
    if (lock->lost_fd < 0)
        return;
    int cancel_state = hf__forbid_cancel(); /* the mutex is held, and this writes */
    eventfd_write(lock->lost_fd, 1);
    hf__allow_cancel(cancel_state);
}

void hf__lock_log_danger(const hf_lock *lock, hf_log_kind kind, const char *text)
{
    hf_cause cause = lock->bidder.cause;
    bool matters = cause == HF_CAUSE_NONE || cause == HF_CAUSE_EXPIRED;
    const hf_error *why = matters ? lock->trouble : NULL;

    if (why == NULL)
        hf__log_lock(lock, kind, HF_OK, "%s", text);
    else
        hf__log_lock(lock, kind, why->code, "%s (%s)", text, why->text);
}

/* Whoever finds that a lock is over tells it: nobody can look without. */
static void tell_lost(hf_lock *lock)
{
    /* Before KEEP nobody has the handle; after it, nobody wants to know. */
    if (lock->duty != HF__DUTY_KEEP || lock->lost_told || lock->bidder.phase != HF__PHASE_LOST)
        return;
    lock->lost_told = true;
    if (lock->client->meter != NULL)
        hf__meter_lost(lock);
    hf__lock_log_danger(lock, HF_LOG_LOST, hf_cause_text(lock->bidder.cause));
    hf__lock_show_lost(lock);
    if (lock->on_lost != NULL) {
        lock->call_lost = true;
        hf__notifier_push(lock);
    }
    hf__tell_event(lock, HF__TELL_LOST);
    hf__keeper_schedule(lock);
}

bool hf__lock_holds(hf_lock *lock, int64_t now_ns)
{
    if (now_ns >= lock->max_hold_ns)
        hf__bidder_lose(&lock->bidder, HF_CAUSE_MAX_HOLD);
    bool holds = hf__bidder_holds(&lock->bidder, now_ns);
    if (!holds)
        tell_lost(lock);
    return holds;
}

enum hf__advice hf__lock_renewed(hf_lock *lock, uint64_t generation,
                                 const struct hf__answer *answer, int64_t now_ns)
{
    struct hf__meter *meter = lock->client->meter;
    bool held = lock->bidder.phase == HF__PHASE_HOLDING;
    int64_t deadline_ns = lock->bidder.deadline_ns; /* before the answer */
    enum hf__advice advice = hf__bidder_renewed(&lock->bidder, generation, answer, now_ns);

    /* "Gone" may be the answer to a request from before the last attempt: that one tells. */
    lock->in_store |=
        answer->verdict == HF__VERDICT_GRANTED || answer->verdict == HF__VERDICT_QUEUED;
    free(lock->trouble);
    lock->trouble = NULL;
    bool holds = hf__lock_holds(lock, now_ns);
    if (meter != NULL && held && holds && answer->verdict == HF__VERDICT_GRANTED)
        hf__meter_renewed(meter, deadline_ns == INT64_MAX ? INT64_MAX : deadline_ns - now_ns);
    if (holds && now_ns < hf__lease_at_risk_ns(lock->bidder.sent_ns, lock->bidder.lease_ms)) {
        if (lock->risk_told)
            hf__log_lock(lock, HF_LOG_SAFE, HF_OK, "is renewed and not at risk any more");
        lock->risk_told = false; /* back on firm ground: the next time is told again */
    }
    tell_wanted(lock);
    return advice;
}

/* The error has its place only once there is one: a lock is made and freed with every acquire. */
void hf__lock_not_renewed(hf_lock *lock, uint64_t generation, const hf_error *err)
{
    lock->claim_unanswered |= err->code == HF_UNKNOWN && generation != 0;
    if (lock->client->meter != NULL && generation != 0)
        hf__raise(&lock->client->meter->seen.renewals_failed);
    if (lock->trouble == NULL)
        lock->trouble = malloc(sizeof *lock->trouble);
    if (lock->trouble != NULL)
        *lock->trouble = *err;
}

int hf__lock_renew_once(hf_lock *lock, hf_error *err)
{
    hf_client *client = lock->client;
    struct hf__renewal item = {.name = lock->name,
                               .name_len = lock->bid.name_len,
                               .ticket = lock->bid.ticket,
                               .generation = lock->bidder.generation,
                               .answer.sent_ns = hf__now_ns(client->env)};
    hf_error why = {0};

    lock->renewals++;
    hf__unlock_client(client);
    int r = client->store->type->renew(client->store, &item, 1, hf__op_deadline(client), &why);
    hf__lock_client(client);
    lock->renewals--;
    hf__after_call(client);
    int64_t now_ns = hf__now_ns(client->env);
    if (r == 0)
        hf__lock_renewed(lock, item.generation, &item.answer, now_ns);
    else
        hf__lock_not_renewed(lock, item.generation, &why);
    if (r < 0 && err != NULL)
        *err = why;
    if (!hf__lock_holds(lock, now_ns))
        r = hf__fail(err, HF_LOST, "it was lost: %s", hf_cause_text(lock->bidder.cause));
    hf__keeper_schedule(lock);
    return r;
}

int hf_lock_renew(hf_lock *lock, hf_error *err)
{
    if (lock == NULL)
        return hf__fail(err, HF_INVALID, "there is no lock");
    struct hf__visit visit;
    int r = hf__enter_locked(lock->client, &visit, err);
    if (r < 0)
        return r;
    r = hf__lock_holds(lock, hf__now_ns(lock->client->env))
            ? hf__lock_renew_once(lock, err)
            : hf__fail(err, HF_LOST, "it was lost: %s", hf_cause_text(lock->bidder.cause));
    hf__leave_unlock(lock->client, &visit);
    return r;
}
