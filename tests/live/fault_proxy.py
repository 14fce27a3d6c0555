"""A proxy between the scheduler and the API server that does harm on demand.

It ends TLS with a certificate of its own, speaks HTTP/1.1 over TLS to the API server, and relays
bytes as they come; of the protocol it reads only what it needs to tell one exchange from the next.
Harm is of two kinds:

- rules, for exchanges: `proxy.add(Match("POST", r"/binding$"), Swallow(), times=3)`;
- switches, for connections: `half_open()`, `refuse()`, `silence()`, `drop_all()`, `restore()`.

Everything may be called from any thread. The proxy runs in a thread of its own and ends with
`stop()`, whatever its peers do. Every exchange is recorded, without headers: no token is kept.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
import pathlib
import random
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable

import yaml

# More than the largest object the API server takes (1.5 MiB of etcd, 3 MiB of a request).
LONGEST_HEAD = 1 << 20
LARGEST_BODY = 8 << 20
PIECE = 1 << 16
CONNECT_TIMEOUT_S = 5
HANDSHAKE_TIMEOUT_S = 10
CALL_TIMEOUT_S = 10
MOST_RECORDS = 500_000


# --- what can be done to an exchange --------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Answer:
    """Answers in the API server's stead; the request is not passed on."""

    status: int
    reason: str = ""
    message: str = "answered by the fault proxy"
    retry_after: int | None = None

    def text(self) -> bytes:
        body = json.dumps(status_object(self.status, self.reason, self.message)).encode()
        lines = [f"HTTP/1.1 {self.status} Fault", "Content-Type: application/json"]
        if self.retry_after is not None:
            lines.append(f"Retry-After: {self.retry_after}")
        lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode() + body


@dataclasses.dataclass(frozen=True)
class WatchError:
    """Opens a watch and ends it with an ERROR event, as the API server does with a version that
    it no longer has."""

    status: int = 410
    reason: str = "Expired"
    message: str = "too old resource version: 1 (2)"

    def text(self) -> bytes:
        event = {
            "type": "ERROR",
            "object": status_object(self.status, self.reason, self.message),
        }
        line = json.dumps(event).encode() + b"\n"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked"
        return head + b"\r\n\r\n" + f"{len(line):x}\r\n".encode() + line + b"\r\n0\r\n\r\n"


@dataclasses.dataclass(frozen=True)
class Cut:
    """Relays so many bytes of the answer, then closes: with a word of TLS (`clean`) or without.

    With `of_body` the head of the answer passes and is not counted; the framing of chunks is.
    """

    after: int
    of_body: bool = False
    clean: bool = False


@dataclasses.dataclass(frozen=True)
class Delay:
    """Passes the request on and holds the answer back. `before`: holds back the request."""

    seconds: float
    before: bool = False


@dataclasses.dataclass(frozen=True)
class Trickle:
    """Relays the answer in pieces of so many bytes, with a pause after each."""

    size: int
    pause: float


@dataclasses.dataclass(frozen=True)
class Swallow:
    """The request is carried out, its answer is lost: the connection closes, or `hang`s."""

    hang: bool = False


@dataclasses.dataclass(frozen=True)
class Hang:
    """Takes the request, passes nothing on, never answers."""


Fault = Answer | WatchError | Cut | Delay | Trickle | Swallow | Hang


def status_object(code: int, reason: str, message: str) -> dict:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }


# --- which exchanges ------------------------------------------------------------------------------


@dataclasses.dataclass
class Exchange:
    """One request and what became of it. Times are of time.monotonic()."""

    method: str
    path: str
    query: str
    started: float
    status: int | None = None  # as sent to the client; None: no answer reached it
    upstream_status: int | None = None  # None: not passed on, or not answered
    ended: float | None = None
    fault: Fault | None = None
    sent: int = 0  # bytes of the answer

    @property
    def is_watch(self) -> bool:
        given = urllib.parse.parse_qs(self.query).get("watch", [""])[0]
        return given.lower() in ("1", "true")


@dataclasses.dataclass(frozen=True)
class Match:
    """`path` is a pattern searched for in the path (without the query)."""

    method: str = ""
    path: str = ""
    watch: bool | None = None
    where: Callable[[Exchange], bool] | None = None

    def __call__(self, exchange: Exchange) -> bool:
        return (
            (not self.method or self.method == exchange.method)
            and re.search(self.path, exchange.path) is not None
            and (self.watch is None or self.watch == exchange.is_watch)
            and (self.where is None or self.where(exchange))
        )


class Rule:
    """A fault for what matches, `times` times at most, each time with `probability`."""

    def __init__(self, proxy: FaultProxy, match: Match, fault: Fault, times: int | None,
                 probability: float, seed: int):  # fmt: skip
        self._proxy = proxy
        self._random = random.Random(seed)
        self.match = match
        self.fault = fault
        self.times = times
        self.probability = probability
        self.hits = 0

    def takes(self, exchange: Exchange) -> bool:
        if self.times is not None and self.hits >= self.times:
            return False
        if not self.match(exchange) or self._random.random() >= self.probability:
            return False
        self.hits += 1
        return True

    def remove(self) -> None:
        self._proxy.remove(self)

    def wait(self, hits: int, timeout: float) -> None:
        """Until it took so many exchanges."""
        self._proxy.wait_until(lambda: self.hits >= hits, timeout, f"{self.fault}: {hits} hits")

    def __enter__(self) -> Rule:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


# --- certificates ---------------------------------------------------------------------------------


def make_certificates(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path, pathlib.Path]:
    """A CA, and a certificate of 127.0.0.1 with its key; returns (ca, certificate, key)."""
    folder.mkdir(parents=True, exist_ok=True)
    ca, ca_key = folder / "ca.crt", folder / "ca.key"
    certificate, key = folder / "server.crt", folder / "server.key"
    common = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
    common += ["-pkeyopt", "ec_paramgen_curve:prime256v1"]
    calls = [
        [*common, "-subj", "/CN=fault-proxy-ca", "-keyout", ca_key, "-out", ca],
        [*common, "-subj", "/CN=fault-proxy", "-keyout", key, "-out", certificate]
        + ["-CA", ca, "-CAkey", ca_key, "-addext", "basicConstraints=critical,CA:FALSE"]
        + ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
    ]
    for call in calls:
        subprocess.run([str(word) for word in call], check=True, capture_output=True, timeout=60)
    return ca, certificate, key


# --- one connection -------------------------------------------------------------------------------


class _End(Exception):
    """The connection is over; `clean`: with a farewell."""

    def __init__(self, clean: bool = False):
        super().__init__()
        self.clean = clean


def _header(head: bytes, name: str) -> str | None:
    found = re.search(rb"(?im)^" + name.encode() + rb":[ \t]*([^\r\n]*)", head)
    return found.group(1).decode("latin-1").strip() if found else None


class _Connection:
    """A client's connection and the one to the API server that serves it."""

    def __init__(self, proxy: FaultProxy, reader: asyncio.StreamReader,
                 writer: asyncio.StreamWriter):  # fmt: skip
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._up: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.flowing = asyncio.Event()
        self.flowing.set()
        # What one exchange may still send, and how.
        self._left: int | None = None
        self._clean_cut = False
        self._trickle: Trickle | None = None
        # What was drained is with the system, so that a cut loses nothing before it. (0 as the high
        # mark would mean "full" even when empty.)
        writer.transport.set_write_buffer_limits(high=1, low=0)

    async def run(self) -> None:
        clean = False
        try:
            while await self._exchange():
                pass
            clean = True
        except _End as end:
            clean = end.clean
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError, ssl.SSLError):
            pass
        finally:
            for writer in [self._writer, *([self._up[1]] if self._up else [])]:
                with contextlib.suppress(Exception):
                    writer.close() if clean else writer.transport.abort()

    async def _exchange(self) -> bool:
        """False: the client has nothing more to say."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3:
            raise _End
        path, _, query = words[1].partition("?")
        exchange = Exchange(words[0], path, query, time.monotonic())
        self._left, self._trickle = None, None
        if (_header(head, "Expect") or "").lower() == "100-continue":
            await self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
            head = re.sub(rb"(?im)^Expect:[^\r\n]*\r\n", b"", head)
        body = await self._request_body(head)
        await self.flowing.wait()
        exchange.fault = self._proxy._choose(exchange)
        self._proxy._record(exchange)
        try:
            await self._act(exchange, head + body)
        finally:
            exchange.ended = time.monotonic()
            self._proxy._notify()
        return (_header(head, "Connection") or "").lower() != "close"

    async def _request_body(self, head: bytes) -> bytes:
        if (_header(head, "Transfer-Encoding") or "").lower() == "chunked":
            return b"".join([piece async for piece in self._chunks(self._reader)])
        length = int(_header(head, "Content-Length") or 0)
        if length > LARGEST_BODY:
            raise _End
        return await self._reader.readexactly(length)

    async def _act(self, exchange: Exchange, request: bytes) -> None:
        fault = exchange.fault
        if isinstance(fault, Hang):
            await asyncio.Event().wait()
        if isinstance(fault, Answer | WatchError):
            exchange.status = fault.status if isinstance(fault, Answer) else 200
            text = fault.text()
            await self._send(text)
            exchange.sent = len(text)
            return
        if isinstance(fault, Delay) and fault.before:
            await asyncio.sleep(fault.seconds)
        reader = await self._pass_on(request)
        head = await self._response_head(reader)
        exchange.upstream_status = int(head.split(b" ", 2)[1])
        if isinstance(fault, Swallow):
            async for _ in self._body(reader, exchange, head):
                pass
            if fault.hang:
                await asyncio.Event().wait()
            raise _End
        if isinstance(fault, Delay) and not fault.before:
            await asyncio.sleep(fault.seconds)
        await self._relay(exchange, reader, head)

    async def _relay(self, exchange: Exchange, reader: asyncio.StreamReader, head: bytes) -> None:
        fault = exchange.fault
        if isinstance(fault, Trickle):
            self._trickle = fault
        if isinstance(fault, Cut):
            self._left = fault.after + (len(head) if fault.of_body else 0)
            self._clean_cut = fault.clean
        if self._left is None or self._left >= len(head):
            exchange.status = exchange.upstream_status
            self._proxy._notify()
        await self._send(head)
        exchange.sent += len(head)
        async for piece in self._body(reader, exchange, head):
            await self._send(piece)
            exchange.sent += len(piece)
        if self._left is not None:  # the answer was shorter than where it was to be cut
            raise _End(self._clean_cut)
        if (_header(head, "Connection") or "").lower() == "close":
            raise _End(clean=True)

    async def _pass_on(self, request: bytes) -> asyncio.StreamReader:
        if self._up is None or self._up[0].at_eof():
            if self._up is not None:
                self._up[1].transport.abort()
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                self._up = await self._proxy._connect()
        reader, writer = self._up
        writer.write(request)
        await writer.drain()
        return reader

    @staticmethod
    async def _response_head(reader: asyncio.StreamReader) -> bytes:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if not re.match(rb"HTTP/1\.1 1\d\d ", head):
                return head

    async def _body(self, reader: asyncio.StreamReader, exchange: Exchange, head: bytes):
        """The body as it lies on the wire, piece by piece."""
        if exchange.method == "HEAD" or exchange.upstream_status in (204, 304):
            return
        if (_header(head, "Transfer-Encoding") or "").lower() == "chunked":
            async for piece in self._chunks(reader):
                yield piece
            return
        length = _header(head, "Content-Length")
        left = int(length) if length is not None else None
        while left is None or left > 0:
            piece = await reader.read(PIECE if left is None else min(PIECE, left))
            if not piece:
                if left is None:
                    raise _End(clean=True)
                raise _End
            left = None if left is None else left - len(piece)
            yield piece

    @staticmethod
    async def _chunks(reader: asyncio.StreamReader):
        while True:
            line = await reader.readuntil(b"\r\n")
            yield line
            left = int(line.split(b";")[0], 16)
            if left == 0:
                break
            left += 2  # the line's end after the chunk
            while left > 0:
                piece = await reader.read(min(PIECE, left))
                if not piece:
                    raise _End
                left -= len(piece)
                yield piece
        while True:  # trailers, and the empty line
            line = await reader.readuntil(b"\r\n")
            yield line
            if line == b"\r\n":
                return

    async def _send(self, data: bytes) -> None:
        step = self._trickle.size if self._trickle else len(data)
        for at in range(0, len(data), max(step, 1)):
            await self.flowing.wait()
            piece = data[at : at + step]
            over = self._left is not None and len(piece) >= self._left
            if self._left is not None:
                piece = piece[: self._left]
                self._left -= len(piece)
            self._writer.write(piece)
            await self._writer.drain()
            if over:
                raise _End(self._clean_cut)
            if self._trickle:
                await asyncio.sleep(self._trickle.pause)


# --- the proxy ------------------------------------------------------------------------------------


class FaultProxy:
    """`upstream` is the URL of the API server; `upstream_ca` the file that vouches for it."""

    def __init__(self, upstream: str, folder: pathlib.Path, upstream_ca: str | None = None):
        self._ca, certificate, key = make_certificates(pathlib.Path(folder))
        self._upstream = urllib.parse.urlsplit(upstream)
        self._serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._serving.load_cert_chain(certificate, key)
        self._serving.set_alpn_protocols(["http/1.1"])
        self._asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._asking.set_alpn_protocols(["http/1.1"])
        if upstream_ca:
            self._asking.load_verify_locations(upstream_ca)
        else:  # a throw-away server on the loopback interface
            self._asking.check_hostname = False
            self._asking.verify_mode = ssl.CERT_NONE
        self._changed = threading.Condition()
        self._rules: list[Rule] = []
        self._records: collections.deque[Exchange] = collections.deque(maxlen=MOST_RECORDS)
        self._tasks: dict[asyncio.Task, _Connection | None] = {}
        self._silent = False
        self.accepted = 0  # connections so far
        # Holds the port while nobody listens on it, so that it is refused and not taken.
        self._holder = self._socket(0)
        self.port = self._holder.getsockname()[1]
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task | None = None
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _loop, _context: None)  # peers end as they like
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy")
        self._thread.daemon = True
        self._thread.start()
        self._call(self._listen())

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> str:
        return str(self._ca)

    # --- rules

    def add(self, match: Match, fault: Fault, times: int | None = None, probability: float = 1.0,
            seed: int = 1) -> Rule:  # fmt: skip
        """The first rule that takes an exchange decides about it."""
        rule = Rule(self, match, fault, times, probability, seed)
        with self._changed:
            self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        with self._changed:
            if rule in self._rules:
                self._rules.remove(rule)

    # --- switches

    def half_open(self) -> None:
        """Connections that exist fall silent both ways and stay open; new ones are served."""
        self._call(self._freeze())

    def silence(self) -> None:
        """New connections are accepted and never answered, not even TLS's greeting."""
        self._call(self._set_silent(True))

    def refuse(self) -> None:
        """New connections are refused."""
        self._call(self._unlisten())

    def drop_all(self) -> None:
        """Ends all connections now."""
        self._call(self._drop())

    def restore(self) -> None:
        """No rules, no switches. What was half open or silent ends: its peer gave it up or will."""
        with self._changed:
            self._rules.clear()
        self._call(self._restore())

    def stop(self) -> None:
        if not self._thread.is_alive():
            return
        with contextlib.suppress(Exception):
            self._call(self._shut_down())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_TIMEOUT_S)
        self._loop.close()
        self._holder.close()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- what passed

    def exchanges(self, match: Match | None = None) -> list[Exchange]:
        with self._changed:
            return [each for each in self._records if match is None or match(each)]

    @property
    def open_connections(self) -> int:
        return len(self._tasks)

    def wait_until(self, condition: Callable[[], bool], timeout: float, what: str = "") -> None:
        """`condition` is looked at whenever an exchange begins, is answered or ends."""
        with self._changed:
            if not self._changed.wait_for(condition, timeout):
                raise TimeoutError(f"not within {timeout} s: {what or condition}")

    def kubeconfig(self, path: pathlib.Path, token: str) -> pathlib.Path:
        """Writes a kubeconfig that leads here."""
        path.write_text(yaml.safe_dump(make_kubeconfig(self.url, self.ca_file, token)))
        path.chmod(0o600)
        return path

    # --- inside the loop

    def _call(self, coroutine) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_TIMEOUT_S)

    @staticmethod
    def _socket(port: int) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(("127.0.0.1", port))
        return made

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = self._socket(self.port)
            self._listener.listen(256)
            self._listener.setblocking(False)
            self._accepting = self._loop.create_task(self._accept(self._listener))

    async def _unlisten(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
        self._listener, self._accepting = None, None

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            client, _ = await self._loop.sock_accept(listener)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            task = self._loop.create_task(self._serve(client, self._silent))
            self._tasks[task] = None
            task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _serve(self, client: socket.socket, silent: bool) -> None:
        try:
            if silent:
                await asyncio.Event().wait()
            reader = asyncio.StreamReader(limit=LONGEST_HEAD)
            protocol = asyncio.StreamReaderProtocol(reader)
            transport, _ = await self._loop.connect_accepted_socket(
                lambda: protocol,
                client,
                ssl=self._serving,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S,
            )
        except (OSError, ssl.SSLError):
            return
        finally:
            if silent:
                client.close()
        writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
        connection = _Connection(self, reader, writer)
        me = asyncio.current_task()
        if me not in self._tasks:
            return
        self._tasks[me] = connection
        # A client that goes away while an answer flows takes the connection to the server along.
        leaving = self._loop.create_task(self._cancel_when_closed(writer, me))
        try:
            await connection.run()
        finally:
            leaving.cancel()

    @staticmethod
    async def _cancel_when_closed(writer: asyncio.StreamWriter, task: asyncio.Task) -> None:
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        task.cancel()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        secure = self._upstream.scheme == "https"
        return await asyncio.open_connection(
            self._upstream.hostname,
            self._upstream.port,
            ssl=self._asking if secure else None,
            limit=LONGEST_HEAD,
        )

    async def _freeze(self) -> None:
        for connection in self._tasks.values():
            if connection is not None:
                connection.flowing.clear()

    async def _set_silent(self, silent: bool) -> None:
        self._silent = silent

    async def _drop(self) -> None:
        await self._end(list(self._tasks))

    @staticmethod
    async def _end(tasks: list[asyncio.Task]) -> None:
        # Again and again: one that was just about to finish something may miss a cancellation.
        while left := [task for task in tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=0.2)

    async def _restore(self) -> None:
        self._silent = False
        stuck = [t for t, c in self._tasks.items() if c is None or not c.flowing.is_set()]
        await self._end(stuck)
        await self._listen()

    async def _shut_down(self) -> None:
        await self._unlisten()
        await self._drop()
        await asyncio.sleep(0)

    def _choose(self, exchange: Exchange) -> Fault | None:
        with self._changed:
            return next((rule.fault for rule in self._rules if rule.takes(exchange)), None)

    def _record(self, exchange: Exchange) -> None:
        with self._changed:
            self._records.append(exchange)
            self._changed.notify_all()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


def make_kubeconfig(server: str, ca_file: str, token: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [
            {"name": "test", "cluster": {"server": server, "certificate-authority": ca_file}}
        ],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
