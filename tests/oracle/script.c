/* See script.h. */
#include "script.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib/operate.h"

static int64_t in_ms(int64_t ms)
{
    return hf__now_ns(&hf__system_env) + ms * HF__NS_PER_MS;
}

void script(struct world *w, const char *options, const char *lines)
{
    char url[600];

    if (w->store != NULL)
        hf_store_type_v1.close(w->store);
    snprintf(w->script, sizeof w->script, "%s/script%d", w->dir, w->scripts);
    snprintf(w->log, sizeof w->log, "%s/log%d", w->dir, w->scripts++);
    FILE *file = fopen(w->script, "we");
    assert_non_null(file);
    fputs(lines, file);
    fclose(file);
    snprintf(url, sizeof url, "oracle://app:Sesam@/?connect=DRIVER=%s;SCRIPT=%s;LOG=%s%s",
             getenv("HOLDFAST_TEST_DRIVER"), w->script, w->log, options);
    w->store = store_walk_open(&w->walk, &hf_store_type_v1, url);
}

int attempt(struct world *w, int64_t ms, struct hf__answer *answer)
{
    struct hf__bid bid = {.name = "a",
                          .name_len = 1,
                          .ticket = {{1, 2, 3}},
                          .mode = HF_EXCLUSIVE,
                          .ttl_ms = 30000,
                          .queue = true,
                          .who = &w->walk.base.who};

    w->walk.err = (hf_error){0};
    return ask_store(w->store, op_attempt(&bid), in_ms(ms), answer, &w->walk.err);
}

int count(const struct world *w, const char *begins)
{
    char line[4200];
    FILE *file = fopen(w->log, "re");
    int n = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        n += strncmp(line, begins, strlen(begins)) == 0;
    fclose(file);
    return n;
}

int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    store_walk_init(&w->walk, NULL, NULL);
    snprintf(w->dir, sizeof w->dir, "/tmp/holdfast-oracle.XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    struct world *w = *state;
    char path[100];

    if (w->store != NULL)
        hf_store_type_v1.close(w->store);
    for (int i = 0; i < w->scripts; i++) {
        snprintf(path, sizeof path, "%s/script%d", w->dir, i);
        unlink(path);
        snprintf(path, sizeof path, "%s/log%d", w->dir, i);
        unlink(path);
    }
    rmdir(w->dir);
    free(w);
    return 0;
}
