"""Child processes that end with us, whatever ends us.

Each child asks the kernel to kill it when the thread that started it ends (PR_SET_PDEATHSIG). So
all are started by one thread that lives as long as this process: a `kill -9` of us ends them all.
What slips through even so (killed between the fork and the request) is found
by its line in the pids.json of the folder.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
from typing import Callable, Mapping, Sequence

from hopcluster.errors import ClusterError

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_TAIL_LINES = 15

_starter: concurrent.futures.ThreadPoolExecutor | None = None
_starter_lock = threading.Lock()


def _start(command: Sequence[str], output: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def die_with_parent() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=dict(env),
        # Ctrl-C is for us, who then end them in order.
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


def _start_in_lasting_thread(
    command: Sequence[str], output: int, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    global _starter
    with _starter_lock:
        if _starter is None:
            _starter = concurrent.futures.ThreadPoolExecutor(1, "starter")
    return _starter.submit(_start, command, output, env).result()


class Process:
    """A program with a log file; it can be stopped, killed, paused and started again."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: pathlib.Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log_path = folder / f"{name}.log"
        self._env = dict(os.environ if env is None else env)
        self._pids = PidFile(folder)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ClusterError(f"{self.name} has not been started")
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return None if self._process is None else self._process.poll()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Goes on in the same log file."""
        if self.running:
            return
        with open(self.log_path, "ab") as log:
            self._process = _start_in_lasting_thread(self.command, log.fileno(), self._env)
        self._pids.add(self.name, self._process.pid)

    def stop(self, within_s: float = 10.0) -> int | None:
        """SIGTERM, then SIGKILL for one that does not obey. Returns the exit code."""
        if self._process is None:
            return None
        if self.running:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(within_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._gone()

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            if self.running:
                self._process.kill()
            self._gone()

    def wait(self, within_s: float) -> int:
        """The exit code; an error when it still runs after that time."""
        if self._process is None:
            raise ClusterError(f"{self.name} has not been started")
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise ClusterError(self.with_tail(f"still runs after {within_s:g} s")) from None
        code = self._gone()
        assert code is not None
        return code

    def _gone(self) -> int | None:
        assert self._process is not None
        code = self._process.wait(10)
        self._pids.remove(self._process.pid)
        return code

    def pause(self) -> None:
        """SIGSTOP: it answers nothing and loses track of time, as on a machine that hangs."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def log(self) -> str:
        try:
            return self.log_path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def with_tail(self, what: str) -> str:
        """A message about it that ends in the last lines of its log."""
        tail = "\n".join(self.log().splitlines()[-_TAIL_LINES:])
        return f"{self.name} {what}; the end of {self.log_path}:\n{tail or '(empty)'}"

    def wait_until(self, is_so: Callable[[], bool], what: str, within_s: float) -> None:
        """Waits for something that this program brings about."""
        deadline = time.monotonic() + within_s
        pause_s = 0.01
        while not is_so():
            if not self.running:
                raise ClusterError(self.with_tail(f"ended with {self.exit_code}, not {what}"))
            if time.monotonic() > deadline:
                raise ClusterError(self.with_tail(f"is not {what} after {within_s:g} s"))
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.2)


def start_time_of(pid: int) -> int | None:
    """When the process began, in the kernel's ticks; None when there is none, or it has ended."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may hold anything; the state follows it, and the start is field 22.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


class PidFile:
    """Who was started for a folder. A pid counts only with its start time: pids are used again."""

    _lock = threading.Lock()

    def __init__(self, folder: pathlib.Path) -> None:
        self._path = folder / "pids.json"

    def entries(self) -> list[dict[str, int | str]]:
        """Those that run now: {"name", "pid", "start"}."""
        try:
            entries = json.loads(self._path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return []
        return [entry for entry in entries if start_time_of(entry["pid"]) == entry["start"]]

    def add(self, name: str, pid: int) -> None:
        with self._lock:
            entry = {"name": name, "pid": pid, "start": start_time_of(pid) or 0}
            self._write([*self.entries(), entry])

    def remove(self, pid: int) -> None:
        with self._lock:
            self._write([entry for entry in self.entries() if entry["pid"] != pid])

    def kill_all(self) -> list[str]:
        """Ends what still runs; returns the names."""
        found = self.entries()
        for entry in found:
            try:
                os.kill(int(entry["pid"]), signal.SIGKILL)
            except ProcessLookupError:
                pass
        return [str(entry["name"]) for entry in found]

    def _write(self, entries: list[dict[str, int | str]]) -> None:
        if not self._path.parent.is_dir():
            return
        unfinished = self._path.with_suffix(".new")
        unfinished.write_text(json.dumps(entries), encoding="utf-8")
        unfinished.replace(self._path)
