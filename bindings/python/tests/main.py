"""main.py [-k NAME]... URL...: the scenarios and this binding's own tests; a line for each."""

import faulthandler
import logging
import sys

import adapters
import attacks
import lib
import package
import scenarios


def main():
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # a slow callback is the machine's
    faulthandler.dump_traceback_later(900, exit=True)  # whatever hangs says where
    words, chosen, urls = iter(sys.argv[1:]), [], []
    for word in words:
        if word == "-k":
            chosen.append(next(words))
        else:
            urls.append(word)
    tests = [(f.__name__, f, True) for f in [*scenarios.SCENARIOS, *adapters.TESTS, *attacks.TESTS, *package.TESTS]]
    tests += [(f.__name__, f, False) for f in [*attacks.ALONE, *package.ALONE]]
    return 1 if lib.run(tests, urls, chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
