"""The scenarios of bindings/scenarios.md, in their order."""

import asyncio
import json
import math
import os
import signal
import threading

import holdfast
from holdfast import Capability, Cause, Place, State
from lib import Skipped, refused, until_waiting, waiting

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def only(client, name):
    entries = client.inspect(name=name)
    assert len(entries) == 1, entries
    return entries[0]


def in_thread(function):
    """Runs it beside us; join() raises what it raised."""
    result = {}

    def body():
        try:
            result["value"] = function()
        except BaseException as error:
            result["error"] = error

    thread = threading.Thread(target=body, daemon=True)
    thread.start()

    def join():
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
        if "error" in result:
            raise result["error"]
        return result["value"]

    return join


def exclusion_between_processes(store):
    store.needs(Capability.PROCESS)
    locks = store.open()
    held = locks.lock(store.name).acquire()
    child = store.child("contend")
    assert child.line() == "busy"
    child.tell()
    until_waiting(locks, store.name)
    held.release()
    assert child.line().startswith("held")
    assert child.end() == 0


def busy_without_waiting(store):
    a, b = store.open(), store.open()
    with a.lock(store.name) as held:
        with refused(holdfast.Busy):
            b.lock(store.name).acquire(timeout=0)
        assert b.lock(store.name).try_acquire() is None
        assert only(b, store.name).ticket == held.ticket


def timeout_leaves_nothing(store):
    a, b = store.open(), store.open()
    with a.lock(store.name) as held:
        with refused(holdfast.Timeout):
            b.lock(store.name, timeout=0.2).acquire()
        with refused(holdfast.Timeout):
            in_thread(lambda: b.lock(store.name).acquire(timeout=0.2))()
        assert only(b, store.name).ticket == held.ticket
    b.lock(store.name).acquire(timeout=0).release()


def cancelled_wait_leaves_nothing(store):
    """By all means of the language: a task, Ctrl-C, and a Cancel in another thread."""
    a, b, c = store.open(), store.open(), store.open()
    held = a.lock(store.name).acquire()

    async def cancelled_task():
        task = asyncio.create_task(b.lock(store.name).acquire_async())
        while waiting(a, store.name) != 1:
            await asyncio.sleep(0.005)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return
        raise AssertionError("it was not cancelled")

    asyncio.run(cancelled_task())
    assert only(a, store.name).ticket == held.ticket

    def interrupt():
        until_waiting(a, store.name)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    join = in_thread(interrupt)
    try:
        b.lock(store.name).acquire()
        raise AssertionError("Ctrl-C was not seen")
    except KeyboardInterrupt:
        pass
    join()
    assert only(a, store.name).ticket == held.ticket

    cancel = holdfast.Cancel()
    join = in_thread(lambda: b.lock(store.name).acquire(cancel=cancel))
    until_waiting(a, store.name)
    cancel.fire()
    with refused(holdfast.Cancelled):
        join()
    with refused(holdfast.Cancelled):
        b.lock(store.name).acquire(cancel=cancel)
    assert only(a, store.name).ticket == held.ticket
    held.release()
    c.lock(store.name).acquire(timeout=0).release()


def waiters_come_in_order(store):
    store.needs(Capability.QUEUE)
    a, b = store.open(), store.open()
    held = a.lock(store.name).acquire()
    order, joins = [], []

    def turn(number):
        with b.lock(store.name):
            order.append(number)

    for number in range(1, 6):
        joins.append(in_thread(lambda number=number: turn(number)))
        until_waiting(a, store.name, number)
    held.release()
    for join in joins:
        join()
    assert order == [1, 2, 3, 4, 5], order


def readers_share_and_a_writer_waits(store):
    store.needs(Capability.SHARE)
    a, b, c = store.open(), store.open(), store.open()
    first, second = a.lock(store.name, shared=True).acquire(), b.lock(store.name, shared=True).acquire()
    with refused(holdfast.Busy):
        c.lock(store.name).acquire(timeout=0)
    join = in_thread(lambda: c.lock(store.name).acquire())
    until_waiting(a, store.name)
    with refused(holdfast.Busy):
        store.open().lock(store.name, shared=True).acquire(timeout=0)
    first.release()
    second.release()
    writer = join()
    assert writer.state == State.HELD
    writer.release()


def limit_admits_no_more(store):
    store.needs(Capability.LIMIT)
    clients = [store.open() for _ in range(3)]
    two = [client.lock(store.name, limit=2).acquire() for client in clients[:2]]
    with refused(holdfast.Busy):
        clients[2].lock(store.name, limit=2).acquire(timeout=0)
    two.pop().release()
    clients[2].lock(store.name, limit=2).acquire(timeout=0).release()
    two.pop().release()


def loss_is_told(store):
    store.needs(Capability.LEASE)
    locks = store.open()
    held = locks.lock(store.name, ttl=0.3, by_hand=True).acquire()
    assert held.lost.wait(30) and held.lost.is_set() and held.lost
    assert (held.cause, held.state, held.remaining) == (Cause.EXPIRED, State.LOST, 0.0)
    with refused(holdfast.Stale):
        held.release()
    with refused(holdfast.Lost):  # at the end of the body, if it did not notice
        with locks.lock(store.name, ttl=0.3, by_hand=True) as held:
            held.lost.wait(30)

    async def scope():
        async with locks.lock(store.name, ttl=0.3, by_hand=True) as held:
            try:
                await asyncio.sleep(60)
                raise AssertionError("the body went on")
            finally:
                assert held.lost.is_set() and held.lost.cause == Cause.EXPIRED

    async def event():
        held = await locks.lock(store.name, ttl=0.3, by_hand=True).acquire_async()
        assert await held.lost.wait()
        with refused(holdfast.Stale):
            await held.release()

    with refused(holdfast.Lost):
        asyncio.run(scope())
    asyncio.run(event())


def token_rises(store):
    store.needs(Capability.TOKEN)
    locks = store.open()
    tokens = []
    for _ in range(3):
        with locks.lock(store.name) as held:
            tokens.append(held.token)
    assert tokens == sorted(set(tokens)), tokens


def gate_refuses_an_old_sequencer(store):
    store.needs(Capability.TOKEN)
    locks, gate = store.open(), holdfast.Gate()
    with locks.lock(store.name) as held:
        first = held.sequencer
    with locks.lock(store.name) as held:
        second = held.sequencer
    assert gate.levels(store.name) is None
    gate.pass_(first)
    gate.pass_(second)
    with refused(holdfast.Stale):
        gate.pass_(first)
    restored = holdfast.Gate()
    restored.restore(store.name, *gate.levels(store.name))
    with refused(holdfast.Stale):
        restored.pass_(first)
    with refused(holdfast.Invalid):
        gate.pass_("no sequencer")


def check_tells_a_stale_sequencer(store):
    store.needs(Capability.CHECK)
    locks = store.open()
    with locks.lock(store.name) as held:
        sequencer = held.sequencer
        locks.check(sequencer)
    with refused(holdfast.Stale):
        locks.check(sequencer)


def inspect_shows_holder_and_waiter(store):
    a, b = store.open(program="first"), store.open(program="other")
    held = a.lock(store.name, note="why I hold it").acquire()
    cancel = holdfast.Cancel()
    join = in_thread(lambda: b.lock(store.name).acquire(cancel=cancel))
    until_waiting(a, store.name)
    for entries in (a.inspect(name=store.name), a.inspect(prefix=store.name[:-2])):
        inside, waiter = entries
        assert (inside.name, inside.place, inside.ticket) == (store.name, Place.INSIDE, held.ticket)
        assert (inside.note, inside.program, inside.pid) == ("why I hold it", "first", os.getpid())
        if Capability.TOKEN in a.capabilities:
            assert inside.token == held.token
        assert (waiter.place, waiter.token, waiter.program) == (Place.WAITING, None, "other")
        if Capability.QUEUE in a.capabilities:
            assert waiter.position == 1
    cancel.fire()
    with refused(holdfast.Cancelled):
        join()
    held.release()


def break_takes_it_away(store):
    store.needs(Capability.BREAK)
    a, b = store.open(), store.open()
    held = a.lock(store.name, ttl=1).acquire()
    ticket = held.ticket
    b.break_(store.name, ticket, now=True)
    b.lock(store.name).acquire(timeout=10).release()
    assert held.lost.wait(30) and held.cause in (Cause.GONE, Cause.EXPIRED)
    with refused(holdfast.NotFound):
        b.break_(store.name, ticket, now=True)


def detach_and_adopt(store):
    store.needs(Capability.DETACH)
    a, b = store.open(), store.open()
    held = a.lock(store.name).acquire()
    token = held.token if Capability.TOKEN in a.capabilities else None
    ticket = held.detach()
    with refused(holdfast.Stale):
        held.renew()
    assert only(b, store.name).ticket == ticket
    adopted = b.adopt(store.name, ticket)
    assert token is None or adopted.token == token
    adopted.release()
    assert b.inspect(name=store.name) == []
    with refused(holdfast.Stale):
        b.adopt(store.name, ticket)


def never_expires_until_released(store):
    store.needs(Capability.NEVER)
    locks = store.open()
    held = locks.lock(store.name, ttl=math.inf).acquire()
    assert held.remaining == math.inf
    assert only(locks, store.name).ttl == math.inf
    held.release()
    assert locks.inspect(name=store.name) == []


def close_wakes_waiters(store):
    a, b, c = store.open(), store.open(), store.open()
    held = a.lock(store.name).acquire()
    ticket = held.ticket
    join = in_thread(lambda: b.lock(store.name).acquire())
    until_waiting(c, store.name)

    async def in_a_coroutine():
        task = asyncio.create_task(b.lock(store.name).acquire_async())
        while waiting(c, store.name) != 2:
            await asyncio.sleep(0.005)
        await b.aclose()
        with refused(holdfast.Closed):
            await task

    asyncio.run(in_a_coroutine())
    with refused(holdfast.Closed):
        join()
    assert only(c, store.name).ticket == ticket
    a.close()
    c.lock(store.name).acquire(timeout=0).release()


def exit_gives_locks_back(store):
    store.needs(Capability.PROCESS)
    locks = store.open()
    child = store.child("exit_holding")
    assert child.line() == "held"
    with refused(holdfast.Busy):
        locks.lock(store.name).acquire(timeout=0)
    assert child.end() == 0
    locks.lock(store.name).acquire(timeout=5).release()


def ended_handles_are_refused(store):
    locks = store.open()
    held = locks.lock(store.name).acquire()
    held.release()
    for _ in range(2):
        for use in (held.release, lambda: held.token, held.renew, held.detach, lambda: held.sequencer, lambda: held.ticket):
            with refused(holdfast.Stale):
                use()
    assert (held.state, held.remaining, held.cause) == (State.LOST, 0.0, Cause.NONE)
    if Capability.LEASE in locks.capabilities:
        held = locks.lock(store.name, ttl=0.3, by_hand=True).acquire()
        held.lost.wait(30)
        for use in (lambda: held.token, held.renew):
            with refused(holdfast.Lost):
                use()
        with refused(holdfast.Stale):
            held.release()
        with refused(holdfast.Stale):
            held.release()
    in_a_child(store, locks)
    held = locks.lock(store.name).acquire()
    locks.close()
    locks.close()
    for _ in range(2):
        for use in (locks.lock(store.name).acquire, locks.inspect, lambda: held.token, held.renew, held.detach):
            with refused(holdfast.Closed):
                use()
    with refused(holdfast.Closed):
        held.release()
    with refused(holdfast.Stale):
        held.release()


def in_a_child(store, locks):
    """A fork: what it raises there comes back as the status."""
    held = locks.lock(store.name).acquire()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for _ in range(2):
                for use in (locks.lock(store.name).acquire, lambda: held.token, held.renew, held.release, locks.inspect):
                    with refused(holdfast.Forked):
                        use()
            assert held.cause == Cause.FORKED and held.state == State.LOST
            locks.close()
            del held
            if store.url.startswith("memory:") is False:
                with holdfast.open(store.url) as own:  # of its own
                    assert own.lock(store.name).try_acquire() is None
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"
    assert held.state == State.HELD
    held.renew()
    held.release()


def a_thousand_waiters_in_twenty_threads(store):
    locks, watcher = store.open(), store.open()
    if Capability.PUSH not in locks.capabilities:
        raise Skipped("this store's waiters poll")
    before = threads()
    turns = []

    async def main():
        first = await locks.lock(store.name).acquire_async()

        async def turn(number):
            async with locks.lock(store.name):
                turns.append(number)

        tasks = [asyncio.create_task(turn(number)) for number in range(1000)]
        while await asyncio.to_thread(waiting, watcher, store.name) < 1000:
            await asyncio.sleep(0.02)
        assert threads() <= 20, f"{threads()} threads, {before} of them before"
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks[::2], return_exceptions=True)
        await first.release()
        await asyncio.gather(*tasks[1::2])

    asyncio.run(main())
    assert sorted(turns) == list(range(1, 1000, 2)), turns  # they were started by several threads
    assert locks.inspect(name=store.name) == []


def threads():
    with open("/proc/self/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith("Threads:")).split()[1])


def every_code_is_mapped_and_names_hold_any_byte(store):
    from holdfast._codes import CODE_TEXT, ERRORS, HEADER_VERSION
    from holdfast._load import ffi, lib

    with open(os.path.join(TOP, "bindings", "spec.json"), encoding="utf-8") as file:
        spec = json.load(file)
    for error in spec["errors"]:
        kind, code = ERRORS[error["value"]], error["value"]
        assert issubclass(kind, holdfast.Error) and kind.code == code
        assert kind.exit_status == lib.hf_code_exit_status(code) == error["exit_status"]
        assert CODE_TEXT[kind.code] == ffi.string(lib.hf_code_text(code)).decode() == error["text"]
        assert ffi.string(lib.hf_code_name(code)).decode() == error["id"] == "HF_" + kind.code.name
    assert holdfast.version == HEADER_VERSION == spec["version"]
    locks = store.open()
    name = store.name.encode() + b"\0\xff \n"
    with locks.lock(name) as held:
        assert held.name_bytes == name and held.name.encode("utf-8", "surrogateescape") == name
        entry = only(locks, name)
        assert entry.name_bytes == name and entry.name == held.name
    for bad in (b"x" * 513, "", b""):
        with refused(holdfast.Invalid):
            locks.lock(bad).acquire()


SCENARIOS = [
    exclusion_between_processes, busy_without_waiting, timeout_leaves_nothing, cancelled_wait_leaves_nothing,
    waiters_come_in_order, readers_share_and_a_writer_waits, limit_admits_no_more, loss_is_told, token_rises,
    gate_refuses_an_old_sequencer, check_tells_a_stale_sequencer, inspect_shows_holder_and_waiter, break_takes_it_away,
    detach_and_adopt, never_expires_until_released, close_wakes_waiters, exit_gives_locks_back, ended_handles_are_refused,
    a_thousand_waiters_in_twenty_threads, every_code_is_mapped_and_names_hold_any_byte]
