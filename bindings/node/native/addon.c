/* What JavaScript sees of libholdfast: the entries of init() below, for index.ts alone. Acquire and
 * release are started and end with an event; questions about a lock touch no network; everything else
 * is a job. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

static void set_number(napi_env env, napi_value object, const char *name, double number)
{
    napi_value value;
    napi_create_double(env, number, &value);
    napi_set_named_property(env, object, name, value);
}

napi_value failure_object(napi_env env, const hf_error *err)
{
    napi_value object;
    napi_create_object(env, &object);
    set_number(env, object, "code", err->code);
    set_number(env, object, "retriable", err->retriable);
    set_number(env, object, "storeCode", (double)err->store_code);
    set_number(env, object, "mayHold", (double)err->may_hold_ms);
    napi_set_named_property(env, object, "text", text_value(env, err->text));
    return object;
}

/* For functions that return a code and no more: undefined, or what failed. */
static napi_value outcome(napi_env env, int code, const hf_error *err)
{
    hf_error bare = {.code = code};
    if (code == HF_OK)
        return NULL;
    strncpy(bare.text, hf_code_text(code), sizeof bare.text - 1);
    return failure_object(env, err == NULL ? &bare : err);
}

napi_value text_value(napi_env env, const char *text)
{
    napi_value value;
    if (text == NULL || napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value) != napi_ok)
        napi_get_undefined(env, &value);
    return value;
}

char *text_arg(napi_env env, napi_value value)
{
    size_t len;
    if (napi_get_value_string_utf8(env, value, NULL, 0, &len) != napi_ok)
        return NULL;
    char *text = malloc(len + 1);
    if (text != NULL)
        napi_get_value_string_utf8(env, value, text, len + 1, &len);
    return text;
}

void *pointer_arg(napi_env env, napi_value value)
{
    void *pointer;
    return napi_get_value_external(env, value, &pointer) == napi_ok ? pointer : NULL;
}

/* The order of the numbers, as in index.ts. */
enum { MODE, LIMIT, TTL, WAIT, LOCK_DELAY, MAX_HOLD, OWNER, BY_HAND, CONFIRMED, PATIENCE, NUMBERS };

void options_arg(napi_env env, napi_value value, hf_options *ret_options)
{
    napi_typedarray_type type;
    size_t count;
    void *data;
    bool is;
    *ret_options = (hf_options)HF_OPTIONS_INIT;
    if (napi_is_typedarray(env, value, &is) != napi_ok || !is ||
        napi_get_typedarray_info(env, value, &type, &count, &data, NULL, NULL) != napi_ok ||
        type != napi_float64_array || count != NUMBERS)
        return;
    const double *number = data;
    ret_options->mode = (hf_mode)number[MODE];
    ret_options->limit = (uint32_t)number[LIMIT];
    ret_options->ttl_ms = (int64_t)number[TTL];
    ret_options->wait_ms = (int64_t)number[WAIT];
    ret_options->lock_delay_ms = (int64_t)number[LOCK_DELAY];
    ret_options->max_hold_ms = (int64_t)number[MAX_HOLD];
    ret_options->owner = (uint64_t)number[OWNER];
    ret_options->by_hand = number[BY_HAND] != 0;
    ret_options->confirmed = number[CONFIRMED] != 0;
    ret_options->patience_ms = (int64_t)number[PATIENCE];
}

#define ARGUMENTS(n)    \
    napi_value args[n]; \
    size_t count = n;   \
    napi_get_cb_info(env, info, &count, args, NULL, NULL)

/* acquireStart(client, name, note, numbers, tag) */
static napi_value acquire_start(napi_env env, napi_callback_info info)
{
    ARGUMENTS(5);
    struct client *client = pointer_arg(env, args[0]);
    hf_options options;
    hf_error err;
    void *name;
    size_t len;
    double tag;
    if (client->closing)
        return outcome(env, HF_CLOSED, NULL);
    napi_get_buffer_info(env, args[1], &name, &len);
    napi_get_value_double(env, args[4], &tag);
    options_arg(env, args[3], &options);
    char *note = text_arg(env, args[2]);
    options.note = note;
    int code =
        hf_acquire_start(client->hf, len == 0 ? "" : name, len, &options, (uint64_t)tag, &err);
    free(note);
    if (code == HF_OK)
        client_pending(client, 1);
    return outcome(env, code, &err);
}

/* acquireStop(client, tag): its event follows in any case. */
static napi_value acquire_stop(napi_env env, napi_callback_info info)
{
    ARGUMENTS(2);
    struct client *client = pointer_arg(env, args[0]);
    double tag;
    napi_get_value_double(env, args[1], &tag);
    if (!client->closing)
        hf_acquire_stop(client->hf, (uint64_t)tag);
    return NULL;
}

/* releaseStart(handle, tag) */
static napi_value release_start(napi_env env, napi_callback_info info)
{
    ARGUMENTS(2);
    struct handle *handle = pointer_arg(env, args[0]);
    struct client *client = handle->client;
    hf_error err;
    double tag;
    if (handle->lock == NULL || client->closing)
        return outcome(env, HF_CLOSED, NULL);
    napi_get_value_double(env, args[1], &tag);
    int code = hf_release_start(handle->lock, (uint64_t)tag, &err);
    if (code == HF_OK)
        client_pending(client, 1);
    napi_value failed = outcome(env, code, &err);
    if (code == HF_OK || code == HF_CLOSED)
        handle_forget(handle);
    return failed;
}

/* keep(handle, by): somebody more, or fewer, waits for the loss of it, and for that the loop lives. */
static napi_value keep(napi_env env, napi_callback_info info)
{
    ARGUMENTS(2);
    struct handle *handle = pointer_arg(env, args[0]);
    int32_t by;
    napi_get_value_int32(env, args[1], &by);
    if (handle->lock != NULL)
        client_pending(handle->client, by);
    return NULL;
}

/* closeNow(client): at the end of the process. */
static napi_value close_now(napi_env env, napi_callback_info info)
{
    ARGUMENTS(1);
    struct client *client = pointer_arg(env, args[0]);
    client_stop(client);
    client_end(client);
    client_freed(client);
    return NULL;
}

static napi_value capabilities(napi_env env, napi_callback_info info)
{
    ARGUMENTS(1);
    struct client *client = pointer_arg(env, args[0]);
    napi_value value;
    napi_create_uint32(env, hf_capabilities(client->hf), &value);
    return value;
}

/* look(handle): [state, cause, remaining], or undefined if the lock was given back. */
static napi_value look(napi_env env, napi_callback_info info)
{
    ARGUMENTS(1);
    struct handle *handle = pointer_arg(env, args[0]);
    napi_value list, value;
    if (handle->lock == NULL)
        return NULL;
    int64_t remaining_ms = hf_lock_remaining_ms(handle->lock);
    napi_create_array(env, &list);
    napi_create_int32(env, hf_lock_state(handle->lock), &value);
    napi_set_element(env, list, 0, value);
    napi_create_int32(env, hf_lock_cause(handle->lock), &value);
    napi_set_element(env, list, 1, value);
    napi_create_double(env, (double)remaining_ms, &value);
    napi_set_element(env, list, 2, value);
    return list;
}

/* token(handle): a bigint, or what failed. */
static napi_value token(napi_env env, napi_callback_info info)
{
    ARGUMENTS(1);
    struct handle *handle = pointer_arg(env, args[0]);
    uint64_t generation;
    napi_value value;
    int code = handle->lock == NULL ? HF_CLOSED : hf_lock_generation(handle->lock, &generation);
    if (code != HF_OK)
        return outcome(env, code, NULL);
    napi_create_bigint_uint64(env, generation, &value);
    return value;
}

/* sequencer(handle): a string, or what failed. */
static napi_value sequencer(napi_env env, napi_callback_info info)
{
    ARGUMENTS(1);
    struct handle *handle = pointer_arg(env, args[0]);
    char text[HF_SEQUENCER_MAX];
    int code =
        handle->lock == NULL ? HF_CLOSED : hf_lock_sequencer(handle->lock, text, sizeof text);
    return code == HF_OK ? text_value(env, text) : outcome(env, code, NULL);
}

static napi_value ticket(napi_env env, napi_callback_info info)
{
    ARGUMENTS(1);
    struct handle *handle = pointer_arg(env, args[0]);
    return handle->lock == NULL ? outcome(env, HF_CLOSED, NULL)
                                : text_value(env, hf_lock_ticket(handle->lock));
}

/* reason(handle): why the last renewal failed, or undefined. */
static napi_value reason(napi_env env, napi_callback_info info)
{
    ARGUMENTS(1);
    struct handle *handle = pointer_arg(env, args[0]);
    hf_error err;
    return handle->lock == NULL ? NULL : outcome(env, hf_lock_error(handle->lock, &err), &err);
}

static void on_gate_collected(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    hf_gate_free(data);
}

static napi_value gate_new(napi_env env, napi_callback_info info)
{
    napi_value external;
    hf_gate *gate;
    (void)info;
    int code = hf_gate_new(&gate);
    if (code != HF_OK)
        return outcome(env, code, NULL);
    if (napi_create_external(env, gate, on_gate_collected, NULL, &external) == napi_ok)
        return external;
    hf_gate_free(gate);
    return NULL;
}

static napi_value gate_pass(napi_env env, napi_callback_info info)
{
    ARGUMENTS(2);
    hf_error err;
    char *text = text_arg(env, args[1]);
    int code = hf_gate_pass(pointer_arg(env, args[0]), text, &err);
    free(text);
    return outcome(env, code, &err);
}

/* gateLevels(gate, name): [exclusive, highest], or undefined. */
static napi_value gate_levels(napi_env env, napi_callback_info info)
{
    ARGUMENTS(2);
    uint64_t levels[2];
    napi_value list, value;
    void *name;
    size_t len;
    napi_get_buffer_info(env, args[1], &name, &len);
    if (hf_gate_levels(pointer_arg(env, args[0]), name, len, &levels[0], &levels[1]) != HF_OK)
        return NULL;
    napi_create_array(env, &list);
    for (uint32_t i = 0; i < 2; i++) {
        napi_create_bigint_uint64(env, levels[i], &value);
        napi_set_element(env, list, i, value);
    }
    return list;
}

static napi_value gate_restore(napi_env env, napi_callback_info info)
{
    ARGUMENTS(4);
    uint64_t exclusive, highest;
    bool lossless;
    void *name;
    size_t len;
    napi_get_buffer_info(env, args[1], &name, &len);
    napi_get_value_bigint_uint64(env, args[2], &exclusive, &lossless);
    napi_get_value_bigint_uint64(env, args[3], &highest, &lossless);
    return outcome(env, hf_gate_restore(pointer_arg(env, args[0]), name, len, exclusive, highest),
                   NULL);
}

/* describe(code): [name, text, exit status], as the library has them. */
static napi_value describe(napi_env env, napi_callback_info info)
{
    ARGUMENTS(1);
    napi_value list, value;
    int32_t code;
    napi_get_value_int32(env, args[0], &code);
    napi_create_array(env, &list);
    napi_set_element(env, list, 0, text_value(env, hf_code_name(code)));
    napi_set_element(env, list, 1, text_value(env, hf_code_text(code)));
    napi_create_int32(env, hf_code_exit_status(code), &value);
    napi_set_element(env, list, 2, value);
    return list;
}

/* onEvent(function): called for each event of each client of this environment. */
static napi_value on_event(napi_env env, napi_callback_info info)
{
    ARGUMENTS(1);
    struct environment *environment;
    napi_get_instance_data(env, (void **)&environment);
    napi_create_reference(env, args[0], 1, &environment->on_event);
    return NULL;
}

static void free_environment(napi_env env, void *data, void *hint)
{
    struct environment *environment = data;
    (void)hint;
    if (environment->context != NULL)
        napi_async_destroy(env, environment->context);
    free(environment);
}

/* Below 1.0 the minor version counts: 0.2.3 fits what was built for 0.2.1, and 0.3.0 does not. */
static bool version_fits(const char *library)
{
    const char *dot = strrchr(HF_VERSION, '.');
    size_t len = (size_t)(dot - HF_VERSION) + 1;
    return strncmp(library, HF_VERSION, len) == 0;
}

NAPI_MODULE_INIT()
{
    static const napi_property_descriptor entries[] = {
#define ENTRY(name, function) {name, NULL, function, NULL, NULL, NULL, napi_enumerable, NULL}
        ENTRY("job", job_start),
        ENTRY("acquireStart", acquire_start),
        ENTRY("acquireStop", acquire_stop),
        ENTRY("releaseStart", release_start),
        ENTRY("closeNow", close_now),
        ENTRY("keep", keep),
        ENTRY("capabilities", capabilities),
        ENTRY("look", look),
        ENTRY("token", token),
        ENTRY("sequencer", sequencer),
        ENTRY("ticket", ticket),
        ENTRY("reason", reason),
        ENTRY("gateNew", gate_new),
        ENTRY("gatePass", gate_pass),
        ENTRY("gateLevels", gate_levels),
        ENTRY("gateRestore", gate_restore),
        ENTRY("onEvent", on_event),
        ENTRY("describe", describe),
    };
    struct environment *environment;
    napi_value label;
    if (!version_fits(hf_version())) {
        char text[200];
        snprintf(text, sizeof text,
                 "this package needs libholdfast %s, but the system's is %s: install one that fits",
                 HF_VERSION, hf_version());
        napi_throw_error(env, "HF_UNSUPPORTED", text);
        return NULL;
    }
    environment = calloc(1, sizeof *environment);
    if (environment == NULL ||
        napi_set_instance_data(env, environment, free_environment, NULL) != napi_ok) {
        free(environment);
        napi_throw_error(env, "HF_NO_MEMORY", "out of memory");
        return NULL;
    }
    napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &label);
    napi_async_init(env, NULL, label, &environment->context);
    napi_define_properties(env, exports, sizeof entries / sizeof entries[0], entries);
    napi_set_named_property(env, exports, "version", text_value(env, hf_version()));
    return exports;
}
