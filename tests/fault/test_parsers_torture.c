/* Out of memory in the parsers and the gate: every allocation fails in turn, nothing is lost and
 * nothing is left behind. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/url.h"
#include "lib/check.h"
#include "lib/torture.h"

static int parse_url(void *arg)
{
    struct hf__url url = {.setting_count = 77};
    hf_error err = {0};
    int code = hf__url_parse(arg, &url, &err);

    check_number("the code is told twice", err.code, code);
    if (code == 0)
        hf__url_clear(&url);
    else
        check_number("a failure leaves the result alone", (int64_t)url.setting_count, 77);
    return code;
}

static void urls_survive_every_failed_allocation(void **state)
{
    static char *const urls[] = {
        (char *)"sqlite:/var/lib/x.db",
        (char *)"memory://name?op_timeout=5s",
        (char *)"redis://u:p%40@h1:1,[::1]:2/0?a=1&b=2&c=3",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++)
        torture_run(parse_url, urls[i], 1);
}

/* A malformed URL is refused as such, or for want of memory; the scenario's own good end is the
 * refusal. */
static int parse_bad_url(void *arg)
{
    int code = parse_url(arg);

    assert_int_not_equal(code, HF_OK);
    return code == HF_INVALID ? HF_OK : code;
}

static void refused_urls_leave_nothing(void **state)
{
    (void)state;
    torture_run(parse_bad_url, (char *)"redis://u:p@h:1/p?a=1&b=2&c=%00", 1);
    torture_run(parse_bad_url, (char *)"redis://u:p@h:99999/p?a=1", 1);
}

enum { NAMES = 40 }; /* enough for the table to grow more than once */

/* A pass that failed for want of memory must not have been remembered, one that succeeded must. */
static void check_gate(hf_gate *gate, const bool *passed)
{
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16];
        uint64_t x = 0, h = 0;
        snprintf(name, sizeof name, "n/%u", i);
        int code = hf_gate_levels(gate, name, HF_NTS, &x, &h);
        check_number(name, code, passed[i] ? HF_OK : HF_NOT_FOUND);
        check_number(name, (int64_t)h, passed[i] ? i + 1 : 0);
    }
}

static int use_gate(void *arg)
{
    bool passed[NAMES];
    hf_gate *gate = NULL;
    int first = hf_gate_new(&gate);

    (void)arg;
    if (first != 0) {
        assert_null(gate);
        return first;
    }
    for (unsigned i = 0; i < NAMES; i++) {
        char text[32];
        snprintf(text, sizeof text, "hf1:x:%u::n/%u", i + 1, i);
        int code = i % 2 ? hf_gate_restore(gate, strstr(text, "n/"), HF_NTS, i + 1, i + 1)
                         : hf_gate_pass(gate, text, NULL);
        passed[i] = code == 0;
        if (first == 0)
            first = code;
    }
    torture_stop();
    check_gate(gate, passed);
    hf_gate_free(gate);
    return first;
}

static void c10_a_gate_out_of_memory_keeps_what_it_let_pass(void **state)
{
    (void)state;
    torture_run(use_gate, NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_survive_every_failed_allocation),
        cmocka_unit_test(refused_urls_leave_nothing),
        cmocka_unit_test(c10_a_gate_out_of_memory_keeps_what_it_let_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
