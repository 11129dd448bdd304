/* See survey.h. */
#include "survey.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/error.h"
#include "server.h"

#include "base/banned.h"

static void ask(struct job *job)
{
    struct probe *probe = (struct probe *)((char *)job - offsetof(struct probe, job));

    probe->code = hf_inspect(probe->store->client, probe->survey->query, &probe->view, &probe->err);
}

static void is_answered(struct posted *posted)
{
    struct probe *probe = (struct probe *)((char *)posted - offsetof(struct probe, job.posted));
    struct survey *survey = probe->survey;

    if (--survey->left > 0)
        return;
    survey->finish(survey->request, survey);
    request_resume(survey->request);
    for (size_t i = 0; i < survey->count; i++)
        hf_view_free(survey->probes[i].view);
    free(survey);
}

void survey_start(struct request *request, const hf_query *query,
                  void (*finish)(struct request *request, const struct survey *survey))
{
    struct stores *stores = &request->server->stores;
    struct survey *survey = calloc(1, sizeof *survey);

    if (survey == NULL) {
        reply_refuse(&request->reply, 500, HF_NO_MEMORY, hf_code_text(HF_NO_MEMORY));
        return;
    }
    *survey = (struct survey){.request = request,
                              .query = query,
                              .finish = finish,
                              .left = stores->count,
                              .count = stores->count};
    request_suspend(request);
    for (size_t i = 0; i < stores->count; i++) {
        struct probe *probe = &survey->probes[i];
        *probe = (struct probe){.job = {.work = ask, .posted.run = is_answered},
                                .survey = survey,
                                .store = &stores->list[i]};
        if (workers_give(&probe->store->workers, &probe->job))
            continue;
        probe->code = hf__fail(&probe->err, HF_FULL, "too many requests wait for this store");
        loop_post(&request->server->loop, &probe->job.posted);
    }
}
