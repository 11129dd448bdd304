"""What other processes of the scenarios do: children.py FUNCTION URL NAME [WORD...]."""

import sys

import holdfast


def say(text):
    print(text, flush=True)


def contend(url, name):
    """Asks without waiting, then waits."""
    with holdfast.open(url, program="second") as locks:
        try:
            locks.lock(name).acquire(timeout=0).release()
            say("free")
        except holdfast.Busy:
            say("busy")
        sys.stdin.readline()
        with locks.lock(name) as held:
            say(f"held {held.token if holdfast.Capability.TOKEN in locks.capabilities else 0}")


def exit_holding(url, name):
    """Ends without a release, in the normal way."""
    locks = holdfast.open(url)
    globals()["kept"] = locks.lock(name, ttl=600).acquire()
    say("held")
    sys.stdin.readline()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
