/* The TLS layer. The descriptor is non-blocking here: a read may need a write and the other way
 * round, so OpenSSL says what to wait for. OpenSSL writes with write(), which would raise SIGPIPE;
 * our own BIO sends with MSG_NOSIGNAL instead.
 *
 * OpenSSL keeps a queue of errors a thread, and SSL_get_error() looks at it: what somebody else
 * left there, this program included, would be taken for ours. So it is cleared before each call,
 * and so is errno. */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/banned.h"

struct hf__tls {
    SSL_CTX *context;
    BIO_METHOD *method;
    bool insecure;
};

static int bio_write(BIO *bio, const char *data, int size)
{
    int *fd = BIO_get_data(bio);
    ssize_t n = send(*fd, data, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);

    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)n;
}

static int bio_read(BIO *bio, char *data, int size)
{
    int *fd = BIO_get_data(bio);
    ssize_t n = recv(*fd, data, (size_t)size, MSG_DONTWAIT);

    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)n;
}

/* OpenSSL flushes after each flight of the handshake and gives up if that is refused. */
static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *new_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "holdfast");

    if (method == NULL)
        return NULL;
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_ctrl(method, bio_control);
    BIO_meth_set_create(method, bio_create);
    return method;
}

static const char *reason(char *buf, size_t size)
{
    unsigned long code = ERR_get_error();
    const char *text = ERR_reason_error_string(code);
    char why[80];

    if (ERR_GET_LIB(code) == ERR_LIB_SYS) /* errno, for which the library has no text */
        text = hf__errno_text(ERR_GET_REASON(code), why, sizeof why);
    snprintf(buf, size, "%s", text != NULL ? text : "the TLS library gives no reason");
    ERR_clear_error();
    return buf;
}

static int bad_file(const char *what, const char *file, hf_error *err)
{
    char shown[100], buf[120];

    hf__printable(file, strlen(file), shown, sizeof shown);
    return hf__fail(err, HF_INVALID, "%s '%s': %s", what, shown, reason(buf, sizeof buf));
}

static int load_files(SSL_CTX *context, const struct hf__tls_settings *set, hf_error *err)
{
    const char *key = set->key_file != NULL ? set->key_file : set->cert_file;
    bool verifies = set->mode != HF__TLS_MODE_INSECURE;

    ERR_clear_error();
    if (set->ca_file != NULL && SSL_CTX_load_verify_locations(context, set->ca_file, NULL) != 1)
        return bad_file("tls_ca", set->ca_file, err);
    if (set->ca_file == NULL && verifies && SSL_CTX_set_default_verify_paths(context) != 1)
        return hf__fail(err, HF_INVALID, "the system's certificates cannot be read; set tls_ca");
    if (set->cert_file == NULL)
        return 0;
    if (SSL_CTX_use_certificate_chain_file(context, set->cert_file) != 1)
        return bad_file("tls_cert", set->cert_file, err);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return bad_file("tls_key", key, err);
    return 0;
}

/* A list of one: its length, and itself. Without it servers that speak HTTP/2 over TLS speak
 * HTTP/1.1. */
static bool offer_protocol(SSL_CTX *context, const char *protocol)
{
    unsigned char list[32];
    size_t len = strlen(protocol);

    if (len >= sizeof list)
        return false;
    list[0] = (unsigned char)len;
    memcpy(list + 1, protocol, len);
    return SSL_CTX_set_alpn_protos(context, list, (unsigned)len + 1) == 0;
}

int hf__tls_new(const struct hf__tls_settings *set, const char *protocol, struct hf__tls **ret_tls,
                hf_error *err)
{
    struct hf__tls *tls = calloc(1, sizeof *tls);
    int r;

    if (tls == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    tls->insecure = set->mode == HF__TLS_MODE_INSECURE;
    tls->method = new_method();
    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->method == NULL || tls->context == NULL ||
        (protocol != NULL && !offer_protocol(tls->context, protocol))) {
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    } else {
        SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
        /* A layer may write less than it was given. And who polls many streams keeps what is to be
         * sent in a buffer that may move between a write that has to wait and its repetition. */
        SSL_CTX_set_mode(tls->context,
                         SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_verify(tls->context, tls->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
        r = load_files(tls->context, set, err);
    }
    if (r != 0) {
        hf__tls_free(tls);
        return r;
    }
    *ret_tls = tls;
    return 0;
}

void hf__tls_free(struct hf__tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    free(tls);
}

/* What an OpenSSL call that returned `n` <= 0 means, as a layer says it. */
static ssize_t outcome(SSL *ssl, int n, short *ret_events)
{
    int system_error = errno;

    switch (SSL_get_error(ssl, n)) {
    case SSL_ERROR_WANT_READ:
        *ret_events = POLLIN;
        return -EAGAIN;
    case SSL_ERROR_WANT_WRITE:
        *ret_events = POLLOUT;
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL: /* without errno: the connection ended without the good-bye of TLS */
        return system_error != 0 && ERR_peek_error() == 0 ? -system_error : -ECONNRESET;
    default:
        return -EPROTO;
    }
}

static ssize_t tls_read(struct hf__stream *s, void *buf, size_t size, short *ret_events)
{
    ERR_clear_error();
    errno = 0;
    int n = SSL_read(s->tls, buf, size > INT_MAX ? INT_MAX : (int)size);
    return n > 0 ? n : outcome(s->tls, n, ret_events);
}

/* 0 is the other side's end, which only a read may say. */
static ssize_t tls_write(struct hf__stream *s, const void *buf, size_t size, short *ret_events)
{
    ERR_clear_error();
    errno = 0;
    int n = SSL_write(s->tls, buf, size > INT_MAX ? INT_MAX : (int)size);
    ssize_t result = n > 0 ? n : outcome(s->tls, n, ret_events);
    return result == 0 ? -EPIPE : result;
}

static void tls_close(struct hf__stream *s)
{
    SSL_free(
        s->tls); /* without a farewell: this may be a forked child, with its parent's session */
    s->tls = NULL;
}

static const char *tls_why(struct hf__stream *s, int error, char *buf, size_t size)
{
    char why[120];

    if (error != EPROTO)
        return hf__errno_text(error, buf, size);
    const char *text = reason(why, sizeof why);
    /* Whoever sends an alert speaks TLS: it wants a certificate of ours, say. */
    bool doubtful = !SSL_is_init_finished(s->tls) && strstr(text, "alert") == NULL;
    snprintf(buf, size, "TLS: %s%s", text, doubtful ? " (does this port speak TLS?)" : "");
    return buf;
}

static const struct hf__layer layer = {
    .read = tls_read, .write = tls_write, .close = tls_close, .why = tls_why};

/* A certificate names addresses in figures in a field of its own, and such an address may not be
 * sent as the name of the server that is wanted (SNI, RFC 6066). */
static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char address[16];

    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

static SSL *new_ssl(struct hf__tls *tls, struct hf__stream *s, const char *host)
{
    SSL *ssl = SSL_new(tls->context);
    BIO *bio = ssl != NULL ? BIO_new(tls->method) : NULL;

    if (bio == NULL) {
        SSL_free(ssl);
        return NULL;
    }
    BIO_set_data(bio, &s->fd);
    SSL_set_bio(ssl, bio, bio);
    if (host != NULL && !expect_host(ssl, host)) {
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}

/* OpenSSL notes what it thinks of a certificate also where nobody asked, as with tls=insecure. */
int hf__tls_refused(const struct hf__stream *s, hf_error *err)
{
    if (s->layer != &layer || SSL_get_verify_mode(s->tls) == SSL_VERIFY_NONE)
        return 0;
    long verdict = SSL_get_verify_result(s->tls);
    if (verdict == X509_V_OK)
        return 0;
    hf__fail(
        err, HF_DENIED,
        "the server's certificate is not trusted (%s): name its authority with tls_ca=FILE, or "
        "its right name in the URL; tls=insecure accepts any",
        X509_verify_cert_error_string(verdict));
    hf__set_store_code(err, verdict);
    return HF_DENIED;
}

int hf__tls_prepare(struct hf__tls *tls, struct hf__stream *s, const char *host, hf_error *err)
{
    SSL *ssl = new_ssl(tls, s, tls->insecure ? NULL : host);

    if (ssl == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    SSL_set_connect_state(ssl);
    s->tls = ssl;
    s->layer = &layer;
    return 0;
}

int hf__tls_start(struct hf__tls *tls, struct hf__stream *s, const char *host, int64_t deadline_ns,
                  hf_error *err)
{
    int r = hf__tls_prepare(tls, s, host, err);
    char buf[120];

    if (r != 0)
        return r;
    for (;;) {
        short events = 0;
        ERR_clear_error();
        errno = 0;
        int n = SSL_connect(s->tls);
        if (n == 1)
            return 0;
        ssize_t result = outcome(s->tls, n, &events);
        if (result != -EAGAIN && hf__tls_refused(s, err) != 0)
            return HF_DENIED;
        /* A server that does not speak TLS either answers in its own protocol or waits for more of
         * ours: both are usually a port that was mistaken for another. */
        if (result == -EPROTO)
            return hf__fail(err, HF_UNAVAILABLE, "TLS: %s (does this port speak TLS?)",
                            reason(buf, sizeof buf));
        if (result != -EAGAIN)
            return hf__fail(err, HF_UNAVAILABLE, "TLS: the server ended the handshake");
        if (hf__wait_fd(s->fd, events, s->env, deadline_ns) != 0)
            return hf__fail(err, HF_UNAVAILABLE,
                            "TLS: no answer in time (does this port speak TLS?)");
    }
}
