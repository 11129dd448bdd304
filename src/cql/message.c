/* Requests. What differs between the versions: v5 has 32 flags where v4 has 8, flags after the text
 * of PREPARE, and names the result's metadata in EXECUTE. */
#include "cql/message.h"

#include <string.h>

#include "base/banned.h"

enum {
    WITH_VALUES = 0x01,
    SKIP_METADATA = 0x02,
    WITH_PAGE_SIZE = 0x04,
    WITH_PAGING_STATE = 0x08,
    WITH_SERIAL = 0x10,
};

void hf__cql_write_startup(struct hf__cql_writer *w, int version)
{
    static const char *const options[][2] = {{"CQL_VERSION", "3.0.0"}, {"DRIVER_NAME", "holdfast"}};
    size_t count = sizeof options / sizeof options[0];

    hf__cql_begin_frame(w, version, HF__CQL_OP_STARTUP);
    hf__cql_put_short(w, (uint16_t)count);
    for (size_t i = 0; i < count; i++) {
        hf__cql_put_string(w, options[i][0]);
        hf__cql_put_string(w, options[i][1]);
    }
    hf__cql_end_frame(w);
}

void hf__cql_write_options(struct hf__cql_writer *w, int version)
{
    hf__cql_begin_frame(w, version, HF__CQL_OP_OPTIONS);
    hf__cql_end_frame(w);
}

void hf__cql_write_login(struct hf__cql_writer *w, int version, const char *user,
                         const char *password)
{
    hf__cql_begin_frame(w, version, HF__CQL_OP_AUTH_RESPONSE);
    size_t token = hf__cql_begin_bytes(w);
    hf__cql_put_byte(w, 0);
    hf__cql_put(w, user, strlen(user));
    hf__cql_put_byte(w, 0);
    hf__cql_put(w, password, strlen(password));
    hf__cql_end_bytes(w, token);
    hf__cql_end_frame(w);
}

static int flags_of(const struct hf__cql_parameters *p)
{
    return (p->value_count > 0 ? WITH_VALUES : 0) | (p->skip_metadata ? SKIP_METADATA : 0) |
           (p->page_size > 0 ? WITH_PAGE_SIZE : 0) |
           (p->paging_state.data != NULL ? WITH_PAGING_STATE : 0) |
           (p->serial != 0 ? WITH_SERIAL : 0);
}

static void put_parameters(struct hf__cql_writer *w, int version,
                           const struct hf__cql_parameters *p)
{
    hf__cql_put_short(w, (uint16_t)p->consistency);
    if (version >= 5)
        hf__cql_put_int(w, flags_of(p));
    else
        hf__cql_put_byte(w, (uint8_t)flags_of(p));
    if (p->value_count > 0) {
        w->failed = w->failed || p->value_count > UINT16_MAX;
        hf__cql_put_short(w, (uint16_t)p->value_count);
    }
    for (size_t i = 0; i < p->value_count; i++)
        hf__cql_put_value(w, &p->values[i]);
    if (p->page_size > 0)
        hf__cql_put_int(w, p->page_size);
    if (p->paging_state.data != NULL)
        hf__cql_put_bytes(w, p->paging_state);
    if (p->serial != 0)
        hf__cql_put_short(w, (uint16_t)p->serial);
}

void hf__cql_write_query(struct hf__cql_writer *w, int version, const char *text,
                         const struct hf__cql_parameters *parameters)
{
    hf__cql_begin_frame(w, version, HF__CQL_OP_QUERY);
    hf__cql_put_long_string(w, text);
    put_parameters(w, version, parameters);
    hf__cql_end_frame(w);
}

void hf__cql_write_prepare(struct hf__cql_writer *w, int version, const char *text)
{
    hf__cql_begin_frame(w, version, HF__CQL_OP_PREPARE);
    hf__cql_put_long_string(w, text);
    if (version >= 5)
        hf__cql_put_int(w, 0);
    hf__cql_end_frame(w);
}

void hf__cql_write_execute(struct hf__cql_writer *w, int version,
                           const struct hf__cql_prepared *prepared,
                           const struct hf__cql_parameters *parameters)
{
    hf__cql_begin_frame(w, version, HF__CQL_OP_EXECUTE);
    hf__cql_put_short_bytes(w, (struct hf__cql_bytes){prepared->id, prepared->id_len});
    if (version >= 5)
        hf__cql_put_short_bytes(
            w, (struct hf__cql_bytes){prepared->metadata_id, prepared->metadata_id_len});
    put_parameters(w, version, parameters);
    hf__cql_end_frame(w);
}
