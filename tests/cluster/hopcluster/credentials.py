"""Tokens, keys and kubeconfig files."""

from __future__ import annotations

import dataclasses
import pathlib
import secrets
import subprocess
from typing import Any, Iterable

import yaml

from hopcluster.errors import ClusterError


@dataclasses.dataclass(frozen=True)
class User:
    """A line of the API server's token file."""

    name: str
    groups: tuple[str, ...] = ()

    @staticmethod
    def service_account(namespace: str, name: str) -> User:
        """What RBAC takes for the service account; its token outlives even a wiped etcd."""
        return User(
            f"system:serviceaccount:{namespace}:{name}",
            ("system:serviceaccounts", f"system:serviceaccounts:{namespace}"),
        )


ADMIN = User("admin", ("system:masters",))
# Has the role that the API server makes for it at its first start.
KUBE_SCHEDULER = User("system:kube-scheduler")


class Credentials:
    """The secrets of one cluster, all in its folder."""

    def __init__(self, folder: pathlib.Path, users: Iterable[User]) -> None:
        self.folder = folder
        self.token_file = folder / "tokens.csv"
        self.account_key = folder / "service-accounts.key"
        self.account_public_key = folder / "service-accounts.pub"
        # The API server makes its own certificate and the CA for it, and keeps both in one file.
        self.certificates = folder / "certificates"
        self.ca_file = self.certificates / "apiserver.crt"
        self._tokens = {user.name: secrets.token_hex(16) for user in users}
        self._write(list(users))

    def token(self, user: User) -> str:
        if user.name not in self._tokens:
            raise ClusterError(f"there is no token for {user.name}")
        return self._tokens[user.name]

    def _write(self, users: list[User]) -> None:
        lines = [
            f'{self.token(user)},{user.name},{number},"{",".join(user.groups)}"\n'
            for number, user in enumerate(users, 1)
        ]
        self.token_file.touch(mode=0o600)
        self.token_file.write_text("".join(lines), encoding="utf-8")
        curve = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
        key, public = str(self.account_key), str(self.account_public_key)
        _openssl("genpkey", *curve, "-out", key)
        _openssl("pkey", "-in", key, "-pubout", "-out", public)

    def write_kubeconfig(
        self,
        path: pathlib.Path,
        server: str,
        token: str | None = None,
        token_file: pathlib.Path | None = None,
        namespace: str = "default",
    ) -> pathlib.Path:
        """With the token itself, or with the name of a file that holds it."""
        user = {"token": token} if token is not None else {"tokenFile": str(token_file)}
        config: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "hopcluster",
            "clusters": [
                {
                    "name": "hopcluster",
                    "cluster": {"server": server, "certificate-authority": str(self.ca_file)},
                }
            ],
            "users": [{"name": "user", "user": user}],
            "contexts": [
                {
                    "name": "hopcluster",
                    "context": {"cluster": "hopcluster", "user": "user", "namespace": namespace},
                }
            ],
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        return path


def _openssl(*arguments: str) -> None:
    try:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise ClusterError(f"openssl {arguments[0]} failed: {error}") from error
