/* Who may do what. Whoever reaches a socket of this machine may read, lock and, where it is allowed, break, unless there
 * is a file of tokens. A web page that somebody has open reaches it too, so a request must name a host of ours and
 * must not come from another origin. */
#ifndef SERVE_ACCESS_H
#define SERVE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

enum role { ROLE_NONE, ROLE_READ, ROLE_LOCK, ROLE_BREAK }; /* each may do what those before may */

#define TOKEN_LEAST 16
#define TOKEN_MAX   256 /* with the NUL */
#define ACCESS_MAX  64  /* tokens, and hosts */

struct access {
    bool has_tokens; /* without, everybody has ROLE_BREAK */
    bool any_host;   /* a unix socket: no browser gets there */
    size_t token_count, host_count;
    struct token {
        enum role role;
        char text[TOKEN_MAX]; /* zeros behind it */
    } tokens[ACCESS_MAX];
    const char *hosts[ACCESS_MAX]; /* besides this machine's own names; not copied */
};

/* Reads "ROLE TOKEN" on each line; '#' begins a comment. 0, or an exit status after a sentence: also if others than
 * its owner can open it. */
int access_read_tokens(struct access *access, const char *path);

/* The role of the header Authorization (NULL: there is none). Takes as long for a wrong token as for a right one. */
enum role access_role(const struct access *access, const char *authorization);

/* Whether the header Host names us, with or without a port. */
bool access_is_our_host(const struct access *access, const char *host);

/* Whether the headers Origin and Sec-Fetch-Site (NULL: not there) are those of a page of ours, or of no page. */
bool access_is_our_origin(const char *host, const char *origin, const char *fetch_site);

#endif
