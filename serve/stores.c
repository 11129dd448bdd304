/* See stores.h. */
#include "stores.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/url.h"
#include "bid.h"
#include "board.h"
#include "cli/cli.h"
#include "core/registry.h"

#include "base/banned.h"

/* The length of an ID in front of '=', which no URL has before its colon; 0: there is none. */
static size_t id_length(const char *text)
{
    size_t len = 0;

    while (isalnum((unsigned char)text[len]) || (text[len] != '\0' && strchr("-_.", text[len])))
        len++;
    return text[len] == '=' ? len : 0;
}

static bool is_taken(const struct stores *stores, const char *id)
{
    for (size_t i = 0; i < stores->count; i++) {
        if (strcmp(stores->list[i].id, id) == 0)
            return true;
    }
    return false;
}

/* The scheme, and a number behind it if another store has it already. */
static void choose_id(const struct stores *stores, struct store *store)
{
    char id[STORE_ID_MAX];
    unsigned n = 1;

    snprintf(id, sizeof id, "%.20s", store->kind);
    while (is_taken(stores, id))
        snprintf(id, sizeof id, "%.20s-%u", store->kind, ++n);
    memcpy(store->id, id, sizeof id);
}

static int name_store(const struct stores *stores, struct store *store, const char *text,
                      const char *url)
{
    size_t len = id_length(text);

    snprintf(store->kind, sizeof store->kind, "%.*s", (int)strcspn(url, ":"), url);
    hf__url_redact(url, store->shown, sizeof store->shown);
    if (len >= sizeof store->id)
        return cli_fail(EXIT_USAGE, "the name of a store has at most %d characters",
                        STORE_ID_MAX - 1);
    if (len == 0) {
        choose_id(stores, store);
        return 0;
    }
    memcpy(store->id, text, len);
    store->id[len] = '\0';
    if (is_taken(stores, store->id))
        return cli_fail(EXIT_USAGE, "two stores are called '%s'", store->id);
    return 0;
}

static void take_events(struct source *source, uint32_t events)
{
    (void)events;
    bids_take_events((struct store *)((char *)source - offsetof(struct store, events)));
}

/* What happens in the background, a lock that was lost above all, for whoever reads the log of the server. */
static void log_entry(const hf_log_entry *entry, void *arg)
{
    const struct store *store = arg;

    cli_fail(0, "%s: %s", store->id, entry->text);
}

/* With history=N, if that is asked for and not said already. NULL: out of memory. */
static char *with_history(const char *url, int64_t history)
{
    const char *options = strchr(url, '?');
    char *text;

    if (history == 0 || strstr(options != NULL ? options : "", "history=") != NULL)
        return strdup(url);
    return asprintf(&text, "%s%chistory=%jd", url, options != NULL ? '&' : '?', (intmax_t)history) <
                   0
               ? NULL
               : text;
}

static int open_client(struct stores *stores, struct store *store, const char *url)
{
    const hf_client_options options = {.size = sizeof options,
                                       .program = SERVER_PROGRAM,
                                       .metrics = 1,
                                       .on_log = log_entry,
                                       .log_arg = store};
    hf_error err = {0};

    if (hf__url_is_redacted(url))
        return cli_fail(EXIT_USAGE,
                        "the URL of '%s' has its password removed; write it whole, or "
                        "use password_file",
                        store->id);
    char *whole = with_history(url, stores->history);
    if (whole == NULL)
        return cli_fail(EXIT_MACHINE, "out of memory");
    int code = hf_open(whole, &options, &store->client, &err);
    explicit_bzero(whole, strlen(whole));
    free(whole);
    if (code != HF_OK)
        return cli_fail_error(&err);
    store->server = stores->server;
    store->events.ready = take_events;
    int fd = hf_event_fd(store->client);
    if (fd < 0 || loop_add(stores->loop, &store->events, fd, EPOLLIN) != 0) {
        hf_close(store->client);
        return cli_fail(EXIT_MACHINE, "no descriptors are to be had");
    }
    workers_init(&store->workers, stores->loop);
    stores->count++;
    return 0;
}

int stores_open(struct stores *stores, const char *text)
{
    struct store *store = &stores->list[stores->count];
    char *embedded = NULL;
    hf_error err = {0};

    if (stores->count == STORES_MAX)
        return cli_fail(EXIT_USAGE, "there are more than %d stores", STORES_MAX);
    if (text == NULL && hf__embedded_url(&embedded, &err) != HF_OK)
        return cli_fail_error(&err);
    if (text == NULL)
        text = embedded;
    const char *url = text + id_length(text);
    url += *url == '=';
    int status = name_store(stores, store, text, url);
    if (status == 0)
        status = open_client(stores, store, url);
    free(embedded);
    return status;
}

void stores_close(struct stores *stores)
{
    for (size_t i = 0; i < stores->count; i++)
        workers_clear(&stores->list[i].workers);
    for (size_t i = 0; i < stores->count; i++) {
        struct store *store = &stores->list[i];
        loop_remove(stores->loop, &store->events);
        board_free(store->board);
        hf_close(store->client);
        bids_free(store);
    }
    stores->count = 0;
}

void stores_stop(struct stores *stores)
{
    for (size_t i = 0; i < stores->count; i++)
        bids_stop(&stores->list[i]);
}

struct store *stores_find(struct stores *stores, const struct bytes *id)
{
    for (size_t i = 0; i < stores->count; i++) {
        if (bytes_are(id, stores->list[i].id))
            return &stores->list[i];
    }
    return NULL;
}
