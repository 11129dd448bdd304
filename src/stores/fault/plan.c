/* See plan.h. A rule is written [OPERATION:]WHICH[:DURATION], and an option holds several,
 * separated by commas. WHICH is N, N-M, N- or '*'. The first rule that fits a call decides; without
 * one, chaos may.
 *
 * Calls are counted, not timed: "the third attempt" is the same one on every machine and under
 * every sanitizer, "after 50 ms" is not. */
#include "stores/fault/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

const struct hf__option fault_options[] = {
    {"fail", HF__OPTION_TEXT, NULL, 0, 0, "OP:WHICH,... fails as unavailable, not applied"},
    {"lose", HF__OPTION_TEXT, NULL, 0, 0, "OP:WHICH,... is applied, its answer is lost"},
    {"delay", HF__OPTION_TEXT, NULL, 0, 0,
     "OP:WHICH:DURATION,... is applied later and waits for it"},
    {"slow", HF__OPTION_TEXT, NULL, 0, 0,
     "OP:WHICH:DURATION,... is applied at once, answered later"},
    {"hang", HF__OPTION_TEXT, NULL, 0, 0, "OP:WHICH,... blocks until its deadline, not applied"},
    {"late", HF__OPTION_TEXT, NULL, 0, 0, "OP:WHICH:DURATION,... unknown at once, applied later"},
    {"drop_wakes", HF__OPTION_TEXT, NULL, 0, 0, "WHICH wake-ups are not delivered"},
    {"dup_wakes", HF__OPTION_TEXT, NULL, 0, 0, "WHICH wake-ups are delivered twice"},
    {"late_wakes", HF__OPTION_TEXT, NULL, 0, 0, "WHICH:DURATION wake-ups are delivered later"},
    {"stale_wake", HF__OPTION_TEXT, NULL, 0, 0,
     "WHICH bids that are queued again are called with an old generation"},
    {"chaos", HF__OPTION_NUMBER, "0", 0, INT64_MAX,
     "calls go wrong at random, from this seed; 0: none"},
    {"chaos_percent", HF__OPTION_NUMBER, "10", 0, 100, "how many of them"},
    {NULL, HF__OPTION_TEXT, NULL, 0, 0, NULL},
};

/* How the value of an option is read. */
static const struct form {
    const char *option;
    enum fault_act act;
    bool has_op;
    enum fault_op op; /* without has_op */
    bool has_duration;
} forms[] = {
    {"fail", FAULT_FAIL, true, 0, false},
    {"lose", FAULT_LOSE, true, 0, false},
    {"delay", FAULT_DELAY, true, 0, true},
    {"slow", FAULT_SLOW, true, 0, true},
    {"hang", FAULT_HANG, true, 0, false},
    {"late", FAULT_LATE, true, 0, true},
    {"drop_wakes", FAULT_DROP, false, FAULT_WAKE, false},
    {"dup_wakes", FAULT_DUP, false, FAULT_WAKE, false},
    {"late_wakes", FAULT_DEFER, false, FAULT_WAKE, true},
    {"stale_wake", FAULT_STALE, false, FAULT_QUEUED, false},
};
#define FORM_COUNT (sizeof forms / sizeof forms[0])

static const char *const op_names[FAULT_CALLS] = {
    [FAULT_ATTEMPT] = "attempt", [FAULT_WITHDRAW] = "withdraw", [FAULT_RELEASE] = "release",
    [FAULT_WRITE] = "write",     [FAULT_READ] = "read",         [FAULT_RENEW] = "renew",
    [FAULT_INSPECT] = "inspect", [FAULT_BREAK] = "break",       [FAULT_UPKEEP] = "upkeep",
};

/* Late can only be what late.c can keep, a copy of one request: no renewal of many, no inspection, no
 * upkeep. */
static bool parse_op(const char *text, struct fault_rule *rule)
{
    if (strcmp(text, "*") == 0) {
        rule->any = true;
        return rule->act != FAULT_LATE;
    }
    for (size_t i = 0; i < FAULT_CALLS; i++) {
        if (strcmp(text, op_names[i]) == 0) {
            rule->op = (enum fault_op)i;
            return rule->act != FAULT_LATE || i <= FAULT_WRITE;
        }
    }
    return false;
}

static bool parse_count(const char **text, uint64_t *ret)
{
    char *end;

    if (**text < '0' || **text > '9')
        return false;
    *ret = strtoull(*text, &end, 10);
    *text = end;
    return *ret > 0;
}

static bool parse_which(const char *text, struct fault_rule *rule)
{
    if (strcmp(text, "*") == 0) {
        rule->first = 1;
        rule->last = UINT64_MAX;
        return true;
    }
    if (!parse_count(&text, &rule->first))
        return false;
    rule->last = rule->first;
    if (*text != '-')
        return *text == '\0';
    if (*++text == '\0') {
        rule->last = UINT64_MAX;
        return true;
    }
    return parse_count(&text, &rule->last) && *text == '\0' && rule->last >= rule->first;
}

/* One rule; `text` is cut up. */
static bool parse_rule(const struct form *form, char *text, struct fault_rule *rule)
{
    char *rest = text, *part;

    *rule = (struct fault_rule){.act = form->act, .op = form->op};
    if (form->has_op && !parse_op(strsep(&rest, ":"), rule))
        return false;
    part = rest != NULL ? strsep(&rest, ":") : NULL;
    if (part == NULL || !parse_which(part, rule))
        return false;
    if (!form->has_duration)
        return rest == NULL;
    return rest != NULL && hf__parse_duration(rest, &rule->ms);
}

static int parse_value(struct fault_plan *plan, const struct form *form, const char *value,
                       hf_error *err)
{
    char *copy = strdup(value), *rest = copy, *item;
    int r = 0;

    if (copy == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    while (r == 0 && (item = strsep(&rest, ",")) != NULL) {
        if (plan->rule_count == FAULT_RULES_MAX)
            r = hf__fail(err, HF_INVALID, "there are more than %d rules", FAULT_RULES_MAX);
        else if (!parse_rule(form, item, &plan->rules[plan->rule_count++]))
            r = hf__fail(err, HF_INVALID,
                         "option '%s': write %s%s%s, where WHICH is N, N-M, N- or *", form->option,
                         form->has_op ? "OPERATION:" : "", "WHICH",
                         form->has_duration ? ":DURATION" : "");
    }
    free(copy);
    return r;
}

int fault_plan_init(struct fault_plan *plan, const struct hf__url *url, hf_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < FORM_COUNT; i++) {
        const char *value = hf__url_text(url, forms[i].option);
        if (value != NULL)
            r = parse_value(plan, &forms[i], value, err);
    }
    if (r != 0)
        return r;
    plan->chaos = (uint64_t)hf__url_number(url, "chaos");
    plan->percent = (unsigned)hf__url_number(url, "chaos_percent");
    if (pthread_mutex_init(&plan->mutex, NULL) != 0)
        return hf__fail(err, HF_SYSTEM, "no mutex");
    return 0;
}

void fault_plan_clear(struct fault_plan *plan)
{
    pthread_mutex_destroy(&plan->mutex);
}

/* xorshift64*: small, and the same everywhere for the same seed. */
static uint64_t next_random(struct fault_plan *plan)
{
    plan->chaos ^= plan->chaos >> 12;
    plan->chaos ^= plan->chaos << 25;
    plan->chaos ^= plan->chaos >> 27;
    return plan->chaos * UINT64_C(2685821657736338717) >> 16;
}

/* It never hangs, as each time would cost the caller its whole deadline; pauses stay below 50
 * ms. */
static struct fault_order choose_at_random(struct fault_plan *plan, enum fault_op op)
{
    static const enum fault_act for_calls[] = {FAULT_FAIL, FAULT_LOSE, FAULT_DELAY, FAULT_SLOW,
                                               FAULT_LATE};
    static const enum fault_act for_wakes[] = {FAULT_DROP, FAULT_DUP, FAULT_DEFER};
    struct fault_order order = {FAULT_NONE, 0};

    if (plan->chaos == 0 || next_random(plan) % 100 >= plan->percent)
        return order;
    order.ms = (int64_t)(next_random(plan) % 50);
    if (op == FAULT_QUEUED)
        order.act = FAULT_STALE;
    else if (op == FAULT_WAKE)
        order.act = for_wakes[next_random(plan) % 3];
    else
        order.act = for_calls[next_random(plan) % (op <= FAULT_WRITE ? 5 : 4)];
    return order;
}

struct fault_order fault_plan_next(struct fault_plan *plan, enum fault_op op)
{
    const struct fault_rule *decides = NULL;
    struct fault_order order;

    pthread_mutex_lock(&plan->mutex);
    uint64_t n = ++plan->seen[op];
    for (size_t i = 0; i < plan->rule_count && decides == NULL; i++) {
        const struct fault_rule *rule = &plan->rules[i];
        bool same = rule->any ? op < FAULT_CALLS : rule->op == op; /* '*' means no wake-ups */
        if (same && n >= rule->first && n <= rule->last)
            decides = rule;
    }
    if (decides != NULL)
        order = (struct fault_order){decides->act, decides->ms};
    else
        order = choose_at_random(plan, op);
    pthread_mutex_unlock(&plan->mutex);
    return order;
}
