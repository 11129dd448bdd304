/* /metrics, in the text of OpenMetrics. Nothing is counted by the name of a lock, so there are as many lines as there are
 * stores. */
#include <inttypes.h>

#include "routes.h"
#include "server.h"

#include "base/banned.h"

#define OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

static void write_server(FILE *out, const struct counters *counters)
{
    fputs("# TYPE holdfast_serve_connections gauge\n"
          "# HELP holdfast_serve_connections Connections that are open.\n",
          out);
    fprintf(out, "holdfast_serve_connections %" PRIu64 "\n", counters->connections);
    fputs("# TYPE holdfast_serve_streams gauge\n"
          "# HELP holdfast_serve_streams Streams of events that are open.\n",
          out);
    fprintf(out, "holdfast_serve_streams %" PRIu64 "\n", counters->streams);
    fputs("# TYPE holdfast_serve_bids gauge\n"
          "# HELP holdfast_serve_bids Locks that live on a connection, and bids that wait.\n",
          out);
    fprintf(out, "holdfast_serve_bids %" PRIu64 "\n", counters->bids);
    fputs("# TYPE holdfast_serve_answers counter\n"
          "# HELP holdfast_serve_answers Requests that were answered, by the first digit of the "
          "status.\n",
          out);
    for (size_t i = 2; i < 6; i++)
        fprintf(out, "holdfast_serve_answers_total{status=\"%zuxx\"} %" PRIu64 "\n", i,
                counters->answers[i]);
}

void measure_metrics(struct request *request)
{
    struct reply_writer writer;

    if (!reply_begin(&request->reply, 200, &writer))
        return;
    request->reply.type = OPENMETRICS;
    write_server(writer.json.out, &request->server->counters);
    fputs("# EOF", writer.json.out);
    reply_end(&writer);
}
