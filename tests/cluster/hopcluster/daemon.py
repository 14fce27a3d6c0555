"""`hopwise scheduler`, `controller` or `webhook` as a child process."""

from __future__ import annotations

import pathlib
import re
import urllib.error
import urllib.request
from typing import Sequence

from hopcluster.ports import free_port
from hopcluster.process import Process

_READY_S = 30.0


class HopwiseDaemon(Process):
    """Flags given here come after, and so win over, those that every test needs."""

    def __init__(
        self,
        binary: pathlib.Path,
        kubeconfig: pathlib.Path,
        folder: pathlib.Path,
        flags: Sequence[str] = (),
        name: str = "hopwise",
        command: str = "scheduler",
    ) -> None:
        self.port = free_port()
        words = [
            *(str(binary), command),
            f"--kubeconfig={kubeconfig}",
            f"--listen-address=127.0.0.1:{self.port}",
        ]
        given = {flag.partition("=")[0] for flag in flags}
        kept = [part for part in words if part.partition("=")[0] not in given]
        super().__init__(name, [*kept, *flags], folder)

    def restart(self) -> None:
        """An orderly end and a new start."""
        self.stop()
        self.start()

    def kill_and_restart(self) -> None:
        self.kill()
        self.start()

    def fetch(self, path: str, within_s: float = 5.0) -> tuple[int, str]:
        """Status and text of what it answers at /metrics, /readyz …; (0, why) when it does not."""
        try:
            url = f"http://127.0.0.1:{self.port}{path}"
            with urllib.request.urlopen(url, timeout=within_s) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")
        except OSError as error:
            return 0, str(error)

    def is_ready(self) -> bool:
        return self.fetch("/readyz")[0] == 200

    def wait_ready(self, within_s: float = _READY_S) -> None:
        self.wait_until(self.is_ready, "ready", within_s)

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of the first sample of that name that has these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        for line in self.fetch("/metrics")[1].splitlines():
            match = re.match(rf"{re.escape(name)}(\{{.*\}})? (\S+)", line)
            if match and all(label in (match[1] or "") for label in wanted):
                return float(match[2])
        return None
