/* What SQL servers give back: answers of the routines, the rows of a record, the comment at the head of
 * another client's statement. Whoever may write the tables may have put anything there: nothing is
 * read that is not there, no sum overflows, and no answer is a grant that says nothing. */
#include "base/lease.h"
#include "shape.h"
#include "sql/hold.h"
#include "sql/record.h"

#define CELL  80
#define ROWS  6
#define CELLS ((size_t)HF__SQL_ENTRY_CELLS)

struct table {
    char text[ROWS][CELLS][CELL];
    const char *cells[ROWS][CELLS];
    size_t rows;
    struct hf__sql_record record;
};

static void check_answer(const struct hf__answer *a)
{
    REQUIRE(a->verdict != HF__VERDICT_GRANTED || (a->generation > 0 && a->lease_ms > 0));
    REQUIRE(a->verdict != HF__VERDICT_QUEUED || a->lease_ms > 0);
    if (a->verdict == HF__VERDICT_GRANTED || a->verdict == HF__VERDICT_QUEUED)
        (void)hf__lease_deadline_ns(INT64_C(1) << 60, a->lease_ms);
}

static const char *make_number(char buf[CELL], int64_t number)
{
    snprintf(buf, CELL, "%" PRId64, number);
    return buf;
}

/* A number that makes sense somewhere, or nothing; or a word, any bytes, any number. */
static const char *make_cell(struct shape *s, char buf[CELL])
{
    static const char *const words[] = {"granted", "queued", "busy", "t", "f", "1.5", "\\x", ""};

    switch (shape_choose(s, 20)) {
    case 1:
        snprintf(buf, CELL, "%s", words[shape_choose(s, 8)]);
        return buf;
    case 2:
        shape_bytes(s, buf, CELL);
        return buf;
    case 3:
        return make_number(buf, shape_number(s));
    case 4:
    case 5:
    case 6:
    case 7:
        return make_number(buf, INT64_C(1700000000000) + (int64_t)shape_byte(s) - 100);
    case 8:
    case 9:
    case 10:
        return make_number(buf, 100 * (int64_t)shape_byte(s));
    case 11:
        return NULL;
    default:
        return make_number(buf, shape_choose(s, 6));
    }
}

static const char *make_ticket(struct shape *s, char buf[CELL])
{
    unsigned choice = shape_choose(s, 16);

    if (choice == 15)
        return make_cell(s, buf);
    memcpy(buf, "\\x", 2);
    shape_ticket(s, buf + 2);
    return choice % 2 == 0 ? buf : buf + 2;
}

static void make_table(struct shape *s, struct table *t)
{
    t->rows = shape_choose(s, ROWS + 1);
    for (size_t i = 0; i < t->rows; i++) {
        for (size_t k = 0; k < CELLS; k++)
            t->cells[i][k] =
                k == HF__SQL_TICKET ? make_ticket(s, t->text[i][k]) : make_cell(s, t->text[i][k]);
    }
}

/* A store whose transactions do nothing. */
static int load(void *ctx)
{
    struct table *t = ctx;
    int code = hf__sql_record_init(&t->record, t->rows, NULL);

    for (size_t i = 0; i < t->rows && code == 0; i++) {
        if (!hf__sql_record_add(&t->record, t->cells[i]))
            code = HF_CORRUPT;
    }
    return code;
}

static int end(void *ctx, int code)
{
    (void)ctx;
    return code;
}

static int write_entry(void *ctx, const struct hf__entry *e)
{
    (void)ctx;
    REQUIRE(e->place >= HF__PLACE_GONE && e->place <= HF__PLACE_RETIRED);
    return 0;
}

static int drop(void *ctx, const struct hf__entry *e, enum hf__place from)
{
    (void)from;
    return write_entry(ctx, e);
}

static int call(void *ctx, const char *wake, const struct hf__entry *e, uint64_t generation)
{
    (void)generation;
    REQUIRE(strlen(wake) < HF__SQL_WAKE);
    return write_entry(ctx, e);
}

static int set_lock(void *ctx, bool let_in)
{
    (void)ctx, (void)let_in;
    return 0;
}

static const struct hf__sql_writer writer = {
    .load = load,
    .end = end,
    .add = write_entry,
    .set = write_entry,
    .move_inside = write_entry,
    .drop = drop,
    .set_retired = write_entry,
    .set_wake = write_entry,
    .call = call,
    .set_lock = set_lock,
};

static int found(void *ctx, const char *name, size_t name_len, const struct hf__entry *e)
{
    (void)ctx, (void)name, (void)name_len;
    REQUIRE(e->place != HF__PLACE_GONE && e->place != HF__PLACE_RETIRED);
    return 0;
}

static void apply(struct shape *s)
{
    static const struct hf__who nobody = {"", "", "", "", 0};
    struct table t = {0};
    struct hf__answer answer = {0};
    struct hf__bid bid = {.name = "a", .name_len = 1, .who = &nobody, .retire_ms = 60000};
    char ticket[33];
    hf_error err;

    shape_ticket(s, ticket);
    REQUIRE(hf__ticket_parse(ticket, &bid.ticket));
    bid.mode = shape_choose(s, 2) ? HF_SHARED : HF_EXCLUSIVE;
    bid.ttl_ms = shape_choose(s, 2) ? 30000 : 0;
    bid.queue = shape_choose(s, 2);
    struct hf__sql_operation op = {
        .kind = (enum hf__operation_kind)shape_choose(s, HF__OPERATION_BREAK + 1),
        .bid = &bid,
        .retire_ms = 60000,
        .generation = (uint64_t)shape_number(s),
        .now = shape_choose(s, 2)};
    t.record.at = (struct hf__moment){INT64_C(1700000000000), UINT64_C(1700000000000000)};
    t.record.record.generation = (uint64_t)shape_number(s) >> 1;
    make_table(s, &t);
    if (hf__sql_apply(&t.record, &op, &writer, &t, &answer, &err) == 0)
        check_answer(&answer);

    for (size_t i = 0; i < t.rows; i++) {
        struct hf__search search = {.found = found};
        struct hf__who who = nobody;
        struct hf__sql_row row;
        if (hf__sql_read_row(t.cells[i], &row))
            hf__sql_show(&search, &row.was, INT64_C(1700000000000), "a", 1, &who);
    }
}

static void read_answer(struct shape *s)
{
    struct hf__answer a = {0};
    char text[HF__SQL_ANSWER_CELLS][CELL];
    const char *cells[HF__SQL_ANSWER_CELLS];

    for (size_t i = 0; i < HF__SQL_ANSWER_CELLS; i++)
        cells[i] = make_cell(s, text[i]);
    if (hf__sql_read_answer(cells, &a))
        check_answer(&a);
}

static void read_about(struct shape *s)
{
    char *text = fuzz_text(s->data, s->size);
    struct hf__about about;

    if (hf__about_parse(text, &about))
        REQUIRE(strlen(about.who.note) <= HF_NOTE_MAX);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shape s = {data, size};

    switch (shape_choose(&s, 4)) {
    case 0:
        read_answer(&s);
        break;
    case 1:
        read_about(&s);
        break;
    default:
        apply(&s);
    }
    return 0;
}
