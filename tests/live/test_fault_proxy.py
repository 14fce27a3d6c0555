"""The fault proxy does the harm it is asked to do, that harm only, and leaves nothing behind."""

from __future__ import annotations

import http.client
import http.server
import json
import queue
import socket
import ssl
import threading
import time

import pytest
from fault_proxy import (
    Answer,
    Cut,
    Delay,
    FaultProxy,
    Hang,
    Match,
    Swallow,
    Trickle,
    WatchError,
)

LONG_S = 10  # nothing here takes so long unless it is broken
ITEM = b'{"kind": "Item"}'


class Upstream(http.server.BaseHTTPRequestHandler):
    """GET /item, GET /stream (chunks as the test hands them out), HEAD, POST and echo."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    posted: list[bytes]
    chunks: queue.Queue

    def do_GET(self):
        if self.path.startswith("/stream"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while (chunk := self.chunks.get(timeout=LONG_S)) is not None:
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.answer(ITEM)

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(ITEM)))
        self.end_headers()

    def do_POST(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posted.append(body)
        self.answer(body, 201)

    def answer(self, body: bytes, status: int = 200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def upstream():
    handler = type("Handler", (Upstream,), {"posted": [], "chunks": queue.Queue()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handler = handler
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    for _ in range(20):
        handler.chunks.put(None)  # ends streams that still wait
    server.shutdown()
    server.server_close()
    thread.join(LONG_S)


@pytest.fixture
def proxy(upstream, tmp_path):
    with FaultProxy(f"http://127.0.0.1:{upstream.server_port}", tmp_path) as made:
        yield made


@pytest.fixture
def connect(proxy):
    """Makes connections to the proxy that trust its CA; they are closed in the end."""
    made = []

    def make(timeout=LONG_S):
        context = ssl.create_default_context(cafile=proxy.ca_file)
        made.append(http.client.HTTPSConnection("127.0.0.1", proxy.port, timeout=timeout,
                                                context=context))  # fmt: skip
        return made[-1]

    yield make
    for each in made:
        each.close()


def get(connection, path="/item", method="GET", body=None, headers=None):
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    return response.status, response.read()


def raw(proxy, request: bytes) -> bytes:
    """All bytes of the answer, until the connection ends however it may."""
    context = ssl.create_default_context(cafile=proxy.ca_file)
    with socket.create_connection(("127.0.0.1", proxy.port), LONG_S) as plain:
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
            secure.sendall(request)
            found = b""
            try:
                while piece := secure.recv(4096):
                    found += piece
            except OSError:  # an end without TLS's farewell
                pass
            return found


def test_without_rules_everything_passes(proxy, connect, upstream):
    one = connect()
    assert get(one) == (200, ITEM)
    assert get(one, method="HEAD") == (200, b"")
    assert get(one, "/things", "POST", b"x" * 300_000) == (201, b"x" * 300_000)
    assert get(one, "/things", "POST", [b"ab", b"cde"]) == (201, b"abcde"), "sent in chunks"
    assert upstream.handler.posted == [b"x" * 300_000, b"abcde"]
    assert proxy.accepted == 1, "one connection served all"


def test_a_client_that_asks_first_may_go_on(proxy, connect):
    asking = {"Expect": "100-continue"}
    assert get(connect(), "/things", "POST", b"abc", asking) == (201, b"abc")


def test_a_stream_arrives_as_it_is_made(proxy, connect, upstream):
    one = connect()
    one.request("GET", "/stream?watch=1")
    upstream.handler.chunks.put(b"first\n")
    response = one.getresponse()
    assert response.readline() == b"first\n"
    upstream.handler.chunks.put(b"second\n")
    assert response.readline() == b"second\n"
    upstream.handler.chunks.put(None)
    assert response.read() == b""
    assert get(one) == (200, ITEM), "the connection is good for more"


def test_records_say_what_passed_and_hold_no_headers(proxy, connect):
    get(connect(), "/item?limit=5", headers={"Authorization": "Bearer sesame"})
    (found,) = proxy.exchanges()
    proxy.wait_until(lambda: found.ended is not None, LONG_S)
    assert (found.method, found.path, found.query) == ("GET", "/item", "limit=5")
    assert (found.status, found.upstream_status, found.fault) == (200, 200, None)
    assert found.ended >= found.started
    assert "sesame" not in repr(found)


@pytest.mark.parametrize(
    ("match", "hit"),
    [
        (Match(), True),
        (Match("GET"), True),
        (Match("POST"), False),
        (Match(path=r"^/item$"), True),
        (Match(path=r"^/ite$"), False),
        (Match(watch=True), True),
        (Match(watch=False), False),
        (Match(where=lambda e: "limit" in e.query), True),
        (Match("GET", "/item", True, lambda e: "continue" in e.query), False),
    ],
)
def test_a_rule_takes_what_it_names(proxy, connect, match, hit):
    proxy.add(match, Answer(500))
    assert get(connect(), "/item?limit=1&watch=true")[0] == (500 if hit else 200)


def test_the_first_rule_decides(proxy, connect):
    proxy.add(Match("GET"), Answer(429))
    proxy.add(Match(), Answer(503))
    assert get(connect())[0] == 429


def test_an_answer_in_the_servers_stead(proxy, connect, upstream):
    proxy.add(Match("POST"), Answer(429, "TooManyRequests", "later", retry_after=3))
    one = connect()
    one.request("POST", "/things", b"abc")
    response = one.getresponse()
    assert response.status == 429
    assert response.headers["Retry-After"] == "3"
    body = json.loads(response.read())
    assert (body["kind"], body["code"], body["reason"]) == ("Status", 429, "TooManyRequests")
    assert upstream.handler.posted == [], "it was not passed on"
    assert get(one) == (200, ITEM), "the connection is good for more"


def test_a_watch_ends_with_an_error_event(proxy, connect):
    proxy.add(Match(watch=True), WatchError(410))
    status, body = get(connect(), "/stream?watch=1")
    event = json.loads(body)
    assert (status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)


def test_a_rule_ends_after_its_times(proxy, connect):
    rule = proxy.add(Match(), Answer(500), times=2)
    one = connect()
    assert [get(one)[0] for _ in range(4)] == [500, 500, 200, 200]
    assert rule.hits == 2


def test_a_rule_that_is_removed_ends(proxy, connect):
    with proxy.add(Match(), Answer(500)):
        assert get(connect())[0] == 500
    assert get(connect())[0] == 200


def test_probability_is_kept_and_repeats(proxy, connect):
    one = connect()

    def run():
        with proxy.add(Match(), Answer(500), probability=0.3, seed=7):
            return [get(one)[0] for _ in range(200)]

    first = run()
    assert 30 <= first.count(500) <= 90
    assert run() == first


def test_an_answer_is_cut_at_any_byte(proxy):
    request = b"GET /item HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    whole = raw(proxy, request)
    assert whole.endswith(ITEM)
    head = len(whole) - len(ITEM)
    # The Date in the head changes with the second; its length does not.
    for after in range(len(whole)):
        with proxy.add(Match(), Cut(after, clean=after % 2 == 0)):
            found = raw(proxy, request)
            assert len(found) == after, found
    for after in range(len(ITEM)):
        with proxy.add(Match(), Cut(after, of_body=True)):
            assert len(raw(proxy, request)) == head + after


def test_a_cut_beyond_the_end_closes_after_the_answer(proxy):
    proxy.add(Match(), Cut(100_000))
    assert raw(proxy, b"GET /item HTTP/1.1\r\nHost: x\r\n\r\n").endswith(ITEM)


def test_a_stream_is_cut_within_an_event(proxy, connect, upstream):
    one = connect()
    proxy.add(Match(watch=True), Cut(10, of_body=True))
    one.request("GET", "/stream?watch=1")
    upstream.handler.chunks.put(b'{"type": "ADDED"}\n')
    response = one.getresponse()
    assert response.read1() == b'{"type'  # 4 of the 10 bytes are the chunk's own line
    with pytest.raises((http.client.IncompleteRead, OSError)):
        response.read()
    assert proxy.exchanges()[0].upstream_status == 200


@pytest.mark.parametrize("before", [False, True])
def test_an_answer_is_delayed(proxy, connect, upstream, before):
    proxy.add(Match("POST"), Delay(0.3, before=before))
    started = time.monotonic()
    results = []
    thread = threading.Thread(target=lambda: results.append(get(connect(), "/a", "POST", b"abc")))
    thread.start()
    time.sleep(0.15)
    assert upstream.handler.posted == ([] if before else [b"abc"])
    thread.join(LONG_S)
    assert results == [(201, b"abc")]
    assert time.monotonic() - started >= 0.3


def test_an_answer_trickles(proxy, connect):
    proxy.add(Match(), Trickle(size=20, pause=0.02))
    started = time.monotonic()
    assert get(connect()) == (200, ITEM)
    assert time.monotonic() - started >= 0.06


def test_a_swallowed_request_was_carried_out(proxy, connect, upstream):
    rule = proxy.add(Match("POST"), Swallow(), times=1)
    with pytest.raises((http.client.RemoteDisconnected, OSError)):
        get(connect(), "/things", "POST", b"abc")
    assert upstream.handler.posted == [b"abc"]
    assert rule.hits == 1
    (found,) = proxy.exchanges()
    proxy.wait_until(lambda: found.ended is not None, LONG_S)
    assert (found.status, found.upstream_status) == (None, 201)


@pytest.mark.parametrize(("fault", "carried_out"), [(Hang(), False), (Swallow(hang=True), True)])
def test_a_request_that_is_never_answered(proxy, connect, upstream, fault, carried_out):
    rule = proxy.add(Match("POST"), fault)
    with pytest.raises(TimeoutError):
        get(connect(timeout=0.3), "/things", "POST", b"abc")
    rule.wait(hits=1, timeout=LONG_S)
    assert bool(upstream.handler.posted) == carried_out


def test_half_open_connections_fall_silent_and_stay(proxy, connect, upstream):
    old = connect(timeout=0.3)
    old.request("GET", "/stream?watch=1")
    upstream.handler.chunks.put(b"first\n")
    response = old.getresponse()
    assert response.readline() == b"first\n"
    proxy.half_open()
    upstream.handler.chunks.put(b"second\n")
    with pytest.raises(TimeoutError):
        response.readline()
    assert get(connect()) == (200, ITEM), "new ones are served"
    proxy.restore()
    assert get(connect()) == (200, ITEM)


def test_an_idle_connection_becomes_half_open_too(proxy, connect):
    old = connect(timeout=0.3)
    assert get(old) == (200, ITEM)
    proxy.half_open()
    with pytest.raises(TimeoutError):
        get(old)


def test_refused_connections(proxy, connect):
    old = connect()
    assert get(old) == (200, ITEM)
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        get(connect())
    assert get(old) == (200, ITEM), "those that exist live on"
    proxy.restore()
    assert get(connect()) == (200, ITEM)


def test_silent_connections(proxy, connect):
    proxy.silence()
    with pytest.raises(TimeoutError):
        get(connect(timeout=0.3))
    proxy.restore()
    assert get(connect()) == (200, ITEM)


def test_dropping_all_ends_streams_and_idle_connections(proxy, connect, upstream):
    streaming, idle = connect(), connect()
    assert get(idle) == (200, ITEM)
    streaming.request("GET", "/stream?watch=1")
    upstream.handler.chunks.put(b"first\n")
    response = streaming.getresponse()
    assert response.readline() == b"first\n"
    proxy.drop_all()
    with pytest.raises((http.client.HTTPException, OSError)):
        response.read()
    with pytest.raises((http.client.HTTPException, OSError)):
        get(idle)
    assert proxy.open_connections == 0
    assert get(connect()) == (200, ITEM)


def test_a_server_that_is_down_ends_the_connection(proxy, connect, upstream):
    upstream.shutdown()
    upstream.server_close()
    with pytest.raises((http.client.RemoteDisconnected, OSError)):
        get(connect())
    assert proxy.exchanges()[0].status is None


def test_a_client_that_leaves_a_stream_ends_its_other_half(proxy, connect, upstream):
    one = connect()
    one.request("GET", "/stream?watch=1")
    upstream.handler.chunks.put(b"first\n")
    response = one.getresponse()
    assert response.readline() == b"first\n"
    response.close()
    one.close()
    deadline = time.monotonic() + LONG_S
    while proxy.open_connections and time.monotonic() < deadline:
        time.sleep(0.01)
    assert proxy.open_connections == 0


def test_many_clients_at_once(proxy, connect):
    ends = []

    def work():
        one = connect()
        ends.append(all(get(one) == (200, ITEM) for _ in range(20)))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert ends == [True] * 16
    assert len(proxy.exchanges()) == 320


def test_stopping_is_prompt_whatever_hangs(proxy, connect):
    proxy.add(Match("POST"), Hang())
    one = connect()
    one.request("POST", "/things", b"abc")
    proxy.wait_until(lambda: len(proxy._records) == 1, LONG_S)
    started = time.monotonic()
    proxy.stop()
    assert time.monotonic() - started < 2
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", proxy.port), 1)
    proxy.stop()  # a second time is harmless


def test_an_upstream_with_tls_is_checked_against_its_ca(upstream, tmp_path):
    # One proxy stands for the API server, another is before it.
    plain = f"http://127.0.0.1:{upstream.server_port}"
    with FaultProxy(plain, tmp_path / "a") as server:
        with FaultProxy(server.url, tmp_path / "b", server.ca_file) as good:
            context = ssl.create_default_context(cafile=good.ca_file)
            one = http.client.HTTPSConnection("127.0.0.1", good.port, context=context)
            assert get(one) == (200, ITEM)
            one.close()
        with FaultProxy(server.url, tmp_path / "c", good.ca_file) as bad:
            assert raw(bad, b"GET /item HTTP/1.1\r\nHost: x\r\n\r\n") == b""


def test_its_kubeconfig_leads_to_it(proxy, tmp_path):
    path = proxy.kubeconfig(tmp_path / "kubeconfig", "sesame")
    text = path.read_text()
    assert proxy.url in text and proxy.ca_file in text and "sesame" in text
    assert path.stat().st_mode & 0o077 == 0
