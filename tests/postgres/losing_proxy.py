#!/usr/bin/env python3
"""losing_proxy.py PORT-FILE SERVER-PORT CUT-FILE [TEXT]: a TCP proxy that loses a reply.

Once the file CUT-FILE exists, the next reply with TEXT ("granted") in it is read (so the server has committed)
and thrown away, both connections are closed, and CUT-FILE is removed."""
import os
import socket
import sys
import threading


def pump(source, sink, cut, lock, text):
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            if text:
                with lock:
                    lose = os.path.exists(cut) and text in data
                    if lose:
                        os.remove(cut)
                if lose:
                    break
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def main():
    port_file, server_port, cut = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    text = (sys.argv[4] if len(sys.argv) > 4 else 'granted').encode()
    lock = threading.Lock()
    listener = socket.create_server(('127.0.0.1', 0))
    with open(port_file + '.new', 'w') as f:
        f.write(str(listener.getsockname()[1]))
    os.rename(port_file + '.new', port_file)
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(('127.0.0.1', server_port))
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=pump, args=(client, server, cut, lock, None), daemon=True).start()
        threading.Thread(target=pump, args=(server, client, cut, lock, text), daemon=True).start()


main()
