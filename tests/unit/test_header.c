/* holdfast.h compiles with nothing before it, as C11 and, by test_header_cpp.cpp, as C++11; and its
 * initialiser says what its comment says. No test library here: it would bring its own headers. */
#include <holdfast.h>

static int options_are_as_documented(void)
{
    const hf_options opt = HF_OPTIONS_INIT;

    return opt.size == sizeof opt && opt.mode == HF_EXCLUSIVE && opt.limit == 0 &&
           opt.ttl_ms == 30000 && opt.wait_ms == HF_FOREVER && opt.lock_delay_ms == 0 &&
           opt.max_hold_ms == 0 && !opt.reentrant && opt.owner == 0 && !opt.by_hand &&
           !opt.confirmed && !opt.note && !opt.cancel && !opt.on_at_risk && !opt.on_lost &&
           !opt.on_wait && !opt.arg;
}

/* Calls that do nothing, so that each must have been declared for this language's linker. */
static int calls_are_found(void)
{
    hf_error err;

    hf_close(HF__NULL);
    hf_view_free(HF__NULL);
    hf_gate_free(HF__NULL);
    hf_cancel_free(HF__NULL);
    return hf_lock_release(HF__NULL, &err) == HF_OK && hf_code_name(HF_OK)[0] == 'H' &&
           hf_version()[0] == HF_VERSION[0] && hf_cause_text(HF_CAUSE_NONE)[0] == 'n';
}

int main(void)
{
    return !(options_are_as_documented() && calls_are_found());
}
