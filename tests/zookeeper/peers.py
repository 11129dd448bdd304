"""Other clients of ZooKeeper behind two pipes: Curator and kazoo, as tests/zookeeper and bench/ use them."""

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

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
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


def java(source, needed):
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
                                          HOSTS, "/interop/" + name, str(ms)])


def curator():
    return java("Peer", "curator-recipes.jar")


def recipe():
    return java("RecipePeer", "zookeeper-recipes-lock.jar")


def kazoo():
    if subprocess.run([sys.executable, "-c", "import kazoo"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("python3-kazoo is not installed")
    return None, lambda name, ms: Peer([sys.executable, HERE + "/peer_kazoo.py", HOSTS, "/interop/" + name, str(ms)])
