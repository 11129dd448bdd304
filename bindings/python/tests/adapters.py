"""What other frameworks expect of a lock: threading, tooz, Celery, Django."""

import asyncio
import importlib.util
import io
import os
import threading
import unittest

import holdfast
from holdfast.once import once
from lib import Skipped


def mutex_is_a_threading_lock(store):
    """What a threading.Lock does, and what a Condition on it needs."""
    a, b = store.open(), store.open()
    mine, theirs = a.lock(store.name).as_lock(), b.lock(store.name).as_lock()
    assert not mine.locked()
    assert mine.acquire() is True and mine.locked() and theirs.locked()
    assert theirs.acquire(blocking=False) is False and theirs.acquire(timeout=0.1) is False
    assert mine.acquire(False) is False  # a threading.Lock is not reentrant
    mine.release()
    for lock in (mine, theirs):
        try:
            lock.release()
            raise AssertionError("an unlocked lock was released")
        except RuntimeError:
            pass
    for arguments in ({"blocking": False, "timeout": 1}, {"timeout": -2}):
        for lock in (mine, threading.Lock()):
            try:
                lock.acquire(**arguments)
                raise AssertionError(arguments)
            except ValueError:
                pass
    with mine as got:
        assert got is True
    condition, seen = threading.Condition(mine), []

    def wait():
        with condition:
            condition.wait_for(lambda: seen, 30)
            seen.append("woken")

    thread = threading.Thread(target=wait)
    thread.start()
    while not seen:
        with condition:
            if condition._waiters:
                seen.append("told")
                condition.notify()
    thread.join(30)
    assert seen == ["told", "woken"] and not mine.locked()


def tooz_lock_tests(store):
    """tooz's own tests of locks, as they are, on this driver."""
    if importlib.util.find_spec("tooz") is None or importlib.util.find_spec("testtools") is None:
        raise Skipped("tooz and testtools are not installed")
    store.needs(holdfast.Capability.BREAK)
    os.environ["TOOZ_TEST_URL"] = "holdfast+" + store.url
    from tooz.tests import test_coordination

    def locks(suite):
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                yield from locks(test)
            elif "lock" in test.id() and "group" not in test.id():
                yield test

    chosen = list(locks(unittest.defaultTestLoader.loadTestsFromModule(test_coordination)))
    if not store.url.startswith("memory:"):
        assert len(chosen) >= 10, chosen
    else:  # its processes would have stores of their own
        chosen = [test for test in chosen if "process" not in test.id() and "two_lock" not in test.id()]
    said = io.StringIO()
    result = unittest.TextTestRunner(stream=said, verbosity=2).run(unittest.TestSuite(chosen))
    print(f"# tooz: {result.testsRun} run, {len(result.skipped)} skipped, {len(result.failures) + len(result.errors)} failed")
    assert result.wasSuccessful() and result.testsRun - len(result.skipped) >= 8, said.getvalue()


def tooz_says_no_in_its_own_words(store):
    if importlib.util.find_spec("tooz") is None:
        raise Skipped("tooz is not installed")
    from tooz import NotImplemented, ToozError, coordination

    coordinator = coordination.get_coordinator("holdfast+" + store.url, b"me")
    try:
        coordinator.get_lock(b"x")
        raise AssertionError("not started")
    except ToozError:
        pass
    coordinator.start()
    try:
        lock = coordinator.get_lock(b"x" * 600)
        try:
            lock.acquire()
            raise AssertionError("a name of 600 bytes")
        except ToozError as error:
            assert isinstance(error.__cause__, holdfast.Invalid), error.__cause__
        try:
            coordinator.get_groups()
            raise AssertionError("groups")
        except NotImplemented:
            pass
        with coordinator.get_lock(b"program"):
            entry, = store.open().inspect(name="program")
            assert entry.program == "me"
    finally:
        coordinator.stop()


def once_runs_in_one_place(store):
    """A job of two hosts at once, and one after the other."""
    a, b = store.open(), store.open()
    ran, inside, go = [], threading.Event(), threading.Event()

    @once(store.name, client=a, otherwise="elsewhere")
    def first():
        ran.append(1)
        inside.set()
        go.wait(30)
        return "done"

    @once(store.name, client=b, otherwise="elsewhere")
    def second():
        ran.append(2)
        return "done"

    results = []
    thread = threading.Thread(target=lambda: results.append(first()))
    thread.start()
    inside.wait(30)
    assert second() == "elsewhere"
    go.set()
    thread.join()
    assert results == ["done"] and ran == [1] and second() == "done"

    @once(store.name, client=a)
    def fails():
        raise KeyError("its own")

    try:
        fails()
        raise AssertionError("it did not fail")
    except KeyError:
        pass
    assert second() == "done"  # it opened again

    @once(store.name, client=b, otherwise="elsewhere")
    async def coroutine():
        return "done"

    assert asyncio.run(coroutine()) == "done"
    with a.lock(store.name):
        assert asyncio.run(coroutine()) == "elsewhere"


def once_stays_closed_for_at_least(store):
    store.needs(holdfast.Capability.DETACH)
    a, b = store.open(), store.open()
    ran = []

    def job():
        ran.append(1)

    assert once(store.name, client=a, at_least=600)(job)() is None
    assert once(store.name, client=b, at_least=600, otherwise="elsewhere")(job)() == "elsewhere" and ran == [1]
    entry, = a.inspect(name=store.name)
    assert entry.ttl == 600 and entry.remaining > 500
    a.break_(store.name, entry.ticket, now=True)


def once_in_celery_and_django(store):
    if importlib.util.find_spec("celery") is None or importlib.util.find_spec("django") is None:
        raise Skipped("celery and django are not installed")
    import celery
    from django.conf import settings
    from django.core.management import BaseCommand, call_command

    app = celery.Celery("fleet", broker="memory://")
    app.conf.task_always_eager = True

    @app.task
    @once(store.name, url=store.url, otherwise="elsewhere")
    def task():
        return "done"

    if not settings.configured:
        settings.configure()

    class Command(BaseCommand):
        @once(store.name, url=store.url, otherwise="elsewhere")
        def handle(self, *args, **options):
            return "done"

    assert task.delay().get() == "done" and call_command(Command(), stdout=io.StringIO()) == "done"
    with store.open().lock(store.name):
        assert task.delay().get() == "elsewhere" and call_command(Command(), stdout=io.StringIO()) == "elsewhere"


TESTS = [
    mutex_is_a_threading_lock, tooz_lock_tests, tooz_says_no_in_its_own_words, once_runs_in_one_place,
    once_stays_closed_for_at_least, once_in_celery_and_django]
