/* The collections of a row of the Cassandra store: whatever stands in them, nothing is read that is
 * not there; what is accepted is written back so that it reads the same. */
#include "fuzz.h"
#include "stores/cassandra/simple.h"

static struct hf__cql_bytes part(const uint8_t *from, size_t len)
{
    return (struct hf__cql_bytes){len > 0 ? from : NULL, len};
}

/* Cuts the input at two places that its first two bytes name; a part of no bytes is null. */
static struct hf__cs_packed split(const uint8_t *data, size_t size)
{
    size_t a = size > 2 ? data[0] * (size - 2) / 255 : 0;
    size_t b = size > 2 ? a + data[1] * (size - 2 - a) / 255 : 0;
    const uint8_t *from = data + 2;

    if (size <= 2)
        return (struct hf__cs_packed){0};
    return (struct hf__cs_packed){part(from, a), part(from + a, b - a),
                                  part(from + b, size - 2 - b)};
}

static bool same(const struct hf__entry *a, const struct hf__entry *b)
{
    return hf__ticket_equal(&a->ticket, &b->ticket) && a->place == b->place &&
           a->until_ms == b->until_ms && a->lease_ms == b->lease_ms && a->mode == b->mode &&
           a->limit == b->limit && a->generation == b->generation && a->ttl_ms == b->ttl_ms &&
           a->lock_delay_ms == b->lock_delay_ms && a->since_ms == b->since_ms &&
           a->claimed == b->claimed && a->retire_ms == b->retire_ms;
}

static void write_back(struct hf__cs_row *row)
{
    struct hf__cql_writer w;
    struct hf__cs_row again = {0};

    if (row->count > 0)
        memcpy(row->record.entries, row->was, row->count * sizeof *row->was);
    row->record.count = row->count;
    hf__cql_writer_init(&w, HF__CS_ROW_MAX);
    hf__cs_pack(&w, row,
                HF__CS_IN(HF__PLACE_WAITING) | HF__CS_IN(HF__PLACE_INSIDE) |
                    HF__CS_IN(HF__PLACE_LINGERING) | HF__CS_IN(HF__PLACE_RETIRED));
    REQUIRE(!w.failed);
    struct hf__cs_packed packed = {.holders = {w.data, w.len}};
    REQUIRE(hf__cs_row_take(&again, &packed, NULL) == 0 && again.count == row->count);
    for (size_t i = 0; i < row->count; i++)
        REQUIRE(same(&row->was[i], &again.was[i]) ||
                hf__cs_row_was(row, &row->was[i].ticket) != &row->was[i]); /* a ticket twice */
    hf__cs_row_clear(&again);
    hf__cql_writer_clear(&w);
}

/* layout=simple: names and values as text. */
static void read_simple(const uint8_t *data, size_t size)
{
    char name[HF_NAME_MAX], text[HF__CS_NAME_TEXT];
    struct hf__cql_bytes bytes = part(data, size);
    struct hf__cs_value value = hf__cs_read_value(bytes);
    size_t len;

    REQUIRE(value.ttl_ms == HF__NEVER || (value.ttl_ms >= -1 && value.ttl_ms <= HF_TTL_MAX_MS));
    REQUIRE(value.since_ms >= 0);
    REQUIRE(strlen(hf__who_plain(value.who.note)) <= 4 * HF_NOTE_MAX);
    if (!hf__cs_name_bytes(bytes, name, &len))
        return;
    REQUIRE(len >= 1 && len <= HF_NAME_MAX);
    hf__cs_name_text(name, len, text);
    REQUIRE(strlen(text) < sizeof text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_simple(data, size);

    struct hf__cs_packed packed = split(data, size);
    struct hf__cs_row row = {0};
    hf_error err;
    int code = hf__cs_row_take(&row, &packed, &err);

    REQUIRE(code == 0 || (code == HF_CORRUPT && is_printable(err.text)));
    REQUIRE(code != 0 || packed.holders.data == NULL || packed.holders.len >= 4);
    REQUIRE(code != 0 || packed.waiters.data == NULL || packed.waiters.len >= 4);
    if (code == 0)
        write_back(&row);
    hf__cs_row_clear(&row);
    return 0;
}
