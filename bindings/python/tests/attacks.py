"""Odd moments: what must not crash, hang, leak or lie."""

import asyncio
import contextlib
import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from datetime import timedelta

import holdfast
from holdfast import Capability
from lib import refused, until, until_waiting, waiting


def free(client, name):
    """Nothing is left of it, now or after what goes on in the background."""
    until(lambda: client.inspect(name=name) == [], f"'{name}' is free: {client.inspect(name=name)}")


def bad_input_has_one_sentence(store):
    locks = store.open()
    for terms in ({"ttl": 0}, {"ttl": 0.0001}, {"ttl": -1}, {"ttl": float("nan")}, {"ttl": 1e300}, {"timeout": -1},
                  {"limit": -1}, {"limit": 2**32}, {"owner": 2**63}, {"owner": -1}, {"note": "x" * 257}, {"note": "a\0b"},
                  {"lock_delay": -1}, {"lock_delay": 4000}, {"max_hold": -1}, {"ttl": timedelta(days=8)}):
        with refused(holdfast.Invalid):
            locks.lock(store.name, **terms).acquire()
    for terms in ({"ttl": "30"}, {"timeout": True}, {"timeout": "x"}):
        try:
            locks.lock(store.name, **terms)
            raise AssertionError(terms)
        except TypeError as error:
            assert str(error)
    for name in (5, None, ["x"]):
        try:
            locks.lock(name)
            raise AssertionError(name)
        except TypeError as error:
            assert str(error)
    with refused(holdfast.Invalid):
        locks.lock("\udfff\ud800")
    for call in (lambda: locks.check("x"), lambda: locks.break_(store.name, "short"), lambda: locks.adopt(store.name, "a\0b"),
                 lambda: holdfast.open("sqlite:/a\0b"), lambda: locks.inspect(name=b"")):
        with refused(holdfast.Invalid):
            call()
    with refused(holdfast.NoStore):
        holdfast.open("nothing://x")
    assert locks.inspect(name=store.name) == []


def errors_can_be_sent_to_another_process():
    for error in (holdfast.Unknown("who knows", retriable=True, may_hold=2.5, store_code=7), holdfast.Busy()):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error) and copy.__dict__ == error.__dict__
    assert issubclass(holdfast.Timeout, TimeoutError) and issubclass(holdfast.Invalid, ValueError)
    assert str(holdfast.Busy()) == "Somebody else holds it"


def what_is_open_can_be_listed_and_examined(store):
    assert any(scheme in info.schemes for info in holdfast.stores() for scheme in ("memory:",))
    locks = store.open()
    assert all(finding.level < 3 and finding.text for finding in locks.diagnose())
    locks.setup()
    assert locks.purge(3600) == 0
    assert Capability.SHARE in locks.capabilities


def dropped_handles_are_given_back(store):
    locks, other = store.open(), store.open()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(50):
            locks.lock(store.name).acquire()
            free(other, store.name)
    assert len([w for w in seen if w.category is ResourceWarning]) == 50, seen
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        client = holdfast.open(store.url)
        cycle = [client, client.lock(store.name).acquire()]
        cycle.append(cycle)
        del client, cycle
        gc.collect()
        free(other, store.name)
    assert seen, "nobody was warned"  # of the lock or of the client, whichever the collector took first


def collections_at_odd_moments(store):
    """A collection at every few allocations, with handles in cycles, while threads come and go."""
    locks = store.open()
    before = gc.get_threshold()
    gc.set_threshold(3, 2, 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")

            def work(number):
                for turn in range(40):
                    held = locks.lock(f"{store.name}/{number}/{turn}").acquire(timeout=30)
                    if turn % 3:
                        held.release()
                    else:
                        held.myself = held

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive()
            gc.collect()
    finally:
        gc.set_threshold(*before)


def ctrl_c_at_any_moment(store):
    """A storm of signals whose handler raises: afterwards nothing is held and nothing waits."""
    locks, other = store.open(), store.open()
    busy = other.lock(store.name + "/busy").acquire()
    stop = threading.Event()

    def storm():
        while not stop.is_set():
            time.sleep(random.random() / 200)
            with contextlib.suppress(ProcessLookupError):
                os.kill(os.getpid(), signal.SIGUSR1)

    class Interrupt(Exception):
        pass

    armed = [False]

    def handler(*_):
        if armed[0]:
            raise Interrupt

    old = signal.signal(signal.SIGUSR1, handler)
    thread = threading.Thread(target=storm)
    thread.start()
    hits = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for turn in range(300):
                where = store.name + ("/busy" if turn % 3 == 0 else "")
                try:
                    try:
                        armed[0] = True
                        with locks.lock(where, timeout=0.02 if turn % 3 == 0 else 10):
                            pass
                    finally:
                        armed[0] = False
                except (Interrupt, holdfast.Timeout, holdfast.Deadlock) as error:
                    hits += isinstance(error, Interrupt)
    finally:
        stop.set()
        thread.join()
        signal.signal(signal.SIGUSR1, old)
    gc.collect()
    busy.release()
    free(other, store.name)
    free(other, store.name + "/busy")
    with locks.lock(store.name, timeout=30), locks.lock(store.name + "/busy", timeout=30):
        pass
    assert hits > 5, f"only {hits} interrupts"


def a_handler_may_close(store):
    """SIGTERM's handler closes the client while its thread waits."""
    a = store.open()
    held = a.lock(store.name).acquire()
    b = store.open()
    old = signal.signal(signal.SIGUSR1, lambda *_: b.close())

    def kick():
        until_waiting(a, store.name)
        os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=kick)
    thread.start()
    try:
        with refused(holdfast.Closed):
            b.lock(store.name).acquire()
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, old)
    assert len(a.inspect(name=store.name)) == 1
    held.release()


def close_from_many_sides(store):
    """Closing while threads acquire, renew, inspect and wait: each call ends well or with Closed."""
    for _ in range(15):
        locks = holdfast.open(store.url)
        odd = []

        def work(kind, locks=locks, odd=odd):
            try:
                while True:
                    if kind == 0:
                        with locks.lock(store.name):
                            pass
                    elif kind == 1:
                        locks.inspect(prefix=store.name)
                    elif kind == 2:
                        locks.lock(store.name + "/2", timeout=0.001).acquire().release()
                    else:
                        held = locks.lock(f"{store.name}/{threading.get_ident()}").acquire()
                        held.renew()
                        held.state, held.remaining, held.token, held.lost.is_set()
                        held.release()
            except holdfast.Closed:
                pass
            except holdfast.Lost as error:
                if not locks._closing:
                    odd.append(error)
            except (holdfast.Timeout, holdfast.Error) as error:
                odd.append(error)

        threads = [threading.Thread(target=work, args=(kind % 4,)) for kind in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(random.random() / 50)
        closers = [threading.Thread(target=locks.close) for _ in range(3)]
        for thread in closers + threads:
            thread.start() if thread in closers else None
        for thread in closers + threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread hangs"
        odd = [error for error in odd if not isinstance(error, holdfast.Timeout)]
        assert not odd, odd


def cancelled_at_every_step(store):
    """A task that is cancelled after each number of turns of its loop: never a lock left, never an odd exception."""
    locks, other = store.open(), store.open()

    async def body(name):
        async with locks.lock(name) as held:
            await asyncio.sleep(0)
            await held.renew()
            await asyncio.sleep(0)

    async def main():
        ended = set()
        for steps in [*range(60), *range(60, 400, 20)]:
            for busy in (False, True):
                blocker = await other.lock(store.name).acquire_async() if busy else None
                task = asyncio.create_task(body(store.name))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                if busy and steps % 2:
                    await asyncio.sleep(0)
                    task.cancel()
                if blocker:
                    await blocker.release()
                try:
                    await task
                    ended.add("well")
                except asyncio.CancelledError:
                    ended.add("cancelled")
                while await asyncio.to_thread(locks.inspect, name=store.name):
                    await asyncio.sleep(0.002)
        return ended

    ended = asyncio.run(main())
    assert "cancelled" in ended, ended


def loops_that_end_early(store):
    """asyncio.run() ends with bids waiting and locks held; the next loop works, and nothing is left."""
    locks, other = store.open(), store.open()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):

            async def main():
                held = await locks.lock(store.name).acquire_async()
                waiters = [asyncio.create_task(locks.lock(store.name).acquire_async()) for _ in range(3)]
                await asyncio.sleep(0.01)
                assert waiters and held
                del held

            asyncio.run(main())
            gc.collect()
            free(other, store.name)

    async def abandoned():
        await locks.lock(store.name).acquire_async()

    blocker = other.lock(store.name).acquire()
    loop = asyncio.new_event_loop()
    task = loop.create_task(abandoned())
    loop.call_later(0.05, loop.stop)
    loop.run_forever()
    task._log_destroy_pending = False
    loop.close()
    coroutine = task.get_coro()
    coroutine.close()  # GeneratorExit in the wait
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        del task, coroutine
    gc.collect()
    until(lambda: waiting(other, store.name) == 0, "the thrown away bid is gone")
    blocker.release()
    asyncio.run(abandoned_with(locks, store.name))
    free(other, store.name)


async def abandoned_with(locks, name):
    async with locks.lock(name, timeout=30):
        pass


def several_loops_in_several_threads(store):
    """Whoever takes the events tells the right loop."""
    locks = store.open()
    inside, most = [0], [0]

    async def main():
        async def turn():
            async with locks.lock(store.name):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                await asyncio.sleep(0)
                inside[0] -= 1

        await asyncio.gather(*(turn() for _ in range(20)))

    def plain():
        for _ in range(20):
            with locks.lock(store.name):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(3)] + [threading.Thread(target=plain)]
    for thread in threads:
        thread.start()
    plain()  # the main thread waits by events too
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a loop hangs"
    assert most[0] == 1, most


def a_loss_and_a_cancel_at_once(store):
    """Somebody else's cancellation is not swallowed by ours."""
    store.needs(Capability.LEASE)
    locks = store.open()

    async def main():
        async def body():
            async with locks.lock(store.name, ttl=0.2, by_hand=True) as held:
                await asyncio.sleep(60)

        task = asyncio.create_task(body())
        await asyncio.sleep(0.1)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        else:
            raise AssertionError("the cancellation was lost")

        async def outlives():
            try:
                async with locks.lock(store.name, ttl=0.2, by_hand=True):
                    await asyncio.sleep(60)
            except holdfast.Lost:
                await asyncio.sleep(0.01)  # goes on as nobody cancelled it
                return "well"

        assert await asyncio.create_task(outlives()) == "well"

    asyncio.run(main())


def forks_while_others_work(store):
    """Children of a busy process: every use is refused at once, and they end."""
    locks = store.open()
    stop = threading.Event()

    def work(number):
        while not stop.is_set():
            with locks.lock(f"{store.name}/{number}") as held:
                held.state

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python: this process has threads
            for _ in range(40):
                pid = os.fork()
                if pid == 0:
                    status = 1
                    try:
                        signal.alarm(30)
                        for use in (lambda: locks.inspect(), lambda: locks.lock("x").acquire(), lambda: locks.capabilities):
                            with refused(holdfast.Forked):
                                use()
                        locks.close()
                        gc.collect()
                        status = 0
                    finally:
                        os._exit(status)
                assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


SCRIPTS = {  # name: what the program does; it holds NAME at its end
    "a daemon thread waits": "threading.Thread(target=lambda: locks.lock(NAME).acquire(), daemon=True).start(); time.sleep(0.05)",
    "a daemon thread works": "threading.Thread(target=lambda: [locks.inspect() for _ in iter(int, 1)], daemon=True).start(); time.sleep(0.05)",
    "sys.exit in a thread's run": "sys.exit(0)",
    "a cycle at the end": "held.me = held; gc.disable()",
    "a loop is left open": "loop = asyncio.new_event_loop(); other = loop.run_until_complete(locks.lock(NAME + '/2').acquire_async())",
    "a task waits": "loop = asyncio.new_event_loop(); task = loop.create_task(locks.lock(NAME).acquire_async());"
                    " loop.run_until_complete(asyncio.sleep(0.05))",
    "a child of multiprocessing": "p = multiprocessing.get_context('fork').Process(target=print); p.start(); p.join()",
    "an exception": "sys.excepthook = lambda *_: os._exit.__doc__; 1 / 0",
}


def programs_end_whatever_goes_on(store):
    """At the exit the locks are given back, and nothing crashes or hangs."""
    store.needs(Capability.PROCESS)
    locks = store.open()
    for name, code in SCRIPTS.items():
        lock_name = f"{store.name}/{name}"
        program = (f"import asyncio, gc, multiprocessing, os, sys, threading, time, holdfast\nNAME = {lock_name!r}\n"
                   f"locks = holdfast.open({store.url!r})\nheld = locks.lock(NAME, ttl=600).acquire()\n{code}\n")
        done = subprocess.run([sys.executable, "-c", program], timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode in (0, 1), f"{name}: {done.returncode}: {done.stderr}"
        assert "Fatal" not in done.stderr and "Segmentation" not in done.stderr, done.stderr
        assert done.returncode == (1 if name == "an exception" else 0), f"{name}: {done.stderr}"
        assert locks.inspect(name=lock_name) == [], f"{name}: still held"


def a_lock_is_released_elsewhere(store):
    """Another thread may release; the same thread that asks again is told, not hung."""
    locks = store.open()
    held = locks.lock(store.name).acquire()
    with refused(holdfast.Deadlock):
        locks.lock(store.name, timeout=30).acquire()
    thread = threading.Thread(target=held.release)
    thread.start()
    thread.join()
    assert held.ended
    again = locks.lock(store.name, reentrant=True)
    with again as one, again as two:
        assert one.token == two.token if Capability.TOKEN in locks.capabilities else one.ticket == two.ticket
    free(locks, store.name)

    async def twice():
        async with locks.lock(store.name):
            with refused(holdfast.Deadlock):
                await locks.lock(store.name).acquire_async()

    asyncio.run(twice())


def loss_wakes_those_who_look(store):
    """held.lost.wait() ends when the lock is given back, and a selector sees its descriptor."""
    import select

    locks = store.open()
    held = locks.lock(store.name).acquire()
    results = []
    thread = threading.Thread(target=lambda: results.append(held.lost.wait(30)))
    thread.start()
    poll = select.poll()
    poll.register(held.lost, select.POLLIN)
    assert poll.poll(0) == [] and held.lost.wait(0.01) is False
    held.release()
    thread.join(30)
    assert results == [False] and poll.poll(0)


def descriptors_do_not_leak(store):
    locks = store.open()

    def use():
        with locks.lock(store.name) as held:
            held.lost.fileno()
            with contextlib.suppress(holdfast.Timeout):
                locks.lock(store.name, timeout=0.01, owner=7).acquire()
        asyncio.run(abandoned_with(locks, store.name))
        with holdfast.open(store.url) as own:
            own.lock(store.name + "/own").acquire().release()

    for _ in range(3):
        use()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        use()
    gc.collect()
    after = len(os.listdir("/proc/self/fd"))
    assert after <= before + 1, f"{before} descriptors, then {after}"


TESTS = [
    bad_input_has_one_sentence, what_is_open_can_be_listed_and_examined, dropped_handles_are_given_back,
    collections_at_odd_moments, ctrl_c_at_any_moment, a_handler_may_close, close_from_many_sides, cancelled_at_every_step,
    loops_that_end_early, several_loops_in_several_threads, a_loss_and_a_cancel_at_once, forks_while_others_work,
    programs_end_whatever_goes_on, a_lock_is_released_elsewhere, loss_wakes_those_who_look, descriptors_do_not_leak]
ALONE = [errors_can_be_sent_to_another_process]
