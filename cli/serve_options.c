/* See serve_options.h. */
#include "serve_options.h"

#include "base/url.h"

#include "base/banned.h"

struct cli_serve cli_serve_given = {.max_connections = 1024, .idle_ms = 30000};

#define GIVEN cli_serve_given
const struct cli_option cli_serve_options[] = {
    {'u', "url", CLI_URLS, &GIVEN.urls, "URL", NULL, 0, 0,
     "a store; may be given several times, and as ID=URL"},
    {0, "url-file", CLI_TEXT, &GIVEN.url_file, "FILE", NULL, 0, 0,
     "a file with a URL, or ID=URL, on each line"},
    {'l', "listen", CLI_TEXT, &GIVEN.listen, "ADDRESS", NULL, 0, 0,
     "HOST:PORT or unix:PATH (127.0.0.1:8117)"},
    {0, "token-file", CLI_TEXT, &GIVEN.token_file, "FILE", NULL, 0, 0,
     "who may do what: 'read TOKEN', 'lock TOKEN' or 'break TOKEN' on each line"},
    {0, "tls-cert", CLI_TEXT, &GIVEN.tls_cert, "FILE", NULL, 0, 0,
     "speak TLS with this certificate, and those behind it (PEM)"},
    {0, "tls-key", CLI_TEXT, &GIVEN.tls_key, "FILE", NULL, 0, 0, "its private key (PEM)"},
    {0, "host", CLI_NAMES, &GIVEN.hosts, "NAME", NULL, 0, 0,
     "another name by which the server is called; may be given several times"},
    {0, "allow-break", CLI_FLAG, &GIVEN.allow_break, NULL, NULL, 0, 0,
     "let clients break locks, if their token allows it"},
    {0, "history", CLI_NUMBER, &GIVEN.history, "N", NULL, 0, HF__HISTORY_MAX,
     "keep the last N bids of each lock in the stores, for /v1/stores/ID/history"},
    {0, "max-connections", CLI_NUMBER, &GIVEN.max_connections, "N", NULL, 1, 1000000,
     "so many at once (1024)"},
    {0, "idle-timeout", CLI_DURATION, &GIVEN.idle_ms, "DUR", NULL, 1000, 3600000,
     "cut a client that sends or takes nothing for so long (30s)"},
    {0},
};
