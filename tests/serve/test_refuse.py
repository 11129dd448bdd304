"""Who may not ask, and what is too much: hosts, origins, tokens, sizes, and what the server does not listen on."""

import os
import subprocess
import sys
import tempfile

from served import COMMAND, PATIENCE, Server, eventually, main, refused

READ, LOCK, BREAK = "r" * 16, "l" * 20, "b" * 255
TOKENS = f"# who\nread {READ}\nlock {LOCK}\n\nbreak {BREAK}\n"


def test_another_host_is_refused():
    with Server("--host", "locks.example") as server:
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:x", "[::1", "locks.example:1:2"):
            assert server.get("/", headers={"Host": host}).status == 421, host
        port = server.address.rsplit(":", 1)[1]
        for host in ("localhost", "LOCALHOST:" + port, "127.0.0.1", "[::1]:" + port, "locks.example", "Locks.Example:443"):
            assert server.get("/", headers={"Host": host}).status == 200, host


def test_a_page_of_another_origin_can_do_nothing():
    with Server("--allow-break") as server:
        ticket = server.command("lock", "-q", "--ttl", "1m", "mine").decode().strip()
        paths = [("GET", "/v1/stores"), ("GET", "/v1/stores/main/locks"), ("GET", "/v1/stores/main/doctor"), ("GET", "/metrics"),
                 ("GET", "/v1/stores/main/events"), ("POST", "/v1/stores/main/locks/mine/break"), ("POST", "/v1/stores/main/check"),
                 ("POST", "/v1/stores/main/locks/other/acquire"), ("POST", "/v1/stores/main/locks/mine/release")]
        for method, path in paths:
            for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                            {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://127.0.0.1:1"}):
                answer = server.ask(method, path, {"ticket": ticket, "now": True} if method == "POST" else None, headers)
                assert answer.status == 403, (path, headers)
                assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            assert server.post("/v1/stores/main/locks/mine/break", {"ticket": ticket}, headers={"Content-Type": kind}).status == 415
        assert not server.locks()["mine"]["free"]
        own = {"Origin": "http://" + server.address, "Sec-Fetch-Site": "same-origin"}
        assert server.get("/v1/stores", headers=own).status == 200
        assert server.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status == 200  # a link to the page


def test_every_answer_tells_the_browser_to_be_careful():
    with Server() as server:
        for path in ("/", "/v1/stores", "/nothing", "/metrics", "/assets/app.js"):
            headers = server.get(path).headers
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"] and "unsafe" not in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
            assert headers["Referrer-Policy"] == "no-referrer"


def test_tokens_have_roles():
    with Server("--allow-break", tokens=TOKENS) as server:
        ticket = server.command("lock", "-q", "--ttl", "1m", "mine").decode().strip()
        for token in (None, "", "x", READ[:-1], READ + "r", "x" * 300, READ.upper()):
            answer = server.get("/v1/stores", token=token)
            assert answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer", token
        assert server.get("/v1/stores", headers={"Authorization": "Basic " + READ}).status == 401
        for token in (READ, LOCK, BREAK):
            assert server.get("/v1/stores/main/locks", token=token).status == 200
        path, body = "/v1/stores/main/locks/mine/", {"ticket": ticket}
        assert server.post(path + "renew", body, token=READ).status == 403
        assert server.post(path + "break", body, token=READ).status == 403
        assert server.post(path + "break", body, token=LOCK).status == 403
        assert server.get("/").status == 200 and server.get("/healthz").status == 200
        assert server.get("/metrics").status == 401
        assert server.post(path + "break", {"ticket": ticket, "now": True}, token=BREAK).status == 200
        assert server.locks() == {}


def test_nothing_is_broken_unless_it_is_allowed():
    with Server(tokens=TOKENS) as server:
        ticket = server.command("lock", "-q", "--ttl", "1m", "mine").decode().strip()
        answer = server.post("/v1/stores/main/locks/mine/break", {"ticket": ticket}, token=BREAK)
        assert answer.status == 403 and "--allow-break" in answer.json["error"]["text"]
        assert not server.locks()["mine"]["free"]


def test_a_file_of_tokens_that_others_read_is_refused():
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "tokens")
        for text, mode, why in ((TOKENS, 0o644, "others can open"), (TOKENS, 0o620, "others can open"),
                                ("read short\n", 0o600, "16 to 255"), ("admin " + READ, 0o600, "expected"), ("", 0o600, "no token"),
                                (f"read {READ} {READ}\n", 0o600, "nothing else"), ("lock\n", 0o600, "expected")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, mode)
            status, said = refused("serve", "-u", "memory://x", "-l", "127.0.0.1:0", "--token-file", path)
            assert status == 64 and why in said and READ not in said, said


def test_an_address_that_others_reach_needs_tls_and_tokens():
    for address in ("0.0.0.0:0", "[::]:0"):
        status, said = refused("serve", "-u", "memory://x", "-l", address)
        assert status == 64 and "--token-file" in said and "--tls-cert" in said, said
    for address in ("nonsense", ":1", "127.0.0.1:port", "unix:"):
        status, said = refused("serve", "-u", "memory://x", "-l", address)
        assert status == 64 and said.count("\n") == 1, said


def test_bodies_and_heads_have_a_limit():
    with Server() as server:
        check = "/v1/stores/main/check"
        assert server.post(check, b" " * 16384 + b" ").status == 413
        assert server.post(check, {"sequencer": "x" * 16000}).status == 400
        assert server.get("/v1/stores", headers={"X-Long": "x" * 20000}).status == 431
        for body in (b"[]", b"{", b"null", b'{"sequencer":1}', b'{"sequencer":"a","sequencer":"b"}', b'{"other":1}', b"{}", b"\xff", b""):
            answer = server.post(check, body)
            assert answer.status == 400 and answer.json["error"]["code"] == "HF_INVALID", body


def test_a_slow_client_is_cut():
    with Server("--idle-timeout", "1s") as server:
        with server.socket() as slow:
            slow.sendall(b"GET /v1/stores HTTP/1.1\r\nHost: localhost\r\n")
            assert slow.recv(1) == b""


def test_connections_have_a_limit_and_are_given_back():
    with Server("--max-connections", "3", "--idle-timeout", "1h") as server:
        taken = [server.socket() for _ in range(3)]
        for s in taken:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert s.recv(15) == b"HTTP/1.1 200 OK"
        with server.socket() as late:
            late.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            taken.pop().close()
            assert late.recv(15) == b"HTTP/1.1 200 OK"
        for s in taken:
            s.close()
        eventually(lambda: server.get("/healthz").status == 200)


def test_a_unix_socket_is_for_its_owner():
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "socket")
        with Server(listen="unix:" + path) as server:
            assert os.stat(path).st_mode & 0o777 == 0o600
            said = subprocess.run(["curl", "-s", "--unix-socket", path, "http://any.example/healthz"], stdout=subprocess.PIPE,
                                  check=True, timeout=PATIENCE).stdout
            assert said == b"ok\n"
            server.kill()
            with Server(listen="unix:" + path):  # what the killed one has left is no obstacle
                pass


def test_a_socket_that_was_handed_down_is_used():
    with tempfile.TemporaryDirectory() as place:
        # As systemd does: descriptor 3, and our own process id in the environment.
        start = f"""
import os, socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1], flush=True)
os.dup2(os.dup(s.fileno()), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv({COMMAND!r}, [{COMMAND!r}, "serve", "-u", "memory://x"])
"""
        child = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True, cwd=place)
        try:
            port = child.stdout.readline().strip()
            assert child.stdout.readline() == f"listening on http://127.0.0.1:{port}\n"
        finally:
            child.terminate()
            assert child.wait(PATIENCE) == 0


if __name__ == "__main__":
    sys.exit(main())
