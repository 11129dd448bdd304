#!/usr/bin/env python3
"""Records docs/demo/*.svg, the terminal session at the top of the README, from a real run.

    scripts/record-demo.py                  plays the scene, writes docs/demo/{dark,light}.svg
    scripts/record-demo.py --check          plays it again and compares what is printed with the files

Two terminals, web1 and web2, and one Redis server run in namespaces of their own: host names, process
numbers, the port and the name `db` are theirs alone, and nothing outside is touched. HOLDFAST names the
command, HOLDFAST_MODULES its stores; without them it is ./holdfast of this tree. Numbers and times differ
from run to run, so the comparison leaves them out. Status 77: this machine cannot run it."""

import argparse
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from html import escape, unescape

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(TOP, "docs", "demo")
URL = "redis://db"
ROWS = {"web1": 9, "web2": 12}  # of each terminal; the whole scene fits
HOSTS = tuple(ROWS)
COLUMNS = 104

REPORT = """#!/bin/sh
echo "report: started with fencing token $HOLDFAST_TOKEN"
sleep 7
echo "report: done"
"""

# What is typed where, and the output that ends the step. A step without a command only waits.
SCENE = (
    ("web1", "holdfast run nightly -- ./report", "token \\d+"),
    ("web2", "holdfast run -n nightly -- ./report", "since.*\\$ $"),
    ("web2", "holdfast run --wait 1m --ttl 4s nightly -- ./report", "waiting for 'nightly'"),
    ("web1", None, "done.*\\$ $"),
    ("web2", None, "token \\d+"),
    ("web1", "holdfast ls", "WAITING.*\\$ $"),
    ("web1", "redis-cli -h db shutdown nosave  # the store goes away", "away.*\\$ $"),
    ("web2", None, "holdfast: .*web2\\$ $"),
    ("web2", "echo $?", "80.*\\$ $"),
)
STEP_LIMIT = 30
TYPING = 0.03     # seconds a character
PAUSE = 0.9       # between two steps
LAST_PAUSE = 6.0  # on the last picture, before it begins again


# The scene -----------------------------------------------------------------

class Terminal:
    """A shell in a pseudo-terminal, and what its screen shows."""

    def __init__(self, host, environment, folder):
        self.host = host
        self.rows = [[]]  # cells: (character, style)
        self.column = 0
        self.style = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            # --noediting: the terminal echoes what is typed, and no escape sequences come with it.
            os.execvpe("unshare", ["unshare", "--uts", "sh", "-c",
                                   f"hostname {host} && exec bash --norc --noprofile --noediting"],
                       {**environment, "PS1": f"\\[\\e[1;32m\\]{host}\\[\\e[0m\\]$ "})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS[host], COLUMNS, 0, 0))

    def feed(self, data):
        text = data.decode("utf-8", "replace")
        for token in re.findall(r"\x1b\[\??[0-9;]*[a-zA-Z]|[\s\S]", text):
            if token.endswith("m") and token.startswith("\x1b"):
                self.style = token[2:-1].strip("0;")
            elif token.endswith("K") and token.startswith("\x1b"):
                del self.rows[-1][self.column:]
            elif token == "\r":
                self.column = 0
            elif token == "\n":
                self.rows.append([])
                self.column = 0
            elif token == "\b":
                self.column = max(0, self.column - 1)
            elif token >= " ":
                if self.column == COLUMNS:
                    self.rows.append([])
                    self.column = 0
                self.rows[-1][self.column:self.column + 1] = [(token, self.style)]
                self.column += 1

    def text(self):
        return "\n".join("".join(c for c, _ in row) for row in self.rows)

    def screen(self):
        return [tuple(row) for row in self.rows[-ROWS[self.host]:]]


class Recorder:
    def __init__(self, folder, environment):
        self.terminals = {host: Terminal(host, environment, folder) for host in HOSTS}
        self.frames = []  # (seconds, host, screen), each time a screen has changed
        self.began = time.monotonic()

    def note(self, host):
        self.frames.append((time.monotonic() - self.began, host, self.terminals[host].screen()))

    def listen(self, seconds):
        """Takes what the terminals say for that long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([t.fd for t in self.terminals.values()], [], [], left)
            for terminal in self.terminals.values():
                if terminal.fd in ready:
                    terminal.feed(os.read(terminal.fd, 4096))
                    self.note(terminal.host)

    def wait_for(self, host, pattern, since):
        """Until the terminal has printed the pattern, counted from the line `since`."""
        until = time.monotonic() + STEP_LIMIT
        terminal = self.terminals[host]
        while not re.search(pattern, "\n".join(terminal.text().split("\n")[since:]), re.S):
            if time.monotonic() > until:
                sys.exit(f"{host} did not print {pattern!r}:\n{terminal.text()}")
            self.listen(0.05)

    def play(self, typing, pause):
        for host in HOSTS:
            self.wait_for(host, r"\$ $", 0)
        lines = {host: 0 for host in HOSTS}
        for host, command, pattern in SCENE:
            self.listen(pause)
            terminal = self.terminals[host]
            if command is not None:
                lines[host] = len(terminal.rows) - 1
                for character in command + "\r":
                    os.write(terminal.fd, character.encode())
                    self.listen(typing)
            self.wait_for(host, pattern, lines[host])
        for terminal in self.terminals.values():
            os.write(terminal.fd, b"exit\r")
            os.waitpid(terminal.pid, 0)


def play(folder, typing, pause):
    """Inside the namespaces: the server, then the scene. Returns the recorder."""
    command = os.environ.get("HOLDFAST", os.path.join(TOP, "holdfast"))
    tools = os.path.join(folder, "bin")
    os.makedirs(tools)
    os.symlink(command, os.path.join(tools, "holdfast"))
    for name, text, mode in (("report", REPORT, 0o755), ("hosts", "127.0.0.1 localhost db\n", 0o644)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(os.path.join(folder, name), mode)
    subprocess.run(["mount", "--bind", os.path.join(folder, "hosts"), "/etc/hosts"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    server = subprocess.Popen(["redis-server", "--save", "", "--dir", folder], stdout=subprocess.DEVNULL)
    try:
        for _ in range(500):
            if subprocess.run(["redis-cli", "ping"], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.02)
        keep = {name: value for name, value in os.environ.items() if name in ("HOLDFAST_MODULES", "LD_LIBRARY_PATH")}
        recorder = Recorder(folder, {**keep, "PATH": tools + ":/usr/bin:/bin:/usr/sbin:/sbin", "HOME": folder,
                                     "TERM": "xterm", "LC_ALL": "C.UTF-8", "HOLDFAST_URL": URL})
        recorder.play(typing, pause)
    finally:
        server.terminate()
        server.wait()
    return recorder


# The picture ---------------------------------------------------------------

SIZE, LEADING, WIDE = 13, 20, 7.8  # of the font: height, line, width of a character
LEFT, TITLE, ABOVE, BELOW, GAP = 20, 30, 25, 2, 14
TOP_OF = {"web1": 0, "web2": TITLE + ABOVE + ROWS["web1"] * LEADING + BELOW + GAP}
THEMES = {
    "dark": {"pane": "#0d1117", "edge": "#30363d", "bar": "#161b22", "text": "#e6edf3",
             "dim": "#8b949e", "prompt": "#3fb950", "error": "#ffa657"},
    "light": {"pane": "#ffffff", "edge": "#d0d7de", "bar": "#f6f8fa", "text": "#1f2328",
              "dim": "#656d76", "prompt": "#1a7f37", "error": "#9a4a00"},
}


def spans_of(row):
    """(column, text, class) for each stretch of a row: the prompt, what is typed, what holdfast says itself."""
    text = "".join(c for c, _ in row)
    prompt = re.match(r"web\d\$ ", text)
    if prompt:
        yield 0, text[:4], "p"
        yield 4, text[4:], "t"
    else:
        yield 0, text, "t"


def states_of(frames, host, end):
    """(row, cells, from, to) for each stretch of time in which a row of the screen did not change."""
    shown = {}
    for at, who, screen in frames:
        if who != host:
            continue
        for number in range(ROWS[host]):
            cells = screen[number] if number < len(screen) else ()
            if number in shown and shown[number][0] == cells:
                continue
            if number in shown and shown[number][0]:
                yield number, *shown[number], at
            shown[number] = (cells, at)
    for number, (cells, since) in shown.items():
        if cells:
            yield number, cells, since, end


def draw_row(out, x, y, cells, colour, since, until, end):
    steady = since <= 0 and until >= end
    shown = "" if until >= end else ' visibility="hidden"'
    out.append(f'<g{shown}>')
    if not steady:
        first, last = since / end, until / end
        if until >= end:
            values, times = "hidden;visible", f"0;{first:.5f}"
        else:
            values, times = "hidden;visible;hidden", f"0;{first:.5f};{last:.5f}"
        out.append(f'<animate attributeName="visibility" dur="{end:.2f}s" repeatCount="indefinite" '
                   f'calcMode="discrete" values="{values}" keyTimes="{times}"/>')
    for column, text, kind in spans_of(cells):
        text = text.rstrip()
        if text:
            out.append(f'<text x="{x + column * WIDE:.1f}" y="{y}" class="{colour if kind == "t" else kind}" '
                       f'textLength="{len(text) * WIDE:.1f}" xml:space="preserve">{escape(text, False)}</text>')
    out.append("</g>")


def height_of(host):
    return TITLE + ABOVE + ROWS[host] * LEADING + BELOW


def draw_pane(out, host, width, frames, end):
    top = TOP_OF[host]
    out.append(f'<rect x="0.5" y="{top + 0.5}" width="{width - 1}" height="{height_of(host) - 1}" rx="9" class="pane"/>')
    out.append(f'<path d="M.5 {top + TITLE + 0.5}h{width - 1}V{top + 9.5}a9 9 0 0 0-9-9h-{width - 19}a9 9 0 0 0-9 9z" class="bar"/>')
    for number in range(3):
        out.append(f'<circle cx="{LEFT + 2 + number * 17}" cy="{top + 15.5}" r="5" class="dot"/>')
    out.append(f'<text x="{width / 2}" y="{top + 20}" text-anchor="middle" class="d">{host}</text>')
    out.append(f'<text x="{width - LEFT}" y="{top + 20}" text-anchor="end" class="d">HOLDFAST_URL={URL}</text>')
    spoken = {}  # rows that a sentence of holdfast covers, by when they appeared
    for number, cells, since, until in sorted(states_of(frames, host, end), key=lambda s: (s[2], s[0])):
        said = "".join(c for c, _ in cells)
        goes_on = len(spoken.get(number - 1, "")) == COLUMNS
        colour = "e" if said.startswith("holdfast: ") or goes_on else "t"
        spoken[number] = said if colour == "e" else ""
        draw_row(out, LEFT, top + TITLE + ABOVE + number * LEADING, cells, colour, since, until, end)


def draw(frames, theme):
    end = frames[-1][0] + LAST_PAUSE
    width = round(2 * LEFT + COLUMNS * WIDE)
    height = TOP_OF["web2"] + height_of("web2")
    c = THEMES[theme]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
           "<title>Two machines take turns with holdfast, and the command is stopped when its lock is lost</title>",
           "<!-- Made by scripts/record-demo.py from a real run. Do not edit. -->",
           f"<style>text{{font:{SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;"
           f"fill:{c['text']}}}.pane{{fill:{c['pane']};stroke:{c['edge']}}}.bar{{fill:{c['bar']};stroke:{c['edge']}}}"
           f".dot{{fill:{c['edge']}}}.d{{fill:{c['dim']}}}.p{{fill:{c['prompt']};font-weight:600}}"
           f".e{{fill:{c['error']}}}</style>"]
    for host in HOSTS:
        draw_pane(out, host, width, frames, end)
    out.append("</svg>")
    return "\n".join(out) + "\n"


# The comparison ------------------------------------------------------------

def steady(rows):
    """The text of the rows without what no two runs have in common. A full row goes on in the next."""
    text = "".join(row if len(row) == COLUMNS else row + "\n" for row in rows)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)
    text = re.sub(r"\b\d+(\.\d+)? ?(ms|s)\b", "SPAN", text)
    text = re.sub(r"\b\d{2,}\b", "N", text)
    return re.sub(r"\s+", "", text)


def printed(frames):
    """The last screen of each terminal, which nothing has left: the scene fits into it."""
    last = {host: screen for _, host, screen in frames}
    return {host: steady("".join(c for c, _ in row) for row in last[host]) for host in HOSTS}


def printed_in(path):
    """The same, from the picture: what stays visible, by the pane it stands in."""
    with open(path, encoding="utf-8") as file:
        groups = re.findall(r"<g>(.*?)</g>", file.read(), re.S)
    rows = {host: {} for host in HOSTS}
    for group in groups:
        for x, y, text in re.findall(r'<text x="([\d.]+)" y="(\d+)"[^>]*>([^<]*)</text>', group):
            host = "web2" if int(y) > TOP_OF["web2"] else "web1"
            line = rows[host].get(int(y), "")
            column = round((float(x) - LEFT) / WIDE)
            rows[host][int(y)] = line.ljust(column) + text
    return {host: steady(unescape(rows[host][y]) for y in sorted(rows[host])) for host in HOSTS}


def compare(frames):
    now = printed(frames)
    status = 0
    for theme in THEMES:
        path = os.path.join(OUT, theme + ".svg")
        before = printed_in(path)
        for host in HOSTS:
            if before[host] != now[host]:
                print(f"{path}, {host}: the picture shows\n  {before[host]}\nbut it prints\n  {now[host]}")
                status = 1
    print("not ok - the demo" if status else "ok - the demo prints what its picture shows")
    return status


def main():
    parser = argparse.ArgumentParser(description="records the terminal session of the README")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        ways = (["unshare", "--user", "--map-root-user"], ["unshare"])
        more = ["--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"]
        for way in ways:
            if shutil.which("redis-server") and subprocess.run([*way, *more, "true"], capture_output=True, check=False).returncode == 0:
                return subprocess.run([*way, *more, sys.executable, *sys.argv, "--inside"], check=False).returncode
        print("SKIPPED: it needs redis-server and namespaces (unshare)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        frames = play(folder, *((0, 0.1) if options.check else (TYPING, PAUSE))).frames
    if options.check:
        return compare(frames)
    for theme in THEMES:
        with open(os.path.join(OUT, theme + ".svg"), "w", encoding="utf-8") as file:
            file.write(draw(frames, theme))
    return 0


if __name__ == "__main__":
    sys.exit(main())
