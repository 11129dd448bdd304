#!/usr/bin/env python3
"""The password of a store is in nobody's arguments, in no environment of a command, in no output and in no trace, whatever
goes wrong. Against a real server.

    secrets.py HOLDFAST URL      a URL of tests/fleet/with-*; the server gets a password here if it has none

Each way of giving the password (URL, configuration, file, variable, argument) is tried with a command that looks
at the arguments of everything above it and at its own environment; then everything that can fail is made to.
"""
import os
import re
import subprocess
import sys
import tempfile

HOLDFAST, URL = sys.argv[1:3]
SECRET = "Zq7-Geheim-9x"
WRONG = "Wr0ng-Geheim-3y"

LOOK = r"""
import os
pid, seen = os.getpid(), []
while pid > 1:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        seen.append(file.read())
    with open(f"/proc/{pid}/status") as file:
        pid = int(next(line for line in file if line.startswith("PPid:")).split()[1])
print(seen)
for pid in filter(str.isdigit, os.listdir("/proc")): # the guard is nobody's parent
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read()
    except OSError:
        continue
    if b"holdfast" in line:
        print(line)
with open("/proc/self/environ", "rb") as file:
    print(file.read())
print("LOOKED")
"""


def run(*command, **environment):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, **environment))


def give_password(url):
    """The server asks for SECRET from now on; the URL with it."""
    scheme, rest = url.split("://", 1)
    rest = rest.split("@", 1)[-1]
    host = re.match(r"[^/?]*", rest)[0].split(",")[0]
    user = "app"
    if scheme == "redis":
        run("redis-cli", "-h", host.split(":")[0], "-p", host.split(":")[1], "config", "set", "requirepass", SECRET)
        user = "default"
    elif scheme == "etcd":
        user = "root"
        for step in (["user", "add", "root", f"--new-user-password={SECRET}"], ["role", "add", "root"],
                     ["user", "grant-role", "root", "root"], ["auth", "enable"]):
            subprocess.run(["etcdctl", "--endpoints", host, *step], env=dict(os.environ, ETCDCTL_API="3"), check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    elif scheme == "mysql":
        run("mariadb", "--no-defaults", "-S", os.environ["HOLDFAST_TEST_MARIADB_SOCKET"], "-u", "root", "-e",
            f"ALTER USER app IDENTIFIED BY '{SECRET}'")
    elif scheme == "postgres":
        user = url.split("://", 1)[1].split("@")[0].split(":")[0] if "@" in url else "postgres"
    return f"{scheme}://{user}:{SECRET}@{rest}"


class Test:
    def __init__(self, directory, url):
        self.directory, self.url, self.failed, self.count = directory, url, 0, 0

    def check(self, what, arguments, wanted=None, url=None, has="", **environment):
        """Runs the command; neither password is in what comes out, and the status is one of `wanted`."""
        environment = dict(os.environ, HOME=self.directory, **environment)
        environment.pop("HOLDFAST_URL", None)
        if url is not None:
            environment["HOLDFAST_URL"] = url
        done = subprocess.run([HOLDFAST, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace", check=False)
        wrong = [f"shows {word}" for word in (SECRET, WRONG) if word in done.stdout]
        if wanted is not None and done.returncode not in wanted:
            wrong.append(f"status {done.returncode}")
        if has not in done.stdout:
            wrong.append(f"no {has}")
        self.count += 1
        self.failed += bool(wrong)
        if wrong:
            print(f"FAIL {what}: {', '.join(wrong)}: {done.stdout[-1500:]}", flush=True)

    def look(self, what, *options, **more):
        self.check(what, ["run", *options, "secret/look", "--", sys.executable, "-c", LOOK], [0], has="LOOKED", **more)

    def write(self, name, text):
        path = f"{self.directory}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path


def with_option(url, option):
    return url + ("&" if "?" in url else "?") + option


def give_it_in_every_way(test):
    bare = test.url.replace(f":{SECRET}@", "@")
    password = test.write("password", SECRET + "\n")
    test.look("HOLDFAST_URL", url=test.url)
    test.look("-u", "-u", test.url)
    test.look("password_file", url=with_option(bare, f"password_file={password}"))
    test.look("password_env", url=with_option(bare, "password_env=GIVEN"), GIVEN=SECRET)
    test.look("trace+", url=with_option("trace+" + test.url, "trace=fd:2"))
    config = test.write(".config/holdfast/config", f"url = {test.url}\n")
    test.look("config file")
    os.unlink(config)


def fail_in_every_way(test):
    scheme = test.url.split("://")[0]
    closed = re.sub(r":\d+", ":1", test.url.split("@")[1], count=1)
    head = test.url.split("@")[0]
    urls = {
        "nobody there": with_option(f"{head}@{closed}", "op_timeout=300ms"),
        "a wrong password": with_option(test.url.replace(SECRET, WRONG), "op_timeout=1s"),
        "an option that there is not": with_option(test.url, "colour=blue"),
        "an option out of range": with_option(test.url, "op_timeout=1d"),
        "TLS that is not spoken": with_option(test.url, "tls=verify&op_timeout=500ms"),
        "no such scheme": test.url.replace(scheme, "nosuch", 1),
        "a raw '#'": test.url.replace(SECRET, SECRET + "#"),
        "a raw '@'": test.url.replace(SECRET, SECRET + "@x"),
        "a raw blank": test.url.replace(SECRET, SECRET + " x"),
        "no host": f"{head}@",
    }
    for what, url in urls.items():
        test.check(f"{what}, run", ["run", "-n", "secret/x", "--", "true"], url=with_option("trace+" + url, "trace=fd:2"))
        test.check(f"{what}, lock -u", ["lock", "-n", "--ttl", "1m", "-u", url, "secret/y"])
    for what in ("nobody there", "a wrong password"):
        for verb in ("ls", "doctor", "setup", "gc"):
            test.check(f"{what}, {verb}", [verb], url=urls[what])


def main():
    os.umask(0o077)
    with tempfile.TemporaryDirectory() as directory:
        test = Test(directory, give_password(URL))
        give_it_in_every_way(test)
        fail_in_every_way(test)
    print(f"{test.count - test.failed} passed, {test.failed} failed")
    return 1 if test.failed else 0


sys.exit(main())
