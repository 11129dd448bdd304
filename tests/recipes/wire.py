"""Proxies that write down what a client sends, for servers whose own log does not say it: ZooKeeper (jute) and
Cassandra (the native protocol, version 4, without compression). One line a request, in the order of their arrival."""

import re
import socket
import struct
import threading


class Proxy:
    """Listens on a port of its own, passes everything on to `target`, and collects `lines`."""

    def __init__(self, target, connection_type):
        self.target = target
        self.connection_type = connection_type
        self.lines = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.target)
            decoder = self.connection_type(self.lines)
            for source, sink, read in ((client, server, decoder.request), (server, client, decoder.response)):
                threading.Thread(target=carry, args=(source, sink, decoder.frames, read), daemon=True).start()


def carry(source, sink, frames, read):
    """Passes bytes on until one side closes; each complete frame is read on the way."""
    kept = b""
    try:
        while data := source.recv(65536):
            kept += data
            whole, kept = frames(kept)
            for frame in whole:
                read(frame)
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Reader:
    """Takes fields off the front of a frame."""

    def __init__(self, data):
        self.data = data

    def take(self, count):
        piece, self.data = self.data[:count], self.data[count:]
        return piece

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def bytes(self):
        return self.take(max(0, self.number(">i")))

    def text(self):
        return self.bytes().decode("utf-8", "replace")


class Zookeeper:
    NAMES = {1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 8: "getChildren", 9: "sync",
             12: "getChildren", 13: "check", 14: "multi", 15: "create", 19: "createContainer", 21: "createTTL"}
    CREATES = (1, 15, 19, 21)
    KINDS = {0: "", 1: " ephemeral", 2: " sequential", 3: " ephemeral sequential", 4: " container"}

    def __init__(self, lines):
        self.lines = lines
        self.connected = False

    @staticmethod
    def frames(data):
        whole = []
        while len(data) >= 4 and len(data) >= 4 + (size := struct.unpack(">i", data[:4])[0]):
            whole.append(data[4:4 + size])
            data = data[4 + size:]
        return whole, data

    def step(self, kind, reader):
        """One request, or one part of a multi."""
        line = f"{self.NAMES[kind]} {reader.text()}"
        if kind in self.CREATES:
            reader.bytes()
            for _ in range(reader.number(">i")):
                reader.take(4)
                reader.bytes(), reader.bytes()
            line += self.KINDS.get(reader.number(">i"), "")
        elif kind == 5:
            reader.bytes(), reader.take(4)
        elif kind in (2, 13):
            reader.take(4)
        elif kind in (3, 4, 8, 12) and reader.number(">?"):
            line += " watch"
        return line

    def request(self, frame):
        if not self.connected:
            self.connected = True
            return
        reader = Reader(frame)
        reader.take(4)
        kind = reader.number(">i")
        if kind == 14:
            steps = []
            while (part := reader.number(">i")) != -1:
                reader.take(5)
                steps.append(self.step(part, reader))
            self.lines.append("multi " + "; ".join(steps))
        elif kind in self.NAMES:
            self.lines.append(self.step(kind, reader))

    def response(self, frame):
        pass


class Cassandra:
    QUERY, RESULT, PREPARE, EXECUTE, PREPARED = 7, 8, 9, 10, 4

    def __init__(self, lines):
        self.lines = lines
        self.preparing = {}  # stream: statement
        self.prepared = {}   # id: statement

    @staticmethod
    def frames(data):
        whole = []
        while len(data) >= 9 and len(data) >= 9 + (size := struct.unpack(">i", data[5:9])[0]):
            whole.append(data[:9 + size])
            data = data[9 + size:]
        return whole, data

    def request(self, frame):
        stream, kind = struct.unpack(">hB", frame[2:5])
        reader = Reader(frame[9:])
        if kind == self.PREPARE:
            self.preparing[stream] = reader.text()
        elif kind == self.EXECUTE:
            self.note(self.prepared[reader.take(reader.number(">H"))])
        elif kind == self.QUERY:
            self.note(reader.text())

    def response(self, frame):
        stream, kind = struct.unpack(">hB", frame[2:5])
        reader = Reader(frame[9:])
        if kind == self.RESULT and stream in self.preparing and reader.number(">i") == self.PREPARED:
            self.prepared[reader.take(reader.number(">H"))] = self.preparing.pop(stream)

    def note(self, statement):
        if not re.search(r"\bFROM system", statement):
            self.lines.append(" ".join(statement.split()))
