/* What SQL servers give back: answers of the routines, rows of the tables, the comment at the head of
 * another client's statement. Whoever may write the tables may have put anything there: nothing is
 * read that is not there, no sum overflows, and no answer is a grant that says nothing. */
#include "base/lease.h"
#include "shape.h"
#include "sql/rows.h"
#include "sql/session/session.h"

#define CELL  80
#define CELLS ((size_t)HF__SQL_ENTRY_CELLS)

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

static int found(void *ctx, const char *name, size_t name_len, const struct hf__entry *e)
{
    (void)ctx, (void)name, (void)name_len;
    REQUIRE(e->place != HF__PLACE_GONE && e->place != HF__PLACE_RETIRED);
    return 0;
}

static void show_row(struct shape *s)
{
    char text[CELLS][CELL];
    const char *cells[CELLS];
    struct hf__search search = {.found = found};
    struct hf__sql_entry entry = {.cells = cells,
                                  .name = "a",
                                  .name_len = 1,
                                  .who = {"", "", "", "", 0},
                                  .now_ms = INT64_C(1700000000000)};

    for (size_t i = 0; i < CELLS; i++)
        cells[i] = i == HF__SQL_ENTRY_TICKET ? make_ticket(s, text[i]) : make_cell(s, text[i]);
    hf__sql_show("sql", &entry, &search, NULL);
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

static void read_comment(struct shape *s)
{
    char *text = fuzz_text(s->data, s->size);
    struct hf__session_comment comment;

    if (hf__session_comment_parse(text, &comment))
        REQUIRE(strlen(comment.who.note) <= HF_NOTE_MAX);
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
        read_comment(&s);
        break;
    default:
        show_row(&s);
    }
    return 0;
}
