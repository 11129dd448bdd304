#!/usr/bin/env python3
"""Every store that speaks TLS, against peers that are not who they say: each is refused with one clear sentence
and status 69, and the password of the URL never reaches it.

    tls_peers.py HOLDFAST STORE...     the command; the stores' modules are found as HOLDFAST_MODULES says

The peers are small servers here on loopback, which speak as much of a protocol as comes before TLS. A good
certificate is tried first: it must get past the handshake, or the refusals would prove nothing.
"""
import concurrent.futures
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import warnings

warnings.simplefilter("ignore", DeprecationWarning)  # old versions of TLS are the point
PASSWORD = "S3cret-of-the-URL"
STORES = {  # URL, and what the peer says before TLS
    "redis": ("rediss://u:{p}@{host}:{port}/0?", None),
    "sentinel": ("redis+sentinel://u:{p}@{host}:{port}/master?sentinel_user=u&sentinel_password_env=SENTINEL&", None),
    "redlock": ("redlock://u:{p}@{host}:{port}?", None),
    "etcd": ("etcd://u:{p}@{host}:{port}/?", None),
    "cassandra": ("cassandra://u:{p}@{host}:{port}/k?", None),
    "postgres": ("postgres://u:{p}@{host}:{port}/d?", "postgres"),
    "mysql": ("mysql://u:{p}@{host}:{port}/d?", "mysql"),
}
PEERS = {  # certificate of the peer, what the client trusts, host of the URL, what the sentence has
    "trusted": ("server", "ca", "localhost", None),
    "another name": ("server", "ca", "127.0.0.1", r"(?i)name|address|match|verif"),
    "expired": ("expired", "ca", "localhost", r"(?i)expired|verif"),
    "self-signed": ("self", "ca", "localhost", r"(?i)self.signed|trust|verif"),
    "unknown authority": ("stranger", "ca", "localhost", r"(?i)trust|unable to get|verif|unknown"),
    "TLS 1.1 only": ("server", "ca", "localhost", r"(?i)TLS|SSL|protocol|version"),
    "no TLS": (None, "ca", "localhost", r"(?i)TLS|SSL"),
    "silent": (None, "ca", "localhost", r"(?i)TLS|SSL|answer|time"),
}
GREETING = (b"\x0a5.5.5-10.11.6-MariaDB\0" + b"\x01\0\0\0" + b"12345678\0" + b"{caps}" + b"\x2d\x02\0" + b"\x0f\x80\x15" +
            bytes(10) + b"123456789012\0" + b"mysql_native_password\0")


def certificates(directory):
    """An authority and a server of the name localhost, one whose time is over, one of its own, one of a stranger's."""
    script = r"""
set -e
key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
for authority in ca other; do
    openssl req -x509 $key -days 2 -subj /CN=$authority -addext keyUsage=keyCertSign -keyout $authority.key -out $authority.crt
done
printf 'subjectAltName=DNS:localhost\n' >ext
sign() {
    openssl req $key -subj /CN=localhost -keyout $1.key -out $1.csr
    openssl x509 -req -in $1.csr -CA $2.crt -CAkey $2.key -CAcreateserial -extfile ext -days $3 -out $1.crt
}
sign server ca 2
sign stranger other 2
openssl req -x509 $key -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout self.key -out self.crt
openssl req $key -subj /CN=localhost -keyout expired.key -out expired.csr
mkdir -p db && : >db/index && echo 01 >db/serial
printf '[ca]\ndefault_ca=d\n[d]\ndatabase=db/index\nserial=db/serial\nnew_certs_dir=db\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n' >conf
openssl ca -batch -config conf -cert ca.crt -keyfile ca.key -in expired.csr -extfile ext -startdate 20200101000000Z -enddate 20200201000000Z -out expired.crt
"""
    subprocess.run(["sh", "-c", script], cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Peer(threading.Thread):
    """Listens for as long as one command runs, and keeps all that it was told."""

    def __init__(self, directory, before, kind, certificate):
        super().__init__(daemon=True)
        self.before, self.kind = before, kind
        self.heard, self.shook_hands = b"", False
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(f"{directory}/{certificate}.crt", f"{directory}/{certificate}.key")
            self.context.set_alpn_protocols(["h2"])
            if kind == "TLS 1.1 only":
                self.context.set_ciphers("ALL:@SECLEVEL=0")
                self.context.minimum_version = ssl.TLSVersion.TLSv1
                self.context.maximum_version = ssl.TLSVersion.TLSv1_1
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def run(self):
        while True:
            try:
                one = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(one,), daemon=True).start()

    def serve(self, one):
        try:
            one.settimeout(10)
            if not self.begin(one):
                return
            if self.context:
                one = self.context.wrap_socket(one, server_side=True)
                self.shook_hands = True
            elif self.kind != "silent" and not self.before:
                one.sendall(b"-ERR this is a diary\r\n")
            while data := one.recv(65536):
                self.heard += data
        except OSError:
            pass
        finally:
            one.close()

    def begin(self, one):
        """What comes before TLS. False: it goes no further."""
        if self.kind == "silent":
            return True
        if self.before == "postgres":
            self.heard += one.recv(8)
            one.sendall(b"S" if self.context else b"N")
        elif self.before == "mysql":
            caps = 0xAA85 | (0x0800 if self.context else 0)
            greeting = GREETING.replace(b"{caps}", caps.to_bytes(2, "little"))
            one.sendall(len(greeting).to_bytes(3, "little") + b"\0" + greeting)
            self.heard += one.recv(36 if self.context else 65536)
        return True


def try_one(holdfast, directory, store, kind):
    """None: as it should be; else what was wrong."""
    (start, before), (certificate, authority, host, sentence) = STORES[store], PEERS[kind]
    peer = Peer(directory, before, kind, certificate)
    peer.start()
    url = start.format(p=PASSWORD, host=host, port=peer.port)
    url += f"tls=verify&tls_ca={directory}/{authority}.crt&op_timeout=500ms"
    if store == "redis":
        url = url.replace("tls=verify&", "")
    if store == "redlock":
        url += "&restart_guard=off"
    environment = dict(os.environ, HOLDFAST_URL=url, SENTINEL=PASSWORD, HOME=directory)
    ran = subprocess.run([holdfast, "run", "-n", "x", "--", "true"], env=environment, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=60, check=False)
    peer.socket.close()
    said = ran.stdout.strip()
    if PASSWORD in said:
        return f"the password is shown: {said}"
    if kind == "trusted":
        return None if peer.shook_hands else f"a good certificate is refused: {said}"
    if PASSWORD.encode() in peer.heard:
        return "the password was told to the peer"
    if ran.returncode != 69:
        return f"status {ran.returncode}: {said}"
    if "\n" in said or not said.startswith("holdfast: ") or not re.search(sentence, said):
        return f"not one clear sentence: {said}"
    return None


def main():
    holdfast, wanted = sys.argv[1], sys.argv[2:]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as directory:
        certificates(directory)
        cases = [(store, kind) for store in wanted for kind in PEERS]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # most of the time somebody waits
            results = pool.map(lambda case: try_one(holdfast, directory, *case), cases)
            for (store, kind), wrong in zip(cases, results):
                passed, failed = passed + (wrong is None), failed + (wrong is not None)
                print(f"{'ok  ' if wrong is None else 'FAIL'} {store}: {kind}{'' if wrong is None else ': ' + wrong}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
