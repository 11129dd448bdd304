/* Structures of an older or newer header than the library's. */
#include "holdfast.h"
#include "lib/check.h"

/* A query and what a newer header may have added to it. */
struct longer {
    hf_query known;
    int64_t added[2];
};

static hf_client *client;

static int ask(size_t size, int64_t added)
{
    struct longer q = {.known = {.size = size}, .added = {0, added}};
    hf_view *view = NULL;
    int r = hf_inspect(client, &q.known, &view, NULL);

    hf_view_free(view);
    return r;
}

static int open_with(size_t size, int64_t added)
{
    struct {
        hf_client_options known;
        int64_t added[2];
    } opt = {.known = {.size = size}, .added = {0, added}};
    hf_client *other = NULL;
    int r = hf_open("memory://sized", &opt.known, &other, NULL);

    hf_close(other);
    return r;
}

static int acquire_with(size_t size, int64_t added)
{
    struct {
        hf_options known;
        int64_t added[2];
    } opt = {.known = HF_OPTIONS_INIT, .added = {0, added}};
    hf_lock *lock = NULL;

    opt.known.size = size;
    int r = hf_acquire(client, "x", HF_NTS, &opt.known, &lock, NULL);
    if (r == HF_OK)
        hf_lock_release(lock, NULL);
    return r;
}

static void one_rule_for_all_sizes(void **state)
{
    static const struct {
        int (*pass)(size_t size, int64_t added);
        size_t known;
    } calls[] = {{ask, sizeof(hf_query)},
                 {open_with, sizeof(hf_client_options)},
                 {acquire_with, sizeof(hf_options)}};

    (void)state;
    assert_int_equal(hf_open("memory://sized", NULL, &client, NULL), HF_OK);
    for (size_t i = 0; i < COUNT(calls); i++) {
        size_t known = calls[i].known;
        assert_int_equal(calls[i].pass(known, 0), HF_OK);
        assert_int_equal(calls[i].pass(known, 1), HF_OK); /* is not there by its size */
        assert_int_equal(calls[i].pass(known + 16, 0), HF_OK);
        assert_int_equal(calls[i].pass(known + 16, 1), HF_UNSUPPORTED);
        assert_int_equal(calls[i].pass(0, 0), HF_INVALID);
        assert_int_equal(calls[i].pass(known + 1, 0), HF_INVALID);
        assert_int_equal(calls[i].pass(SIZE_MAX, 0), HF_INVALID);
    }
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_rule_for_all_sizes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
