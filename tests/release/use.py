"""What a user of the wheel does: use.py DIRECTORY."""

import asyncio
import sys

import holdfast


async def twice(locks):
    async with locks.lock("a"):
        try:
            async with locks.lock("a", timeout=0, owner=7):
                return False
        except holdfast.Busy:
            return True


with holdfast.open(f"sqlite:{sys.argv[1]}/locks.db") as locks:
    with locks.lock("a") as held:
        first = held.token
    with locks.lock("a") as held:
        assert held.token > first
    assert asyncio.run(twice(locks))
print(f"# Python {sys.version.split()[0]}, libholdfast {holdfast.version}")
