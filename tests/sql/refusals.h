/* What goes wrong on each server, for test_refusals.c: refusals_postgres.c, refusals_mysql.c. */
#ifndef TESTS_SQL_REFUSALS_H
#define TESTS_SQL_REFUSALS_H

#include <pthread.h>

#include "holdfast.h"
#include "sql/server.h"

struct refusal {
    const char
        *what; /* as `refuse` takes it, or a URL with %s for the address; NULL ends the list */
    int code;
    const char *text; /* in the message */
};
extern const struct refusal refusals[], refused_urls[];
extern const char *const conflicts[]; /* as `refuse` takes it; ends with NULL */

/* Every grant fails so, so many times. */
void refuse(struct server *s, const char *what, int times);
void stop_refusing(struct server *s);
extern const char *const refusals_tried; /* SQL: how many grants were tried since */

void kill_connections(struct server *s);      /* of the account that locks */
extern const char *const connections;         /* SQL: how many there are */
extern const char *const connections_by_name; /* SQL: that say who they are; NULL: cannot be seen */

/* SQL: the grants of "forgotten" are gone, as after a failover that lost them; ends with NULL. */
extern const char *const forget_grants[];

/* An account with the least rights that `holdfast setup --print` names: it may create nothing. */
void make_least_account(struct server *s);
extern const char *const least_account;
extern const char *const revoke_routines, *const grant_routines; /* SQL: its right to use them */

/* SQL: the routines do not say their version, as those of before could not; or say 1. */
extern const char *const drop_version, *const lower_version;
extern const char *const admin_account; /* may create tables */

/* More cases, of this server only. */
struct refusals {
    struct server *admin; /* in the database of the locks */
    hf_client *client;
    hf_error err;
};
extern const struct own_case {
    const char *name; /* NULL ends the list */
    void (*run)(void **state);
} own_cases[];

/* Waits for the lock in a thread of its own. */
struct refusals_waiter {
    hf_client *client;
    const char *name;
    pthread_t thread;
    int code;
    hf_lock *lock;
};
void refusals_wait(struct refusals_waiter *w);

hf_client *refusals_open(struct refusals *f, const char *account, const char *rest);
int refusals_take(struct refusals *f, hf_client *client, const char *name, hf_lock **ret_lock);
void refusals_check(const struct refusals *f, int got, int wanted);

#endif
