/* What became of a request: an answer, a refusal by the server, or a connection that failed. What
 * matters most is whether it may have been applied, and whether another server could do better. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/etcd/http.h"

#include "util/banned.h"

/* gRPC's codes, as the gateway shows them. */
enum {
    NOT_FOUND = 5,
    DENIED = 7,
    EXHAUSTED = 8,
    PRECONDITION = 9,
    UNAVAILABLE = 14,
    NO_TOKEN = 16
};

static bool never_sent(CURLcode c)
{
    return c == CURLE_COULDNT_CONNECT || c == CURLE_COULDNT_RESOLVE_HOST ||
           c == CURLE_SSL_CONNECT_ERROR || c == CURLE_PEER_FAILED_VERIFICATION ||
           c == CURLE_SSL_CERTPROBLEM || c == CURLE_SSL_CACERT_BADFILE;
}

/* Servers end a connection without a word when it is not the kind they want. */
static const char *tls_hint(CURLcode c, const char *where)
{
    bool plain = strncmp(where, "http:", 5) == 0;

    if (plain && (c == CURLE_GOT_NOTHING || c == CURLE_WEIRD_SERVER_REPLY))
        return " (if it wants TLS: tls=verify)";
    if (!plain && (c == CURLE_RECV_ERROR || c == CURLE_SEND_ERROR))
        return " (if it wants a certificate: tls_cert=FILE)";
    if (!plain && c == CURLE_SSL_CONNECT_ERROR)
        return " (if it has no TLS: tls=off)";
    if (c == CURLE_PEER_FAILED_VERIFICATION)
        return " (name its authority: tls_ca=FILE)";
    return "";
}

void hf__etcd_transport_failed(struct hf__etcd_outcome *o, CURL *curl, CURLcode c,
                               const char *where, hf_error *err)
{
    double connected = 0;

    curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME, &connected);
    bool denied = c == CURLE_PEER_FAILED_VERIFICATION || c == CURLE_SSL_CERTPROBLEM ||
                  c == CURLE_SSL_CACERT_BADFILE;
    o->maybe = !never_sent(c) && connected > 0;
    o->next = true;
    o->passing = o->maybe && c != CURLE_OPERATION_TIMEDOUT;
    o->code = o->maybe ? HF_UNKNOWN : denied ? HF_DENIED : HF_UNAVAILABLE;
    hf__fail(err, o->code, "etcd: %s: %s%s", where, curl_easy_strerror(c), tls_hint(c, where));
    hf__set_store_code(err, c);
}

/* What the server says, and what to do about it. */
static const char *refusal_hint(const char *text)
{
    static const char *const hints[][2] = {
        {"user name is empty", " (name a user and its password in the URL)"},
        {"authentication is not enabled",
         " (leave user and password out of the URL, or enable it with etcdctl)"},
        {"permission denied", " (this user must be allowed to read and write below the prefix)"},
        {"database space exceeded", " (compact and defragment it, then disarm its alarm)"},
    };

    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        if (strstr(text, hints[i][0]) != NULL)
            return hints[i][1];
    }
    return "";
}

static void server_refused(struct hf__etcd_outcome *o, const json_t *answer, const char *where,
                           hf_error *err)
{
    const json_t *inner = json_object_get(answer, "error");
    const json_t *from = json_is_object(inner) ? inner : answer; /* in a stream it is one deeper */
    const char *text = json_string_value(json_object_get(from, "message"));
    int64_t grpc = hf__etcd_int(from, json_is_object(inner) ? "grpc_code" : "code");
    char shown[160];

    if (text == NULL)
        text = json_string_value(inner);
    if (text == NULL)
        text = "an answer without a reason";
    o->no_token = grpc == NO_TOKEN || strstr(text, "invalid auth token") != NULL ||
                  strstr(text, "user name is empty") != NULL ||
                  strstr(text, "revision of auth store is old") != NULL;
    bool full = grpc == EXHAUSTED && strstr(text, "space") != NULL;
    o->next = o->maybe =
        grpc == UNAVAILABLE || grpc == 4 || (grpc == EXHAUSTED && !full) || grpc == 0 || grpc == 2;
    o->passing = grpc == UNAVAILABLE;
    o->code = grpc == NOT_FOUND                              ? HF_NOT_FOUND
              : strstr(text, "lease already exists") != NULL ? HF_BUSY
              : full                                         ? HF_FULL
              : o->no_token || grpc == DENIED || grpc == 3 ||
                      strstr(text, "authentication is not enabled") != NULL
                  ? HF_DENIED
              : o->maybe ? HF_UNKNOWN
                         : HF_CORRUPT;
    hf__fail(err, o->code, "etcd: %s: %s%s", where,
             hf__sentence(text, strlen(text), shown, sizeof shown), refusal_hint(text));
    hf__set_store_code(err, grpc);
}

/* A refusal in a stream is given alone, whatever came before it. */
static json_t *load(const struct hf__etcd_body *body, bool stream)
{
    json_t *all = stream ? json_array() : NULL;
    size_t at = 0;

    while (at < body->len) {
        json_error_t where;
        json_t *one = json_loadb(body->text + at, body->len - at, JSON_DISABLE_EOF_CHECK, &where);
        if (one == NULL)
            break;
        if (!stream)
            return one;
        if (json_object_get(one, "error") != NULL) {
            json_decref(all);
            return one;
        }
        json_array_append_new(all, one);
        at += (size_t)where.position;
        while (at < body->len && (body->text[at] == '\n' || body->text[at] == ' '))
            at++;
    }
    return all;
}

void hf__etcd_read_answer(struct hf__etcd_outcome *o, CURL *curl, const struct hf__etcd_body *body,
                          bool stream, hf_error *err)
{
    long status = 0, connects = 0;
    char *url = NULL, where[HF__ETCD_WHERE];

    curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &url);
    snprintf(where, sizeof where, "%s", url != NULL ? url : "");
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &connects);
    o->reconnected = connects > 0;
    json_t *answer = load(body, stream);
    if (answer == NULL) {
        o->maybe = o->next = o->passing = true;
        o->code = hf__fail(err, status == 404 ? HF_CORRUPT : HF_UNKNOWN,
                           "etcd: %s: no JSON (HTTP status %ld)", where, status);
        hf__set_store_code(err, status);
    } else if (status != 200 || json_object_get(answer, "error") != NULL) {
        server_refused(o, answer, where, err);
        json_decref(answer);
    } else {
        o->code = 0;
        o->answer = answer;
    }
}
