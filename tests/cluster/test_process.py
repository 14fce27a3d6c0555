"""What the harness promises of the processes that it starts, without any cluster."""

from __future__ import annotations

import pathlib
import threading

import pytest

from hopcluster import ClusterError
from hopcluster.ports import free_port
from hopcluster.process import PidFile, Process, start_time_of


def test_what_ended_instead_of_coming_up_is_told_with_the_end_of_its_log(
    tmp_path: pathlib.Path,
) -> None:
    process = Process("server", ["sh", "-c", "echo no such option: -x; exit 3"], tmp_path)
    process.start()
    with pytest.raises(ClusterError, match=r"(?s)server ended with 3, not ready.*no such option"):
        process.wait_until(lambda: False, "ready", within_s=20)


def test_what_does_not_come_up_in_time_is_told_with_the_end_of_its_log(
    tmp_path: pathlib.Path,
) -> None:
    process = Process("server", ["sh", "-c", "echo waiting for godot; exec sleep 60"], tmp_path)
    process.start()
    process.wait_until(lambda: "godot" in process.log(), "waiting", within_s=20)
    with pytest.raises(ClusterError, match=r"(?s)is not ready after 0.1 s.*waiting for godot"):
        process.wait_until(lambda: False, "ready", within_s=0.1)
    process.kill()


def test_a_process_outlives_the_thread_that_started_it(tmp_path: pathlib.Path) -> None:
    process = Process("sleeper", ["sleep", "60"], tmp_path)
    thread = threading.Thread(target=process.start)
    thread.start()
    thread.join()
    # The kernel's signal would have come with the thread's end.
    second = Process("second", ["true"], tmp_path)
    second.start()
    assert second.wait(within_s=20) == 0
    assert process.running
    process.kill()


def test_it_can_be_paused_resumed_and_ended(tmp_path: pathlib.Path) -> None:
    process = Process("sleeper", ["sleep", "60"], tmp_path)
    process.start()
    state = pathlib.Path(f"/proc/{process.pid}/stat")

    def is_stopped() -> bool:
        return state.read_text().rpartition(")")[2].split()[0] == "T"

    process.pause()
    process.wait_until(is_stopped, "stopped", within_s=20)
    process.resume()
    process.wait_until(lambda: not is_stopped(), "going on", within_s=20)
    assert process.stop() == -15
    process.start()
    process.kill()
    assert process.exit_code == -9
    assert PidFile(tmp_path).entries() == []


def test_a_pid_that_now_belongs_to_another_is_left_alone(tmp_path: pathlib.Path) -> None:
    process = Process("sleeper", ["sleep", "60"], tmp_path)
    process.start()
    start = start_time_of(process.pid)
    assert start is not None
    other = tmp_path / "other"
    other.mkdir()
    (other / "pids.json").write_text(
        f'[{{"name": "gone", "pid": {process.pid}, "start": {start - 1}}}]'
    )
    assert PidFile(other).kill_all() == []
    assert process.running
    process.kill()


def test_no_port_is_handed_out_twice() -> None:
    ports = [free_port() for _ in range(100)]
    assert len(set(ports)) == len(ports)
