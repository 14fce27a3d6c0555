"""A UFM that serves what a test wants of it, over TLS: right answers, failures and lies."""

from __future__ import annotations

import base64
import http.server
import json
import pathlib
import ssl
import threading
from typing import Any

from fault_proxy import make_certificates

USERNAME, PASSWORD = "reader", "s3cret: ä"
PATH = "/ufmRest/resources/ports"


class Cables:
    """The ports of a fabric, cable by cable, each told at both of its ends."""

    def __init__(self) -> None:
        self.ports: list[dict[str, Any]] = []
        self._used: dict[str, int] = {}

    def plug(self, machine: str, leaf: str) -> None:
        adapter = f"adapter-{machine}-{self._next(machine)}"
        number = self._next(leaf)
        self._tell("Computer IB Port", adapter, 1, machine, leaf, number, leaf)
        self._tell("Switch IB Port", leaf, number, leaf, adapter, 1, machine)

    def link(self, lower: str, upper: str) -> None:
        a, b = self._next(lower), self._next(upper)
        self._tell("Switch IB Port", lower, a, lower, upper, b, upper)
        self._tell("Switch IB Port", upper, b, upper, lower, a, lower)

    def _next(self, device: str) -> int:
        self._used[device] = self._used.get(device, 0) + 1
        return self._used[device]

    def _tell(self, description: str, guid: str, number: int, system: str, peer: str,
              peer_number: int, peer_system: str) -> None:  # fmt: skip
        self.ports.append({
            "description": description, "guid": guid, "name": f"{guid}_{number}",
            "system_name": system, "logical_state": "Active", "physical_state": "Link Up",
            "peer": f"{peer}_{peer_number}", "peer_guid": peer, "peer_node_name": peer_system,
            "active_speed": "NDR", "tier": 1,
        })  # fmt: skip


class UfmServer:
    """`mode`: ok, unauthorized, error, html, half (an answer that is cut off), empty, hang."""

    def __init__(self, folder: pathlib.Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.ca_file, certificate, key = make_certificates(folder)
        self.mode = "ok"
        self.cables = Cables()
        self.asked = 0
        self._over = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:  # noqa: N802: the base class's name
                outer._answer(self)

            def log_message(self, *unused: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.asked += 1
        wanted = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        status, body, length = 200, json.dumps(self.cables.ports).encode(), None
        if request.path != PATH:
            status, body = 404, b"{}"
        elif self.mode == "unauthorized" or request.headers["Authorization"] != f"Basic {wanted}":
            status, body = 401, b"{}"
        elif self.mode == "error":
            status, body = 500, b"{}"
        elif self.mode == "html":
            body = b"<html>log in</html>"
        elif self.mode == "half":
            body = body[: len(body) // 2]
        elif self.mode == "cut":
            length = len(body) * 2
        elif self.mode == "empty":
            body = b"[]"
        elif self.mode == "hang":
            self._over.wait(60)
            return
        request.send_response(status)
        request.send_header("Content-Length", str(length or len(body)))
        request.end_headers()
        request.wfile.write(body)
        if self.mode == "cut":
            request.close_connection = True
