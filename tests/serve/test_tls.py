"""TLS: what is served on an address that other machines reach."""

import os
import ssl
import subprocess
import sys
import tempfile
import urllib.request

from served import PATIENCE, Server, main, refused

TOKEN = "t" * 40


def make_certificate(place):
    """A certificate of its own authority for localhost and 127.0.0.1."""
    cert, key = os.path.join(place, "cert.pem"), os.path.join(place, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=locks", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                   stderr=subprocess.DEVNULL, check=True, timeout=PATIENCE)
    return cert, key


def test_it_is_served_by_tls_with_tokens_to_every_address():
    with tempfile.TemporaryDirectory() as place:
        cert, key = make_certificate(place)
        with Server("--tls-cert", cert, "--tls-key", key, listen="0.0.0.0:0", tokens=f"lock {TOKEN}\n") as server:
            port = server.address.rsplit(":", 1)[1]
            trusted = ssl.create_default_context(cafile=cert)

            def ask(path, body=None):
                request = urllib.request.Request(f"https://localhost:{port}{path}", body, {
                    "Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"})
                return urllib.request.urlopen(request, timeout=PATIENCE, context=trusted)

            assert b'"main"' in ask("/v1/stores").read()
            with ask("/v1/stores/main/locks/job/acquire", b'{"lives":"connection"}') as stream:
                assert stream.readline() == b"event: acquired\n"
                assert not server.locks()["job"]["free"]
            for _ in range(20):  # many small ones on connections of their own
                assert ask("/healthz").read() == b"ok\n"
            with server.socket() as plain:
                plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                try:
                    assert b"200" not in plain.recv(100)
                except ConnectionResetError:
                    pass


def test_half_of_it_or_rubbish_is_refused():
    with tempfile.TemporaryDirectory() as place:
        cert, key = make_certificate(place)
        for words in (["--tls-cert", cert], ["--tls-key", key], ["--tls-cert", cert, "--tls-key", place + "/none"],
                      ["--tls-cert", "/dev/null", "--tls-key", key]):
            status, said = refused("serve", "-u", "memory://x", "-l", "127.0.0.1:0", *words)
            assert status in (64, 71) and said.count("\n") == 1 and said.startswith("holdfast: "), said


if __name__ == "__main__":
    sys.exit(main())
