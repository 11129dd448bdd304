/* See reply.h. */
#include "reply.h"

#include <stdlib.h>

#include "base/error.h"

#include "base/banned.h"

/* A wait that was in vain is 409 and not 408, which says that the request itself came too slowly, and which some
 * clients repeat by themselves. 504 is kept for what may have been done. */
unsigned reply_status_of(int code)
{
    switch (code) {
    case HF_OK:
        return 200;
    case HF_BUSY:
    case HF_TIMEOUT:
    case HF_STALE:
    case HF_LOST:
    case HF_DEADLOCK:
        return 409;
    case HF_NOT_FOUND:
        return 404;
    case HF_INVALID:
        return 400;
    case HF_UNSUPPORTED:
        return 501;
    case HF_DENIED:
        return 403;
    case HF_UNKNOWN:
        return 504;
    case HF_CORRUPT:
        return 502;
    case HF_CANCELLED:
    case HF_CLOSED:
    case HF_FULL:
    case HF_UNAVAILABLE:
        return 503;
    default:
        return 500;
    }
}

static const char no_memory[] =
    "{\"error\":{\"code\":\"HF_NO_MEMORY\",\"exit_status\":71,\"text\":\"out of memory\","
    "\"retriable\":true,\"may_hold_ms\":0}}\n";

static void say_no_memory(struct reply *reply)
{
    *reply = (struct reply){
        .status = 500, .type = REPLY_JSON, .fixed = no_memory, .len = sizeof no_memory - 1};
}

bool reply_begin(struct reply *reply, unsigned status, struct reply_writer *writer)
{
    reply_clear(reply);
    *reply = (struct reply){.status = status, .type = REPLY_JSON};
    *writer = (struct reply_writer){.reply = reply,
                                    .json.out = open_memstream(&reply->text, &reply->len)};
    if (writer->json.out != NULL)
        return true;
    say_no_memory(reply);
    return false;
}

void reply_end(struct reply_writer *writer)
{
    putc('\n', writer->json.out);
    if (fclose(writer->json.out) == 0)
        return;
    free(writer->reply->text);
    say_no_memory(writer->reply);
}

void reply_json_error(struct cli_json *json, const char *key, const hf_error *err)
{
    cli_json_open(json, key, '{');
    cli_json_text(json, "code", hf_code_name(err->code));
    cli_json_number(json, "exit_status", hf_code_exit_status(err->code));
    cli_json_text(json, "text", err->text[0] != '\0' ? err->text : hf_code_text(err->code));
    cli_json_bool(json, "retriable", err->retriable != 0);
    if (err->code == HF_UNKNOWN)
        cli_json_span(json, "may_hold_ms", err->may_hold_ms);
    else
        cli_json_number(json, "may_hold_ms", 0);
    cli_json_close(json, '}');
}

static void write_error(struct reply *reply, unsigned status, const hf_error *err)
{
    struct reply_writer writer;

    if (!reply_begin(reply, status, &writer))
        return;
    cli_json_open(&writer.json, NULL, '{');
    reply_json_error(&writer.json, "error", err);
    cli_json_close(&writer.json, '}');
    reply_end(&writer);
}

void reply_error(struct reply *reply, const hf_error *err)
{
    write_error(reply, reply_status_of(err->code), err);
}

void reply_refuse(struct reply *reply, unsigned status, int code, const char *text)
{
    hf_error err = {0};

    hf__fail(&err, code, "%s", text);
    err.retriable = status == 503;
    write_error(reply, status, &err);
}

void reply_clear(struct reply *reply)
{
    free(reply->text);
    *reply = (struct reply){0};
}
