#!/usr/bin/env python3
"""Plants one real mistake after the other in a copy of a source file, links the simulation with it, and
expects a seed that finds it. Prints one line a mistake and, last, "N passed, N failed".

    tests/sim/mutants.py [--build build-dev] [--seeds 4000] [NAME...]

A mistake whose text is no longer in the file is a failure: the list below must follow the sources.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# name, file, what is there, what a mistake would make of it
MUTANTS = [
    ("deadline from the reply", "src/doorman/bidder.c",
     "believe(b, from->sent_ns,", "believe(b, now_ns,"),
    ("no drift taken off", "src/base/lease.c",
     "return sent_ns + lease_ns - lease_ns / 100 - margin_ns;", "(void)margin_ns; return sent_ns + lease_ns;"),
    ("no check after the wait", "src/doorman/bidder.c",
     "bool fresh = b->phase == HF__PHASE_WAITING && generation > b->queued_generation;", "bool fresh = true;"),
    ("release without ticket", "src/doorman/doorman.c",
     "    enum hf__place was;\n\n    note_used(",
     "    for (size_t i = 0; i < record->count; i++) {\n        if (record->entries[i].place == HF__PLACE_INSIDE)\n"
     "            ticket = &record->entries[i].ticket;\n    }\n"
     "    enum hf__place was;\n\n    note_used("),
    ("retry with a new ticket", "src/core/acquire.c",
     "    if (r == HF_UNKNOWN)\n        hf__bidder_unanswered(&lock->bidder);",
     "    if (r == HF_UNKNOWN)\n        hf__lock_new_ticket(lock, bid->err);"),
    ("unknown taken for not applied", "src/core/acquire.c",
     "    if (r == HF_UNKNOWN)\n        hf__bidder_unanswered(&lock->bidder);", ""),
    ("no clean-up on cancel", "src/core/acquire.c",
     "if (is_left(lock) && hf__undo(lock, false, &undo_error) < 0)",
     "if (code != HF_CANCELLED && is_left(lock) && hf__undo(lock, false, &undo_error) < 0)"),
    ("spent ticket not undone", "src/core/acquire.c",
     "    if (is_left(lock))\n        r = hf__undo(lock, false, bid->err);\n", ""),
    ("end of the wait not looked at", "src/core/acquire.c",
     [("        if (r == 0)\n            r = look_whether_wanted(bid);\n", ""),
      ("    if (news & HF__NEWS_TIMEOUT) /* that the store is away tells more */\n"
       "        return bid->slept_over < 0 ? bid->slept_over : stop_because(bid, HF_TIMEOUT);\n", "")], None),
    ("setbacks without pause", "src/core/acquire.c",
     "now_ns + (pause_ns < left_ns ? pause_ns : left_ns);", "now_ns;"),
    ("polling without pause", "src/core/acquire.c",
     "w->ask_ns = hf__moment_after(hf__now_ns(client->env), answer->ask_again_ms);",
     "w->ask_ns = hf__now_ns(client->env);"),
    ("confirmed without the claim", "src/core/acquire.c",
     "    if (needs_claim(bid)) {", "    if (0 && needs_claim(bid)) {"),
    ("late attempt not retired", "src/core/undo.c",
     "lock->bidder.unanswered ? client->retire_ms : 0", "0"),
    ("unanswered release forgotten", "src/core/undo.c",
     "return go_on_in_background(lock, release, err);", "return 0;"),
    ("watchdog dies on its first error", "src/core/renewer.c",
     "        note_failure(lock);\n    }\n    if (again && on_duty)",
     "        lock->failures = 1, lock->retry_ns = INT64_MAX;\n    }\n    if (again && on_duty)"),
    ("renewal in a spin", "src/core/renewer.c", "lock->retry_ns = now_ns + pause_ns;", "lock->retry_ns = now_ns;"),
    ("one renewal waits for another's call", "src/core/keeper.c",
     "hf__workers_help(&lock->client->renewer);", ";"),
    ("wake-up swallowed by a caller that leaves", "src/core/wake_reader.c",
     "    reader->caller = NULL;\n    hf__keeper_lend_wakes(client, false);", "    reader->caller = NULL;"),
    ("wake-up for another not passed on", "src/core/wait.c", "    pthread_cond_signal(&noted->woken);\n", ""),
    ("cancel not watched", "src/core/wait.c",
     "if (cancel != NULL && hf__keeper_watch(client, cancel) < 0)", "if (0)"),
    ("loss not told while a renewal hangs", "src/core/keeper.c",
     "        when_ns = earlier(b->deadline_ns, lock->max_hold_ns);",
     "        when_ns = lock->job == HF__JOB_NONE ? b->deadline_ns : lock->max_hold_ns;"),
    ("loss told of one bid only", "src/core/lock.c",
     [("lock->claim_unanswered = lock->lost_told = lock->called = false;", "lock->claim_unanswered = lock->called = false;"),
      ("lock->duty != HF__DUTY_KEEP || lock->lost_told", "lock->lost_told")], None),
    ("loss told by the callback alone", "src/core/lock.c",
     "hf_cause_text(lock->bidder.cause));\n    hf__lock_show_lost(lock);", "hf_cause_text(lock->bidder.cause));"),
    ("news of a started bid wake nobody", "src/core/wait.c",
     "    if (lock->started != NULL)\n        hf__started_ready(lock->started);\n    else if", "    if"),
    ("all writes have one number", "src/core/value.c", "value->order = ++lock->value_order;", "value->order = 1;"),
    ("refused write taken for written", "src/core/value.c",
     "if (verdict == HF__VERDICT_DONE)", "if (verdict != HF__VERDICT_STALE)"),
    ("time to stay closed forgotten", "src/core/undo.c", "release ? lock->at_least_ms : 0", "0"),
    ("wanted although nobody waits", "src/core/lock_state.c",
     "holds_now(lock, &now_ns) && lock->bidder.wanted;", "holds_now(lock, &now_ns);"),
    ("a bid stopped while it asks falls asleep", "src/core/acquire.c", "if (r == 0 && bid->stopped)", "if (0)"),
    ("max_hold not looked at", "src/core/lock.c", "if (now_ns >= lock->max_hold_ns)", "if (0)"),
    ("detached lock still on duty", "src/core/release.c",
     "    take_back(lock);\n    hf__lock_unref(lock);\n    return 0;",
     "    hf__reentry_remove(lock);\n    hf__lock_unref(lock);\n    return 0;"),
    ("reentrant count not looked at", "src/core/release.c", "    if (lock->count > 1) {", "    if (0) {"),
    ("release does not wait for the callback", "src/core/notifier.c",
     "    while (lock->in_call)\n        pthread_cond_wait(&lock->client->changed, &lock->client->mutex);", ""),
    ("close does not wake those who wait", "src/core/close.c",
     "hf__wait_tell(lock, HF__NEWS_CLOSED);", ";"),
    ("close does not wait for calls", "src/core/close.c",
     "    while (client->users > 0)\n        pthread_cond_wait(&client->changed, &client->mutex);\n", ""),
    ("close gives nothing back", "src/core/close.c",
     "if (closing->store_answers && (held || undo)) {", "if (0) {"),
    ("child of a fork not noticed", "src/core/fork_guard.c",
     "bool hf__is_forked(const hf_client *client)\n{",
     "bool hf__is_forked(const hf_client *client)\n{\n    if (client != NULL)\n        return false;"),
    ("cached lock never goes back", "src/core/cache.c",
     "    bool wanted = lock->called || lock->bidder.wanted;", "    bool wanted = false;\n    renewal_is_due = false;"),
    ("local grants share a token", "src/core/cache.c", "    lock->local_grants++;\n", ""),
    ("idle locks forgotten at the close", "src/core/close.c", "    hf__cache_close(client);\n", ""),
]


class NotThere(Exception):
    pass


def plant(path, old, new):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        text = file.read()
    for before, after in old if isinstance(old, list) else [(old, new)]:
        if text.count(before) != 1:
            raise NotThere(f"{path} has {text.count(before)} of: {before.strip().splitlines()[0]}")
        text = text.replace(before, after)
    return text


class Builder:
    """Compiles and links as the build directory does."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as file:
            commands = json.load(file)
        self.compile = {}
        for entry in commands:
            path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), TOP)
            if re.search(r"lib(holdfast_inside|hfbase)\.a\.p/", entry["command"]):
                self.compile[path] = shlex.split(entry["command"])
        listed = subprocess.run(["ninja", "-C", self.build, "-t", "commands", "-s", "tests/sim/sim"],
                                check=True, capture_output=True, text=True).stdout.strip().splitlines()
        self.link = shlex.split(listed[-1])

    def make(self, path, text, folder):
        source, made = os.path.join(folder, os.path.basename(path)), os.path.join(folder, "planted.o")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        command = list(self.compile[path])
        command[command.index("-o") + 1] = made
        command[command.index("-c") + 1] = source
        command = [part for part in command if part not in ("-Werror", "-MD")] + ["-w"]
        for flag in ("-MQ", "-MF"):
            at = command.index(flag)
            del command[at:at + 2]
        subprocess.run(command, cwd=self.build, check=True, capture_output=True)
        program = os.path.join(folder, "sim")
        command = list(self.link)
        at = command.index("-o")
        command[at + 1] = program
        command.insert(at + 2, made)  # before the archives: theirs is then not taken
        subprocess.run(command, cwd=self.build, check=True, capture_output=True)
        return program


def try_one(builder, mutant, seeds):
    name, path, old, new = mutant
    with tempfile.TemporaryDirectory(prefix="hf-mutant-") as folder:
        try:
            program = builder.make(path, plant(path, old, new), folder)
        except NotThere as error:
            return name, None, str(error)
        except subprocess.CalledProcessError as error:
            return name, None, "does not build: " + error.stderr.decode(errors="replace")[-400:]
        run = subprocess.run([program, "--jobs", "1", "--seeds", str(seeds)], check=False,
                             capture_output=True, text=True, errors="replace")
    found = re.search(r"^FAULT seed (\d+)(?: at [\d.]+ s, [^:]*)?: (.*)$", run.stdout, re.M)
    if run.returncode == 0 or found is None:
        return name, None, f"not found by {seeds} seeds"
    return name, int(found.group(1)), found.group(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build-dev"))
    parser.add_argument("--seeds", type=int, default=4000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    builder = Builder(args.build)
    chosen = [m for m in MUTANTS if not args.names or m[0] in args.names]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, seed, why in pool.map(lambda m: try_one(builder, m, args.seeds), chosen):
            failed += seed is None
            print(f"{'not ok' if seed is None else 'ok'} - {name}: "
                  f"{why if seed is None else f'seed {seed}: {why}'}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
