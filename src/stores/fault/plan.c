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

const struct hf__option hf__fault_options[] = {
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
    enum hf__fault_act act;
    bool has_op;
    enum hf__fault_op op; /* without has_op */
    bool has_duration;
} forms[] = {
    {"fail", HF__FAULT_ACT_FAIL, true, 0, false},
    {"lose", HF__FAULT_ACT_LOSE, true, 0, false},
    {"delay", HF__FAULT_ACT_DELAY, true, 0, true},
    {"slow", HF__FAULT_ACT_SLOW, true, 0, true},
    {"hang", HF__FAULT_ACT_HANG, true, 0, false},
    {"late", HF__FAULT_ACT_LATE, true, 0, true},
    {"drop_wakes", HF__FAULT_ACT_DROP, false, HF__FAULT_OP_WAKE, false},
    {"dup_wakes", HF__FAULT_ACT_DUP, false, HF__FAULT_OP_WAKE, false},
    {"late_wakes", HF__FAULT_ACT_DEFER, false, HF__FAULT_OP_WAKE, true},
    {"stale_wake", HF__FAULT_ACT_STALE, false, HF__FAULT_OP_QUEUED, false},
};
#define FORM_COUNT (sizeof forms / sizeof forms[0])

static const char *const op_names[HF__FAULT_OP_CALLS] = {
    [HF__FAULT_OP_ATTEMPT] = "attempt", [HF__FAULT_OP_WITHDRAW] = "withdraw",
    [HF__FAULT_OP_RELEASE] = "release", [HF__FAULT_OP_WRITE] = "write",
    [HF__FAULT_OP_READ] = "read",       [HF__FAULT_OP_RENEW] = "renew",
    [HF__FAULT_OP_INSPECT] = "inspect", [HF__FAULT_OP_BREAK] = "break",
    [HF__FAULT_OP_UPKEEP] = "upkeep",
};

/* Late can only be what late.c can keep, a copy of one request: no renewal of many, no inspection, no
 * upkeep. */
static bool parse_op(const char *text, struct hf__fault_rule *rule)
{
    if (strcmp(text, "*") == 0) {
        rule->any = true;
        return rule->act != HF__FAULT_ACT_LATE;
    }
    for (size_t i = 0; i < HF__FAULT_OP_CALLS; i++) {
        if (strcmp(text, op_names[i]) == 0) {
            rule->op = (enum hf__fault_op)i;
            return rule->act != HF__FAULT_ACT_LATE || i <= HF__FAULT_OP_WRITE;
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

static bool parse_which(const char *text, struct hf__fault_rule *rule)
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
static bool parse_rule(const struct form *form, char *text, struct hf__fault_rule *rule)
{
    char *rest = text, *part;

    *rule = (struct hf__fault_rule){.act = form->act, .op = form->op};
    if (form->has_op && !parse_op(strsep(&rest, ":"), rule))
        return false;
    part = rest != NULL ? strsep(&rest, ":") : NULL;
    if (part == NULL || !parse_which(part, rule))
        return false;
    if (!form->has_duration)
        return rest == NULL;
    return rest != NULL && hf__parse_duration(rest, &rule->ms);
}

static int parse_value(struct hf__fault_plan *plan, const struct form *form, const char *value,
                       hf_error *err)
{
    char *copy = strdup(value), *rest = copy, *item;
    int r = 0;

    if (copy == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    while (r == 0 && (item = strsep(&rest, ",")) != NULL) {
        if (plan->rule_count == HF__FAULT_RULES_MAX)
            r = hf__fail(err, HF_INVALID, "there are more than %d rules", HF__FAULT_RULES_MAX);
        else if (!parse_rule(form, item, &plan->rules[plan->rule_count++]))
            r = hf__fail(err, HF_INVALID,
                         "option '%s': write %s%s%s, where WHICH is N, N-M, N- or *", form->option,
                         form->has_op ? "OPERATION:" : "", "WHICH",
                         form->has_duration ? ":DURATION" : "");
    }
    free(copy);
    return r;
}

int hf__fault_plan_init(struct hf__fault_plan *plan, const struct hf__url *url, hf_error *err)
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

void hf__fault_plan_clear(struct hf__fault_plan *plan)
{
    pthread_mutex_destroy(&plan->mutex);
}

/* xorshift64*: small, and the same everywhere for the same seed. */
static uint64_t next_random(struct hf__fault_plan *plan)
{
    plan->chaos ^= plan->chaos >> 12;
    plan->chaos ^= plan->chaos << 25;
    plan->chaos ^= plan->chaos >> 27;
    return plan->chaos * UINT64_C(2685821657736338717) >> 16;
}

/* It never hangs, as each time would cost the caller its whole deadline; pauses stay below 50
 * ms. */
static struct hf__fault_order choose_at_random(struct hf__fault_plan *plan, enum hf__fault_op op)
{
    static const enum hf__fault_act for_calls[] = {HF__FAULT_ACT_FAIL, HF__FAULT_ACT_LOSE,
                                                   HF__FAULT_ACT_DELAY, HF__FAULT_ACT_SLOW,
                                                   HF__FAULT_ACT_LATE};
    static const enum hf__fault_act for_wakes[] = {HF__FAULT_ACT_DROP, HF__FAULT_ACT_DUP,
                                                   HF__FAULT_ACT_DEFER};
    struct hf__fault_order order = {HF__FAULT_ACT_NONE, 0};

    if (plan->chaos == 0 || next_random(plan) % 100 >= plan->percent)
        return order;
    order.ms = (int64_t)(next_random(plan) % 50);
    if (op == HF__FAULT_OP_QUEUED)
        order.act = HF__FAULT_ACT_STALE;
    else if (op == HF__FAULT_OP_WAKE)
        order.act = for_wakes[next_random(plan) % 3];
    else
        order.act = for_calls[next_random(plan) % (op <= HF__FAULT_OP_WRITE ? 5 : 4)];
    return order;
}

struct hf__fault_order hf__fault_plan_next(struct hf__fault_plan *plan, enum hf__fault_op op)
{
    const struct hf__fault_rule *decides = NULL;
    struct hf__fault_order order;

    pthread_mutex_lock(&plan->mutex);
    uint64_t n = ++plan->seen[op];
    for (size_t i = 0; i < plan->rule_count && decides == NULL; i++) {
        const struct hf__fault_rule *rule = &plan->rules[i];
        bool same =
            rule->any ? op < HF__FAULT_OP_CALLS : rule->op == op; /* '*' means no wake-ups */
        if (same && n >= rule->first && n <= rule->last)
            decides = rule;
    }
    if (decides != NULL)
        order = (struct hf__fault_order){decides->act, decides->ms};
    else
        order = choose_at_random(plan, op);
    pthread_mutex_unlock(&plan->mutex);
    return order;
}
