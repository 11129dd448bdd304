/* The simulated store: a server that applies the real doorman to one record a name, and the network
 * that carries requests, replies and wake-ups late, twice or never. */
#ifndef TESTS_SIM_SERVER_H
#define TESTS_SIM_SERVER_H

#include "stores/store.h"
#include "world.h"

struct bid;

/* A name. */
struct room {
    char name[24];
    size_t name_len;
    struct hf__record record; /* an entry's `who` is its struct bid, or NULL */
    uint64_t highest;         /* generation that was given */
    uint64_t returned;        /* generation that a caller has seen */
    struct hf__value value, remembered;
    uint64_t wrote;      /* what is written are numbers, from 1, in the order of the calls */
    uint64_t written;    /* the highest of them whose write was acknowledged to its caller */
    int64_t waited_ns;   /* when somebody was last seen to wait; 0: never */
    struct bid *present; /* tickets in the record: ledger.c */
    hf_gate *gate;       /* beside the resource that the lock protects */
};

enum op {
    OP_ATTEMPT,
    OP_WITHDRAW,
    OP_RELEASE,
    OP_RENEW,
    OP_INSPECT,
    OP_BREAK,
    OP_BREAK_NOW,
    OP_READ,
    OP_WRITE,
    OPS
};

/* One lock of a request. */
struct item {
    struct room *room;
    struct bid *bid;
    uint64_t generation;
    struct hf__answer answer;
};

struct sim_store;

struct request {
    enum op op;
    int number;
    struct sim_store *store;
    struct process *from;
    struct hf__bid terms; /* OP_ATTEMPT; without name and who */
    int64_t retire_ms, at_least_ms;
    struct hf__value value; /* OP_READ: as found; OP_WRITE */
    struct item *items;
    size_t count;
    const struct hf__search *search; /* OP_INSPECT: until its caller is gone */
    struct hf__entry *found;         /* and what it found, `who` being the struct room */
    size_t found_count;
    struct fiber *caller; /* NULL: does not wait any more */
    bool arrived, answered;
};

/* One end of the network: what hf__open() was given. */
struct sim_store {
    struct hf__store base;
    struct process *process;
    int running; /* calls under way */
    bool reading;
    int wake_fd;
    struct call_out {
        struct bid *bid; /* NULL: everybody */
        uint64_t generation;
    } * called;
    size_t called_count;
    struct sim_store *next;
};

/* The server. */
struct room *server_room(const char *name, size_t len);
size_t server_room_count(void);
struct room *server_room_at(size_t i);
void server_begin(void);
void server_apply(struct request *q);
int64_t server_now_ms(void);
int64_t server_true_ns(int64_t server_ms); /* when its clock will show that */
void server_step_clock(int64_t ms);
void server_remember(void); /* what a loss of the last writes would leave */
void server_lose(void);
void server_sweep(void);

/* The network. A seed may push or poll, and may tell holders (store.h, calls_holders). */
struct network {
    bool pushes, tells_holders;
    int64_t latency_ns, op_timeout_ms, late_ns;
    int trouble_permille; /* of single messages, beside the weather */
    bool quiet;           /* the faults are over */
};
extern struct network network;

void network_begin(void);
void network_add_weather(void);
void network_calm(void);

/* Sends it and waits for the reply: 0, or what store.h lets a store return. */
int network_ask(struct request *q, int64_t deadline_local_ns, hf_error *err);

/* Calls the bid's client, if it listens. */
void network_call(struct bid *bid, uint64_t generation);
void network_call_everybody(void);
void network_tell(bool data_lost); /* every client: its data is lost, or the server is another */
bool network_data_lost(const struct process *process); /* its client was told so */

void network_join(struct sim_store *store);
void network_part(struct sim_store *store);

/* When a request of this kind was last answered late or not at all. INT64_MIN: never. */
int64_t network_trouble_ns(const struct process *process, enum op op);
extern const struct hf__store_type sim_store_type;

#endif
