/* The side of the resource: let in only what no newer holder has overtaken.
 *
 *     ./gate [URL]
 *
 * The gate needs no store. Keep its levels with the data it guards and put them back at start, or a
 * restart forgets whom it has seen. */
#include <holdfast.h>
#include <stdio.h>

/* A holder comes, shows its sequencer and goes. */
static int visit(hf_client *client, char *sequencer, size_t size)
{
    hf_lock *lock;
    hf_error err;
    if (hf_acquire(client, "ledger", HF_NTS, NULL, &lock, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    int code = hf_lock_sequencer(lock, sequencer, size);
    hf_lock_release(lock, NULL);
    return code;
}

static void ask(hf_gate *gate, const char *who, const char *sequencer)
{
    printf("%s: %s\n", who, hf_gate_pass(gate, sequencer, NULL) == HF_OK ? "passes" : "too old");
}

int main(int argc, char **argv)
{
    char early[HF_SEQUENCER_MAX], late[HF_SEQUENCER_MAX];
    uint64_t exclusive, highest;
    hf_client *client;
    hf_gate *gate, *restarted;
    hf_error err;

    if (hf_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (visit(client, early, sizeof early) != HF_OK || visit(client, late, sizeof late) != HF_OK ||
        hf_gate_new(&gate) != HF_OK || hf_gate_new(&restarted) != HF_OK)
        return 1;
    ask(gate, "early", early);
    ask(gate, "late", late);
    ask(gate, "early", early); /* a write that was under way too long */

    int status = hf_gate_levels(gate, "ledger", HF_NTS, &exclusive, &highest) != HF_OK ||
                 hf_gate_restore(restarted, "ledger", HF_NTS, exclusive, highest) != HF_OK ||
                 hf_gate_pass(restarted, early, NULL) != HF_STALE ||
                 hf_check(client, late, NULL) != HF_STALE; /* the store knows: it was released */
    hf_gate_free(restarted);
    hf_gate_free(gate);
    hf_close(client);
    return status;
}
