"""A small client of the API server for the harness: quick to import and to use from many threads.

Tests that stand for users take the official client, or kubectl.
"""

from __future__ import annotations

import http.client
import json
import pathlib
import ssl
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable, Iterator, TypeVar

import yaml

from hopcluster.errors import ClusterError

Object = dict[str, Any]
_T = TypeVar("_T")
_R = TypeVar("_R")

_MANAGER = "hopcluster"
_TIMEOUT_S = 30.0
# The server ends connections that lie idle for long, and a POST is not sent twice.
_IDLE_S = 20.0


class ApiError(ClusterError):
    def __init__(self, code: int, message: str, reason: str = "") -> None:
        super().__init__(f"{code} {reason}: {message}" if reason else f"{code}: {message}")
        self.code = code
        self.reason = reason


class Api:
    """For any number of threads; connections are kept open and handed from one to the next."""

    def __init__(self, port: int, ca_file: pathlib.Path, token: str) -> None:
        self._port = port
        self._ca_file = ca_file
        self._token = token
        self._idle: list[tuple[float, http.client.HTTPSConnection]] = []
        self._idle_lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None
        self._plurals: dict[str, dict[str, tuple[str, bool]]] = {}

    # --- requests ---------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        timeout_s: float = _TIMEOUT_S,
    ) -> Any:
        """The answer's JSON (its text, where it is none); ApiError for what is not 2xx."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        status, text = self._exchange(method, path, data, headers, timeout_s)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = text.decode(errors="replace")
        if status >= 300:
            if isinstance(answer, dict):
                raise ApiError(status, answer.get("message", ""), answer.get("reason", ""))
            raise ApiError(status, str(answer))
        return answer

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], timeout_s: float
    ) -> tuple[int, bytes]:
        with self._idle_lock:
            used_at, kept = self._idle.pop() if self._idle else (0.0, None)
        if kept and time.monotonic() - used_at > _IDLE_S:
            kept.close()
            kept = None
        connection = kept or self._connect()
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            connection.timeout = timeout_s
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            # The server may have closed a connection that lay idle; another one gets a try.
            if kept and method != "POST":
                return self._exchange(method, path, data, headers, timeout_s)
            raise
        with self._idle_lock:
            self._idle.append((time.monotonic(), connection))
        return response.status, text

    def _connect(self) -> http.client.HTTPSConnection:
        # The CA exists only once the API server has been started.
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=str(self._ca_file))
        return http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls)

    def forget_connections(self) -> None:
        """Of a server that has been stopped."""
        with self._idle_lock:
            for _, connection in self._idle:
                connection.close()
            self._idle.clear()

    def is_ready(self) -> bool:
        try:
            self.request("GET", "/readyz", timeout_s=2.0)
        except (OSError, http.client.HTTPException, ApiError):
            return False
        return True

    # --- objects ----------------------------------------------------------------------------------

    def path_of(self, object_: Object) -> str:
        """Where the object lives, by what the server says of its kind."""
        meta = object_["metadata"]
        collection = self.collection(
            object_["apiVersion"], object_["kind"], meta.get("namespace", "default")
        )
        return f"{collection}/{urllib.parse.quote(meta['name'])}"

    def collection(self, api_version: str, kind: str, namespace: str = "") -> str:
        """The path of a kind's objects, in all namespaces when that is ""."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if kind not in self._plurals.get(api_version, {}):
            resources = self.request("GET", root)["resources"]
            self._plurals[api_version] = {
                one["kind"]: (one["name"], one["namespaced"])
                for one in resources
                if "/" not in one["name"]
            }
        if kind not in self._plurals[api_version]:
            raise ClusterError(f"the API server does not serve {kind} of {api_version}")
        plural, namespaced = self._plurals[api_version][kind]
        if namespaced and namespace:
            return f"{root}/namespaces/{namespace}/{plural}"
        return f"{root}/{plural}"

    def get(self, api_version: str, kind: str, name: str, namespace: str = "default") -> Object:
        return self.request("GET", f"{self.collection(api_version, kind, namespace)}/{name}")

    def list(
        self, api_version: str, kind: str, namespace: str = "", selector: str = ""
    ) -> list[Object]:
        query = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        path = self.collection(api_version, kind, namespace)
        return self.request("GET", path + query)["items"]

    def watch(self, api_version: str, kind: str, for_s: float) -> Iterator[Object]:
        """Events of all objects of the kind from now on, until so long nothing came."""
        path = self.collection(api_version, kind)
        version = self.request("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
        connection = self._connect()
        connection.timeout = for_s
        try:
            headers = {"Authorization": f"Bearer {self._token}"}
            connection.request("GET", f"{path}?watch=true&resourceVersion={version}", None, headers)
            for line in connection.getresponse():
                yield json.loads(line)
        except TimeoutError:
            pass
        finally:
            connection.close()

    def create(self, object_: Object) -> Object:
        return self.request("POST", self.path_of(object_).rpartition("/")[0], object_)

    def apply(self, object_: Object) -> Object:
        """Server-side apply; takes over what others have set."""
        query = f"?fieldManager={_MANAGER}&force=true&fieldValidation=Strict"
        return self.request(
            "PATCH", self.path_of(object_) + query, object_, "application/apply-patch+yaml"
        )

    def patch(self, object_: Object, change: Object, subresource: str = "") -> Object:
        path = self.path_of(object_) + (f"/{subresource}" if subresource else "")
        return self.request("PATCH", path, change, "application/merge-patch+json")

    def delete(self, object_: Object, grace_s: int | None = None) -> None:
        """Deleting what is not there is no error."""
        query = "" if grace_s is None else f"?gracePeriodSeconds={grace_s}"
        try:
            self.request("DELETE", self.path_of(object_) + query)
        except ApiError as error:
            if error.code != 404:
                raise

    def bind(self, namespace: str, pod: str, node: str) -> None:
        """What a scheduler does, by hand."""
        self.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/pods/{pod}/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": pod},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            },
        )

    # --- many -------------------------------------------------------------------------------------

    def in_parallel(
        self, act: Callable[[_T], _R], things: Iterable[_T], threads: int = 8
    ) -> list[_R]:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(act, things))

    def apply_file(self, path: pathlib.Path) -> list[Object]:
        """Applies all documents of a file; waits until CRDs are served."""
        applied = []
        for document in documents_of(path):
            applied.append(self.apply(document))
            if document["kind"] == "CustomResourceDefinition":
                self._await_served(document)
        return applied

    def _await_served(self, crd: Object, within_s: float = 15.0) -> None:
        spec = crd["spec"]
        deadline = time.monotonic() + within_s
        for version in spec["versions"]:
            root = f"/apis/{spec['group']}/{version['name']}"
            # The server lists what it serves a moment after it serves it.
            for path in (f"{root}/{spec['names']['plural']}?limit=1", root):
                self._await_answer(path, crd["metadata"]["name"], deadline)

    def _await_answer(self, path: str, name: str, deadline: float) -> None:
        while True:
            try:
                self.request("GET", path)
                return
            except ApiError as error:
                if time.monotonic() > deadline:
                    raise ClusterError(f"{name} is not served: {error}") from error
            time.sleep(0.05)


def documents_of(path: pathlib.Path) -> Iterator[Object]:
    with open(path, encoding="utf-8") as file:
        for document in yaml.safe_load_all(file):
            if document is not None:
                yield document
