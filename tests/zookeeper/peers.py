"""Other clients of ZooKeeper behind two pipes: Curator and kazoo, as tests/zookeeper and bench/ use them."""

import fcntl
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = os.environ["HOLDFAST_TEST_ZOOKEEPER"]
PATIENCE = 60
JARS = "/usr/share/java/"


class Peer:
    """The other client, or holdfast, behind two pipes."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=env)
        self.hear("ready")

    def hear(self, word):
        line = self.process.stdout.readline().strip()
        assert line == word, "expected %r, heard %r" % (word, line)

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def ask(self, word, answer):
        self.say(word)
        self.hear(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()


def skip(why):
    print("SKIPPED: " + why)
    sys.exit(77)


def java(source, needed, *kind):
    """Compiles a peer; its folder, and what starts one."""
    names = ["curator-recipes", "curator-framework", "curator-client", "zookeeper-recipes-lock", "zookeeper", "zookeeper-jute",
             "guava", "failureaccess", "slf4j-api", "slf4j-nop"]
    names += [os.path.basename(p)[:-4] for p in glob.glob(JARS + "netty*.jar")]
    path = ":".join(JARS + n + ".jar" for n in names if os.path.exists(JARS + n + ".jar"))
    if not os.path.exists(JARS + needed) or shutil.which("javac") is None:
        skip(needed + " or a JDK is not installed")
    folder = tempfile.mkdtemp(prefix="holdfast-java-")
    subprocess.run(["javac", "-cp", path, "-d", folder, os.path.join(HERE, source + ".java")], check=True)
    return folder, lambda name, ms: Peer(["java", "-XX:TieredStopAtLevel=1", "-Xmx96m", "-cp", folder + ":" + path, source,
                                          HOSTS, "/interop/" + name, str(ms), *kind])


def curator():
    return java("Peer", "curator-recipes.jar")


def curator_rw():
    return java("Peer", "curator-recipes.jar", "rw")


def recipe():
    return java("RecipePeer", "zookeeper-recipes-lock.jar")


def has(module, folder=""):
    return subprocess.run([sys.executable, "-c", "import " + module], stderr=subprocess.DEVNULL,
                          env=dict(os.environ, PYTHONPATH=folder)).returncode == 0


def python(module, kind, where="/interop/", folder=""):
    if not has(module, folder):
        skip("python3-" + module + " is not installed")
    return None, lambda name, ms: Peer([sys.executable, HERE + "/peer_kazoo.py", HOSTS, where + name, str(ms), kind],
                                       env=dict(os.environ, PYTHONPATH=folder))


def fetch(package, version):
    """A Python package from PyPI, once, into a cache directory of the user; its folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = "%s/holdfast-tests/%s-%s" % (cache, package, version)
    os.makedirs(folder, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder + "/" + package):
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder,
                            package + "==" + version], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


def kazoo():
    return python("kazoo", "pattern")


def kazoo_plain():
    return python("kazoo", "plain")


def kazoo_rw():
    """Before 2.9 a ReadLock of kazoo waits for writers behind it, too, which wait for it."""
    folder = fetch("kazoo", "2.10.0")
    if not os.path.isdir(folder + "/kazoo"):
        skip("kazoo 2.10.0 could not be fetched from PyPI (python3-pip)")
    return python("kazoo", "rw", folder=folder)


def tooz():
    return python("tooz", "tooz", "/tooz/locks/")


# By name: what starts them, the layout that they see, where their locks are, and whether they have readers.
KINDS = {"curator": (curator, "curator", "/interop", False),
         "curator-rw": (curator_rw, "curator-rw", "/interop", True),
         "recipe": (recipe, "curator", "/interop", False),
         "kazoo": (kazoo, "curator", "/interop", False),
         "kazoo-plain": (kazoo_plain, "kazoo", "/interop", False),
         "kazoo-rw": (kazoo_rw, "kazoo", "/interop", True),
         "tooz": (tooz, "kazoo", "/tooz/locks", False)}


def url(kind):
    """Of holdfast, beside that kind of client."""
    _, layout, path, _ = KINDS[kind]
    return "zookeeper://%s%s?acl=world&layout=%s" % (HOSTS, path, layout) # as the others have it
