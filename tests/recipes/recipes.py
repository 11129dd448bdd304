#!/usr/bin/python3
"""Runs the code blocks of docs/RECIPES.md for one kind of server, and compares what they print and what the server
was sent with what the document shows.

    with-redis recipes.py redis HOLDFAST DOCUMENT         also redlock, postgres, mariadb, zookeeper, cassandra

In the document

    <!-- run redis -->      stands before a block of shell commands to run (`run redis again`: twice, and the second
                            time is looked at, so that nothing is for the first time),
    <!-- prints -->         before the block of what it prints on standard output,
    <!-- sent -->           before the block of what holdfast has sent to the server while it ran.

In these two `…` stands for any text, on a line of its own for any lines, TICKET for a ticket (TICKET2 for another one), UUID for one as ZooKeeper's clients
write it, and N for a number. What is sent is the server's own word: MONITOR of Redis, the logs of PostgreSQL and
MariaDB; what goes to ZooKeeper and Cassandra is read on the way (wire.py). Left out are the greeting of each connection
and, on Redis, what only reads. Statements that PostgreSQL has prepared are shown as they were prepared. Prints "ok - …" or "not ok - …" for each block."""

import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import wire  # noqa: E402

LIMIT = 20


def environment(name):
    return os.environ["HOLDFAST_TEST_" + name]


def wait_until(condition, what):
    until = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"{what} did not come true")
        time.sleep(0.02)


# Servers: how the document's names for them are translated, and what they were sent -------------

class Log:
    """A server that writes a log. `mark` makes it write a word, so that everything before it is there."""

    def __init__(self, path):
        self.path = path
        self.marks = 0
        self.read_from = 0

    def fence(self):
        self.marks += 1
        word = f"recipes-mark-{self.marks}"
        self.mark(word)
        wait_until(lambda: word in self.text(), "the mark in the log")

    def text(self):
        with open(self.path, "rb") as file:
            file.seek(self.read_from)
            return file.read().decode("utf-8", "replace")

    def begin(self):
        self.fence()
        self.read_from = os.path.getsize(self.path)

    def sent(self):
        self.fence()
        return list(self.statements(self.text()))


class Redis(Log):
    # What changes something, or brings news. Readers would be shown a page of GET otherwise.
    TOLD = ("SET", "DEL", "PEXPIRE", "SETBIT", "ZADD", "ZREM", "ZPOPMIN", "HSET", "HDEL", "PUBLISH", "LPUSH")

    def __init__(self, folder, address=None):
        super().__init__(os.path.join(folder, "monitor"))
        self.port = (address or environment("REDIS")).split(":")[1]
        with open(self.path, "wb") as file:
            self.monitor = subprocess.Popen(["redis-cli", "-p", self.port, "MONITOR"], stdout=file)
        wait_until(lambda: "OK" in self.text(), "MONITOR")
        self.words = {"redis://db": f"redis://127.0.0.1:{self.port}", "redis-cli -h db": f"redis-cli -p {self.port}"}

    def mark(self, word):
        subprocess.run(["redis-cli", "-p", self.port, "ECHO", word], stdout=subprocess.DEVNULL, check=True)

    def statements(self, text):
        for line in text.split("\n"):
            match = re.match(r'[\d.]+ \[\d+ (\S+)\] (.*)', line)
            if not match:
                continue
            words = re.findall(r'"((?:[^"\\]|\\.)*)"', match[2])
            if words[0] == "SUBSCRIBE" and words[1].startswith("holdfast"):
                yield " ".join(words)
            elif match[1] == "lua" and words[0] in self.TOLD and not self.is_upkeep(words):
                yield " ".join("…" if "\\x00" in word else word for word in words)

    @staticmethod
    def is_upkeep(words):
        """How long our notes are kept, and the deletion of nothing with which a full server lets a script go on."""
        return words[1].startswith("holdfast.n") or (words[0] == "PEXPIRE" and words[1].startswith("holdfast."))

    def end(self):
        self.monitor.terminate()
        self.monitor.wait()


class Redlock(Redis):
    """The first of the servers: the others are sent the same."""

    def __init__(self, folder):
        servers = environment("REDLOCK")
        super().__init__(folder, servers.split(",", maxsplit=1)[0])
        self.words = {"redlock://r1,r2,r3,r4,r5?": f"redlock://{servers}?restart_guard=off&"}
        for number, address in enumerate(servers.split(","), 1):
            self.words[f"redis-cli -h r{number}"] = f"redis-cli -p {address.split(':')[1]}"


class Postgres(Log):
    def __init__(self, _folder):
        super().__init__(os.path.join(environment("POSTGRES_DIR"), "log"))
        self.address = environment("POSTGRES")
        self.psql = f"psql -h 127.0.0.1 -p {self.address.split(':')[1]} -U postgres"
        self.words = {"postgres://db/app": f"postgres://postgres@{self.address}/postgres", "psql -h db app": self.psql}
        self.ask("ALTER SYSTEM SET log_statement = 'all'")
        self.ask("SELECT pg_reload_conf()")

    def ask(self, statement):
        subprocess.run([*self.psql.split(), "-qXtc", statement], stdout=subprocess.DEVNULL, check=True)

    def mark(self, word):
        self.ask(f"SELECT '{word}'")

    def fence(self):
        """The setting may take a moment to arrive: asked again until the mark is written."""
        self.marks += 1
        word = f"recipes-mark-{self.marks}"

        def is_written():
            self.mark(word)
            return word in self.text()
        wait_until(is_written, "the mark in the log")

    def statements(self, text):
        records = re.split(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ ", text, flags=re.M)
        sent = []
        for record in records:
            if match := re.match(r"\[\d+\] LOG:  (?:statement|execute [^:]*): (.*)", record, re.S):
                sent.append(match[1].strip())
            elif (match := re.match(r"\[\d+\] DETAIL:  parameters: (.*)", record, re.S)) and sent:
                for number, value in re.findall(r"\$(\d+) = ('(?:[^']|'')*'|NULL)", match[1]):
                    sent[-1] = re.sub(rf"\${number}\b", lambda _, v=value: readable(v), sent[-1])
        prepared = {}
        for statement in sent:
            prepared.update(re.findall(r"PREPARE (\w+)(?:\(bytea\))? AS (.*?);", statement))
            if "holdfast" not in statement or re.search("holdfast_schema|recipes-mark|PREPARE", statement):
                continue
            for part in re.sub(r"/\*.*?\*/ ", "", statement).split("; "):
                yield re.sub(r"EXECUTE (\w+)(?:\(decode\('([0-9a-f]+)', 'hex'\)\))?$", lambda m: expand(prepared, *m.groups()), part)

    def end(self):
        pass


def expand(prepared, name, argument):
    """What an EXECUTE stands for."""
    value = f"'{bytes.fromhex(argument or '').decode()}'"
    return prepared[name].replace("$1", value)


def readable(value):
    """A bytea that is text, as text."""
    match = re.fullmatch(r"'\\x([0-9a-f]+)'", value)
    plain = bytes.fromhex(match[1]) if match and len(match[1]) != 32 else b""
    return f"'{plain.decode()}'" if plain and plain.isascii() else value.replace("\\x", "") if match else value


class Mariadb(Log):
    def __init__(self, _folder):
        super().__init__(os.path.join(environment("MARIADB_DIR"), "statements"))
        self.socket = environment("MARIADB_SOCKET")
        self.words = {"mysql://db/app": f"mysql://app:secret@{environment('MARIADB')}/locks",
                      "mariadb -h db app": f"mariadb --no-defaults -uroot -S {self.socket} locks"}
        self.ask(f"SET GLOBAL general_log_file = '{self.path}'")
        self.ask("SET GLOBAL general_log = 1")
        wait_until(lambda: os.path.exists(self.path), "the general log")

    def ask(self, statement):
        subprocess.run(["mariadb", "--no-defaults", "-uroot", "-S", self.socket, "-e", statement],
                       stdout=subprocess.DEVNULL, check=True)

    def mark(self, word):
        self.ask(f"SELECT '{word}'")

    def statements(self, text):
        for kind, statement in re.findall(r"^(?:\d+\s+[\d:]+)?\s+\d+ (Query|Execute)\t(.*)$", text, re.M):
            if "recipes-mark" in statement or re.search(r"holdfast_schema|information_schema|wsrep|^SET |CONNECTION_ID", statement):
                continue
            yield re.sub(r"= '[^']*(\\'[^']*)*'", lambda m: m[0] if m[0].isascii() and m[0].isprintable() else "= TICKET",
                         statement) if kind == "Execute" else statement

    def end(self):
        pass


class Wire:
    """A server behind a proxy of ours."""

    def __init__(self, address, decoder):
        host, port = address.split(":")
        self.proxy = wire.Proxy((host, int(port)), decoder)

    def begin(self):
        self.proxy.lines.clear()

    def sent(self):
        return [line for line in self.proxy.lines if not self.LEFT_OUT.search(line)]

    def end(self):
        pass


class Zookeeper(Wire):
    LEFT_OUT = re.compile("%break|^exists /$")  # the watch for locks that are broken; a session's last sign of life

    def __init__(self, _folder):
        super().__init__(environment("ZOOKEEPER"), wire.Zookeeper)
        self.words = {"zookeeper://db/": f"zookeeper://127.0.0.1:{self.proxy.port}/", '"db:2181"': f'"{environment("ZOOKEEPER")}"'}


class Cassandra(Wire):
    LEFT_OUT = re.compile("^USE |FROM app.schema_version")

    def __init__(self, _folder):
        super().__init__(environment("CASSANDRA"), wire.Cassandra)
        host, port = environment("CASSANDRA").split(":")
        # "holdfast" is the keyspace of tests/fleet.
        url = f"cassandra://127.0.0.1:{self.proxy.port}/holdfast?protocol=4"
        self.words = {"cassandra://db/app?": url + "&", "cassandra://db/app": url,
                      'Cluster(["db"])': f'Cluster(["{host}"], port={port})', 'connect("app")': 'connect("holdfast")'}

    def sent(self):
        self.proxy.lines[:] = [line.replace(" holdfast.", " app.") for line in self.proxy.lines]
        return super().sent()


SERVERS = {"redis": Redis, "redlock": Redlock, "postgres": Postgres, "mariadb": Mariadb, "zookeeper": Zookeeper,
           "cassandra": Cassandra}


# The document -----------------------------------------------------------------------------------

BLOCK = re.compile(r"^<!-- (run|prints|sent)(?: (\w+))?( again)? -->\n+```\w*\n(.*?)^```$", re.M | re.S)


class Case:
    def __init__(self, heading, store, commands, times):
        self.heading, self.store, self.commands, self.times = heading, store, commands, times
        self.prints = self.sent = None


def cases_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    cases = []
    for match in BLOCK.finditer(text):
        kind, store, again, block = match.groups()
        if kind == "run":
            heading = re.findall(r"^#+ (.*)$", text[:match.start()], re.M)[-1]
            cases.append(Case(heading, store, block, 2 if again else 1))
        elif kind == "prints":
            cases[-1].prints = block
        else:
            cases[-1].sent = block
    return cases


def pattern_of(line, tickets):
    """The regular expression that a line of the document stands for. `tickets` are the groups it has named."""
    out = ""
    for piece in re.split(r"(…|TICKET\d*|UUID\d*|\bN\b)", line):
        if piece == "…":
            out += ".*"
        elif piece == "N":
            out += r"-?\d+"
        elif re.fullmatch(r"(TICKET|UUID)\d*", piece):
            known = tickets.get(piece)
            out += re.escape(known) if known else f"(?P<{piece}>{'[0-9a-f]{32}|TICKET' if piece[0] == 'T' else '[0-9a-f-]{36}'})" \
                if f"(?P<{piece}>" not in out else f"(?P={piece})"
        else:
            out += re.escape(piece)
    return out


def compare(what, shown, seen):
    """Complains about the first line that is not as shown. A line that is nothing but `…` stands for any number of them."""
    tickets, at, skips = {}, 0, False
    seen = [line.strip() for line in seen if line.strip()]
    for line in [line.strip() for line in shown.strip().split("\n")] + ["(the end)"]:
        if line == "…":
            skips = True
            continue
        if line == "(the end)" and (skips or at == len(seen)):
            return
        while True:
            match = re.fullmatch(pattern_of(line, tickets), seen[at]) if at < len(seen) else None
            at += 1
            if match or not skips or at > len(seen):
                break
        if not match:
            yield f"{what}: the document has\n  {line}\nwhich is not there, in\n  " + "\n  ".join(seen)
            return
        tickets.update({name: text for name, text in match.groupdict().items() if text != "TICKET"})
        skips = False


def missing(case):
    """The Python module that the commands need and that is not installed."""
    for module in re.findall(r"^from (\w+)", case.commands, re.M):
        if subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            return module
    return None


def run(case, server, holdfast):
    commands = case.commands
    for word, value in server.words.items():
        commands = commands.replace(word, value)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "bin"))
        os.symlink(holdfast, os.path.join(folder, "bin", "holdfast"))
        os.symlink("/usr/bin/python3", os.path.join(folder, "bin", "python3"))
        keep = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_") or name == "HOLDFAST_MODULES"}
        for _ in range(case.times):
            server.begin()
            done = subprocess.run(["sh", "-eu"], input=commands, cwd=folder, text=True, timeout=60, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**keep, "PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": folder})
            sent = server.sent()
    if done.returncode != 0:
        yield f"the commands end with status {done.returncode}: {done.stderr}"
    if case.prints is not None:
        yield from compare("prints", case.prints, done.stdout.split("\n"))
    if case.sent is not None:
        yield from compare("sent", case.sent, sent)
    if case.prints is None and case.sent is None:
        yield "the document shows neither what it prints nor what it sends"


def main():
    store, holdfast, document = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3]
    status = 0
    cases = [case for case in cases_of(document) if case.store == store]
    if not cases:
        sys.exit(f"no block is for {store}")
    with tempfile.TemporaryDirectory() as folder:
        server = SERVERS[store](folder)
        for number, case in enumerate(cases, 1):
            if module := missing(case):
                print(f"ok - {case.heading}, {store} {number} # SKIP python3-{module} is not installed")
                continue
            problems = list(run(case, server, holdfast))
            for problem in problems:
                print(problem)
            print(f"{'not ok' if problems else 'ok'} - {case.heading}, {store} {number}", flush=True)
            status |= bool(problems)
        server.end()
    return status


if __name__ == "__main__":
    sys.exit(main())
