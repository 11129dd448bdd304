/* Walks all scenarios with the code as it is, then plants each bug of plant.py and shows that the
 * walk finds it. See walk.h.
 *
 *   walk [--deep] [--only SCENARIO] [--plant BUG] */
#include "walk.h"

#include <stdio.h>
#include <string.h>

enum planted planted;

static const char *const bug_name[] = {"nothing",
#define X(bug) #bug,
                                       PLANTABLE(X)
#undef X
};
static const char *const sight_text[] = {
#define X(id, text) text,
    SIGHTS(X)
#undef X
};

struct tally {
    unsigned passed, failed;
    uint64_t states;
    uint64_t sights[SIGHT_COUNT];
};

struct wish {
    bool deep;
    const char *only, *plant;
};

static void count(struct tally *t, bool good)
{
    t->passed += good;
    t->failed += !good;
}

static void walk_scenario(const struct scenario *s, struct tally *t)
{
    struct walk k = {.s = s};
    struct result r = search(&k, true);
    bool good = r.finding.clause == NULL && !r.exhausted;

    printf("%-6s %-40s %10llu states %11llu moves %6.1f s\n", good ? "ok" : "FAILED", s->name,
           (unsigned long long)r.states, (unsigned long long)r.moves, r.seconds);
    fflush(stdout);
    t->states += r.states;
    for (int i = 0; i < SIGHT_COUNT; i++)
        t->sights[i] += k.sights[i];
    count(t, good);
}

static void walk_all(const struct wish *wish, struct tally *t)
{
    for (size_t i = 0; i < scenario_count; i++) {
        const struct scenario *s = &scenarios[i];
        if (wish->only != NULL ? strcmp(wish->only, s->name) == 0 : wish->deep || !s->deep)
            walk_scenario(s, t);
    }
    printf("%llu states in all\n\n", (unsigned long long)t->states);
}

static const struct scenario *find_scenario(const char *name)
{
    for (size_t i = 0; i < scenario_count; i++) {
        if (strcmp(scenarios[i].name, name) == 0)
            return &scenarios[i];
    }
    return NULL;
}

/* The bug must show in its scenario, as the breach of its clause. */
static void walk_bug(size_t bug, const struct wish *wish, struct tally *t)
{
    const struct hunt *hunt = bug < hunt_count ? &hunts[bug] : &(struct hunt){0};
    const char *name = wish->only != NULL ? wish->only : hunt->scenario;
    struct walk k = {.s = name == NULL ? NULL : find_scenario(name)};

    if (k.s == NULL) {
        printf("MISSED %-28s: nobody looks for it\n", bug_name[bug]);
        count(t, false);
        return;
    }
    planted = (enum planted)bug;
    struct result r = search(&k, wish->plant != NULL);
    planted = NOTHING_PLANTED;

    bool found = r.finding.clause != NULL;
    bool good = found && hunt->clause != NULL && strcmp(r.finding.clause, hunt->clause) == 0;
    printf("%s %-28s by %-4s after %6llu states of '%s': %s\n", good ? "caught" : "MISSED",
           bug_name[bug], found ? r.finding.clause : "-", (unsigned long long)r.states, k.s->name,
           found ? r.finding.what : "not found");
    fflush(stdout);
    count(t, good);
}

static void plant_all(const struct wish *wish, struct tally *t)
{
    for (size_t bug = 1; bug < sizeof bug_name / sizeof bug_name[0]; bug++) {
        if (wish->plant == NULL || strcmp(wish->plant, bug_name[bug]) == 0)
            walk_bug(bug, wish, t);
    }
}

static void check_sights(struct tally *t)
{
    for (int i = 0; i < SIGHT_COUNT; i++) {
        printf("%-6s %-45s %12llu times\n", t->sights[i] > 0 ? "saw" : "UNSEEN", sight_text[i],
               (unsigned long long)t->sights[i]);
        count(t, t->sights[i] > 0);
    }
    printf("\n");
}

static int usage(void)
{
    fprintf(stderr, "usage: walk [--deep] [--only SCENARIO] [--plant BUG]\n");
    return 64;
}

int main(int argc, char **argv)
{
    struct wish wish = {0};
    struct tally t = {0};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--deep") == 0)
            wish.deep = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            wish.only = argv[++i];
        else if (strcmp(argv[i], "--plant") == 0 && i + 1 < argc)
            wish.plant = argv[++i];
        else
            return usage();
    }
    if (wish.plant == NULL)
        walk_all(&wish, &t);
    if (wish.plant == NULL && wish.only == NULL)
        check_sights(&t);
    if (wish.plant != NULL || wish.only == NULL)
        plant_all(&wish, &t);
    printf("%u passed, %u failed\n", t.passed, t.failed);
    return t.failed == 0 ? 0 : 1;
}
