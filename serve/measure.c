/* GET /metrics, in the text of OpenMetrics: what the server does, what it finds in the stores, and what its clients count
 * (hf_metrics). Nothing is counted by the name of a lock: there are as many lines as there are stores, codes and causes. */
#include <inttypes.h>
#include <string.h>

#include "cli/entry.h"
#include "routes.h"
#include "server.h"
#include "survey.h"

#include "base/banned.h"

#define OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* What a look at a store adds up to. */
struct sums {
    uint64_t locks, holders, waiting, never, longest_queue;
    int64_t oldest_ms;
};

/* One store, with all that is told of it. */
struct told {
    const char *id;
    bool up;
    struct sums sums;
    hf_metrics metrics;
};

struct page {
    FILE *out;
    size_t count;
    struct told stores[STORES_MAX];
};

static void add_up(const hf_view *view, struct sums *sums)
{
    for (size_t i = 0; i < hf_view_count(view);) {
        struct cli_span span = cli_span_at(view, i);
        uint64_t queue = cli_span_count(&span, HF_PLACE_WAITING);
        sums->locks++;
        sums->waiting += queue;
        if (queue > sums->longest_queue)
            sums->longest_queue = queue;
        for (size_t k = 0; k < span.count; k++, i++) {
            const hf_entry *e = hf_view_entry(view, i);
            if (e->place != HF_PLACE_INSIDE)
                continue;
            sums->holders++;
            sums->never += e->ttl_ms == HF_NEVER;
            if (e->age_ms > sums->oldest_ms)
                sums->oldest_ms = e->age_ms;
        }
    }
}

static void begin(const struct page *page, const char *name, const char *type, const char *help)
{
    fprintf(page->out, "# TYPE holdfast_%s %s\n# HELP holdfast_%s %s\n", name, type, name, help);
    if (strlen(name) > 8 && strcmp(name + strlen(name) - 8, "_seconds") == 0)
        fprintf(page->out, "# UNIT holdfast_%s seconds\n", name);
}

/* Figures of one number for each store. */
struct figure {
    const char *name, *type, *help;
    enum unit { COUNT, MILLISECONDS } unit;
    size_t offset; /* in struct told, of a uint64_t or int64_t */
};

#define OF(member) offsetof(struct told, member)

static const struct figure figures[] = {
    {"store_locks", "gauge", "Locks that somebody holds or waits for.", COUNT, OF(sums.locks)},
    {"store_holders", "gauge", "Holders.", COUNT, OF(sums.holders)},
    {"store_waiting", "gauge", "Waiters.", COUNT, OF(sums.waiting)},
    {"store_longest_queue", "gauge", "Waiters for the lock that has most of them.", COUNT,
     OF(sums.longest_queue)},
    {"store_never_expiring", "gauge", "Holders whose lock never expires.", COUNT, OF(sums.never)},
    {"store_oldest_hold_seconds", "gauge", "For how long the oldest holder has held.", MILLISECONDS,
     OF(sums.oldest_ms)},
    {"held", "gauge", "Locks that the server holds for its clients' connections.", COUNT,
     OF(metrics.held)},
    {"waiting", "gauge", "Bids of its clients that wait.", COUNT, OF(metrics.waiting)},
    {"undoing", "gauge", "Bids and releases whose end the store has not answered yet.", COUNT,
     OF(metrics.undoing)},
    {"store_away_seconds", "gauge", "For how long the store has not answered.", MILLISECONDS,
     OF(metrics.store_away_ms)},
    {"grants", "counter", "Locks that were obtained or adopted.", COUNT, OF(metrics.grants)},
    {"queued", "counter", "Answers that told a bid its place in the queue.", COUNT,
     OF(metrics.queued)},
    {"queued_places", "counter", "The sum of these places.", COUNT, OF(metrics.queued_places)},
    {"longest_queue", "gauge", "The last of these places.", COUNT, OF(metrics.longest_queue)},
    {"renewals", "counter", "Renewals of locks.", COUNT, OF(metrics.renewals)},
    {"renewals_failed", "counter", "Renewals that were not answered, or refused.", COUNT,
     OF(metrics.renewals_failed)},
    {"at_risk", "counter", "Times that a renewal was overdue.", COUNT, OF(metrics.at_risk)},
    {"unknown", "counter", "Bids and releases whose outcome was not known.", COUNT,
     OF(metrics.unknown)},
    {"wakes", "counter", "Calls by the store.", COUNT, OF(metrics.wakes)},
};

static const struct histogram {
    const char *name, *help;
    size_t offset;
} histograms[] = {
    {"wait_seconds", "How long it took to obtain a lock.", OF(metrics.wait)},
    {"hand_over_seconds", "From the news of a grant until the lock was there.",
     OF(metrics.hand_over)},
    {"hold_seconds", "How long locks were held.", OF(metrics.hold)},
    {"renewal_left_seconds", "What was left of a lease when it was renewed.",
     OF(metrics.renewal_left)},
    {"store_call_seconds", "How long the store took to answer.", OF(metrics.call_time)},
};

static void write_figure(const struct page *page, const struct figure *f)
{
    const char *total = strcmp(f->type, "counter") == 0 ? "_total" : "";

    begin(page, f->name, f->type, f->help);
    for (size_t i = 0; i < page->count; i++) {
        const struct told *t = &page->stores[i];
        uint64_t number;
        memcpy(&number, (const char *)t + f->offset, sizeof number);
        fprintf(page->out, "holdfast_%s%s{store=\"%s\"} ", f->name, total, t->id);
        if (f->unit == MILLISECONDS)
            fprintf(page->out, "%.3f\n", (double)number / 1e3);
        else
            fprintf(page->out, "%" PRIu64 "\n", number);
    }
}

static void write_histogram(const struct page *page, const struct histogram *h)
{
    begin(page, h->name, "histogram", h->help);
    for (size_t i = 0; i < page->count; i++) {
        const char *id = page->stores[i].id;
        hf_histogram counts;
        uint64_t sum = 0;
        memcpy(&counts, (const char *)&page->stores[i] + h->offset, sizeof counts);
        for (size_t b = 0; b < HF_BUCKETS; b++) {
            int64_t limit_us = hf_bucket_us(b);
            sum += counts.buckets[b];
            fprintf(page->out, "holdfast_%s_bucket{store=\"%s\",le=\"", h->name, id);
            if (limit_us == INT64_MAX)
                fputs("+Inf", page->out);
            else
                fprintf(page->out, "%g", (double)limit_us / 1e6);
            fprintf(page->out, "\"} %" PRIu64 "\n", sum);
        }
        fprintf(page->out, "holdfast_%s_count{store=\"%s\"} %" PRIu64 "\n", h->name, id, sum);
        fprintf(page->out, "holdfast_%s_sum{store=\"%s\"} %.6f\n", h->name, id,
                (double)counts.sum_us / 1e6);
    }
}

/* By code: those that have been there. */
static void write_codes(const struct page *page, const char *name, const char *help, size_t offset)
{
    begin(page, name, "counter", help);
    for (size_t i = 0; i < page->count; i++) {
        uint64_t counts[HF_METRICS_CODES];
        memcpy(counts, (const char *)&page->stores[i] + offset, sizeof counts);
        for (int code = 1; code < HF_METRICS_CODES; code++) {
            if (counts[code] > 0)
                fprintf(page->out, "holdfast_%s_total{store=\"%s\",code=\"%s\"} %" PRIu64 "\n",
                        name, page->stores[i].id, hf_code_name(-code), counts[code]);
        }
    }
}

/* By cause, also those that have not been there: so that an alert sees the first one rise. */
static void write_losses(const struct page *page)
{
    static const hf_cause causes[] = {HF_CAUSE_EXPIRED, HF_CAUSE_GONE, HF_CAUSE_MAX_HOLD,
                                      HF_CAUSE_STORE_LOST};

    begin(page, "lost", "counter", "Locks that were lost.");
    for (size_t i = 0; i < page->count; i++) {
        for (size_t c = 0; c < sizeof causes / sizeof causes[0]; c++)
            fprintf(page->out, "holdfast_lost_total{store=\"%s\",cause=\"%s\"} %" PRIu64 "\n",
                    page->stores[i].id, cli_cause_word(causes[c]),
                    page->stores[i].metrics.lost[causes[c]]);
    }
}

static void write_calls(const struct page *page)
{
    const char *name;

    begin(page, "store_calls", "counter", "Round trips to the store.");
    for (size_t i = 0; i < page->count; i++) {
        for (hf_call call = 0; call < HF_METRICS_CALLS && (name = hf_call_name(call)) != NULL;
             call++)
            fprintf(page->out, "holdfast_store_calls_total{store=\"%s\",call=\"%s\"} %" PRIu64 "\n",
                    page->stores[i].id, name, page->stores[i].metrics.calls[call]);
    }
}

/* The least that was left at a renewal; nothing while there was none. */
static void write_closest_call(const struct page *page)
{
    begin(page, "closest_call_seconds", "gauge",
          "The least that was left of a lease at a renewal.");
    for (size_t i = 0; i < page->count; i++) {
        if (page->stores[i].metrics.closest_call_ms >= 0)
            fprintf(page->out, "holdfast_closest_call_seconds{store=\"%s\"} %.3f\n",
                    page->stores[i].id, (double)page->stores[i].metrics.closest_call_ms / 1e3);
    }
}

static void write_up(const struct page *page)
{
    begin(page, "store_up", "gauge", "Whether the store answers.");
    for (size_t i = 0; i < page->count; i++)
        fprintf(page->out, "holdfast_store_up{store=\"%s\"} %d\n", page->stores[i].id,
                page->stores[i].up);
}

static void write_server(const struct page *page, const struct counters *counters)
{
    const struct {
        const char *name, *help;
        uint64_t number;
    } gauges[] = {
        {"serve_connections", "Connections that are open.", counters->connections},
        {"serve_streams", "Streams of events that are open.", counters->streams},
        {"serve_bids", "Locks that live on a connection, and bids that wait.", counters->bids},
    };

    for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++) {
        begin(page, gauges[i].name, "gauge", gauges[i].help);
        fprintf(page->out, "holdfast_%s %" PRIu64 "\n", gauges[i].name, gauges[i].number);
    }
    begin(page, "serve_answers", "counter",
          "Requests that were answered, by the first digit of the status.");
    for (size_t i = 2; i < 6; i++)
        fprintf(page->out, "holdfast_serve_answers_total{status=\"%zuxx\"} %" PRIu64 "\n", i,
                counters->answers[i]);
}

static void write_page(const struct page *page, const struct server *server)
{
    write_server(page, &server->counters);
    write_up(page);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        write_figure(page, &figures[i]);
    for (size_t i = 0; i < sizeof histograms / sizeof histograms[0]; i++)
        write_histogram(page, &histograms[i]);
    write_codes(page, "acquires_failed", "Acquires that ended without a lock.", OF(metrics.failed));
    write_codes(page, "store_errors", "Round trips that failed.", OF(metrics.call_errors));
    write_losses(page);
    write_calls(page);
    write_closest_call(page);
    fputs("# EOF", page->out);
}

static void finish(struct request *request, const struct survey *survey)
{
    struct page page = {.count = survey->count};
    struct reply_writer writer;

    if (!reply_begin(&request->reply, 200, &writer))
        return;
    request->reply.type = OPENMETRICS;
    page.out = writer.json.out;
    for (size_t i = 0; i < survey->count; i++) {
        const struct probe *probe = &survey->probes[i];
        struct told *told = &page.stores[i];
        told->id = probe->store->id;
        told->up = probe->code == HF_OK;
        told->metrics = (hf_metrics){.size = sizeof told->metrics, .closest_call_ms = -1};
        hf_metrics_read(probe->store->client, &told->metrics, NULL);
        add_up(probe->view, &told->sums);
    }
    write_page(&page, request->server);
    reply_end(&writer);
}

void measure_metrics(struct request *request)
{
    survey_start(request, NULL, finish);
}
