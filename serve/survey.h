/* One look at every store at once, each by a worker of its own. */
#ifndef SERVE_SURVEY_H
#define SERVE_SURVEY_H

#include "request.h"

struct survey;

/* What one store said. */
struct probe {
    struct job job;
    struct survey *survey;
    struct store *store;
    int code;
    hf_error err;
    hf_view *view; /* NULL unless the code is HF_OK */
};

struct survey {
    struct request *request;
    const hf_query *query;
    void (*finish)(struct request *request, const struct survey *survey);
    size_t left; /* answers to come */
    size_t count;
    struct probe probes[STORES_MAX];
};

/* Asks them all what `query` names (NULL: everything; it must stay), and has `finish` make the reply of it. */
void survey_start(struct request *request, const hf_query *query,
                  void (*finish)(struct request *request, const struct survey *survey));

#endif
