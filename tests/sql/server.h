/* A real SQL server under test: what an administrator can ask of it, and what the same question is
 * called there. One of server_postgres.c and server_mysql.c is linked. */
#ifndef TESTS_SQL_SERVER_H
#define TESTS_SQL_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define AWAIT_MS 15000

struct server; /* an administrator's connection */

struct server *server_open(const char *database);
void server_close(struct server *s);
void server_run(struct server *s, const char *sql);
int64_t server_number(struct server *s, const char *sql); /* the first cell */
bool server_try(struct server *s, const char *sql);       /* false: it was refused */
void server_await(struct server *s, const char *sql, int64_t wanted);
void server_await_more(struct server *s, const char *sql, int64_t than);

/* URLs are "<head>?...", of the account that locks. */
extern const char *const server_scheme, *const server_account, *const server_database;
const char *server_address(void); /* host:port */
extern const char
    *const server_create_clock; /* SQL: the table of one instant, for tests of the rules */

/* Faults. */
extern const char *const server_deadlocks;       /* SQL: how many there were */
extern const char *const server_quick_deadlocks; /* SQL: they are looked for at once */
extern const char *const server_limit_statements,
    *const server_unlimit_statements;       /* SQL: 100 ms */
extern const char *const server_no_limit;   /* SQL: for this connection */
extern const char *const server_limit_text; /* in the message */

/* Stops the process, and waits until each of its threads has stopped: a signal takes its time. */
void server_stop_process(pid_t pid);

/* The server does nothing for those who lock until it goes on. */
void server_stop(struct server *s);
void server_go_on(void);
extern const char *const server_sessions; /* SQL: how many of those who lock are connected */

/* hold=session, hold=advisory. */
extern const char *const server_waiters; /* SQL: how many wait */
extern const char *const server_hold_limits[],
    *const server_hold_unlimits[]; /* SQL: of idle sessions and of statements, a second and less */
void server_end_sessions(struct server *s); /* of those who hold or wait */

#endif
