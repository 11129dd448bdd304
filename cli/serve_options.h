/* The options of the server: one table for the verb `serve`, which checks them and starts it, and for the program itself.
 */
#ifndef CLI_SERVE_OPTIONS_H
#define CLI_SERVE_OPTIONS_H

#include "cli.h"

struct cli_serve {
    struct cli_urls urls;
    const char *url_file; /* "URL" or "ID=URL" on each line */
    const char *listen;   /* HOST:PORT or unix:PATH; NULL: handed down, or the default */
    const char *token_file, *tls_cert, *tls_key;
    struct cli_names hosts;
    bool allow_break;
    int64_t max_connections, idle_ms;
    int64_t history; /* 0: as the URLs say */
};

extern struct cli_serve cli_serve_given; /* after the parsing, with the presets */
extern const struct cli_option cli_serve_options[];

#define CLI_SERVE_SUMMARY "Serve the locks of one or more stores over HTTP, with a dashboard."

#endif
