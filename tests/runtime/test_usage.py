"""What a process without a monitor of Dask's says of itself is what psutil says."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from stageprof_runtime import system, usage
from stageprof_runtime.procfile import ProcFile
from stageprof_runtime.system import OwnMonitor
from stageprof_runtime.usage import SECTOR, Usage

SECOND = 1_000_000_000
linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc")

NET = b"""Inter-|   Receive                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo: %d 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0
  eth0:1000 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0
"""
DISKS = b"""   8  0 sda 10 0 %d 0 10 0 %d 0 0 0 0
   8  1 sda1 10 0 999 0 10 0 999 0 0 0 0
   short line
"""


class Kernel:
    """Files as a kernel has them."""

    def __init__(self) -> None:
        self.texts = {"statm": b"100 25 3", "dev": NET % (0, 0), "diskstats": DISKS % (0, 0)}
        self.now = 0

    def file(self, path: str) -> Any:
        kernel, name = self, path.rpartition("/")[2]

        class File:
            def read(self) -> bytes:
                return kernel.texts[name]

            def close(self) -> None: ...

        return File()


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(usage, "ProcFile", made.file)
    monkeypatch.setattr(os, "listdir", lambda _: ["sda"])
    return made


def test_rates_are_of_the_time_since_it_was_last_asked(kernel: Kernel) -> None:
    """Of whole disks, not of their partitions too; of all interfaces."""
    meter = Usage(lambda: kernel.now, lambda: kernel.now // 4)
    kernel.texts |= {"dev": NET % (3000, 6000), "diskstats": DISKS % (20, 40)}
    kernel.now = 2 * SECOND
    assert meter.update() == {
        "cpu": 25.0,
        "memory": 25 * float(os.sysconf("SC_PAGESIZE")),
        "host_net_io.read_bps": 1500.0,
        "host_net_io.write_bps": 3000.0,
        "host_disk_io.read_bps": 10.0 * SECTOR,
        "host_disk_io.write_bps": 20.0 * SECTOR,
    }


def test_counters_that_begin_anew_and_files_that_are_gone_are_no_failure(kernel: Kernel) -> None:
    kernel.texts["dev"] = NET % (9000, 9000)
    meter = Usage(lambda: kernel.now)
    kernel.texts = {"statm": b"", "dev": b"", "diskstats": b"nonsense"}
    kernel.now = SECOND
    found = meter.update()
    assert found["host_net_io.read_bps"] == 0
    assert found["memory"] == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)


def test_an_interface_that_has_just_come_brings_nothing_of_what_it_did_before(
    kernel: Kernel,
) -> None:
    meter = Usage(lambda: kernel.now)
    kernel.texts["dev"] += b"  veth1:7000 1 0 0 0 0 0 0 7000 1 0 0 0 0 0 0\n"
    kernel.now = SECOND
    assert meter.update()["host_net_io.read_bps"] == 0


@linux
def test_it_counts_what_psutil_counts() -> None:
    """Without what psutil adds where a counter was seen to fall: of 300 GB, that was 300 GB."""
    meter = Usage()
    net, disk = psutil.net_io_counters(nowrap=False), psutil.disk_io_counters(nowrap=False)
    counted = meter._count()
    received = sum(received for received, _ in counted.net.values())
    assert received == pytest.approx(net.bytes_recv, abs=100_000_000)
    if disk is not None:
        read = sum(read for read, _ in counted.disks.values())
        assert read == pytest.approx(disk.read_bytes, abs=100_000_000)
    memory = meter.update()["memory"]
    assert memory == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    meter.close()


@linux
def test_a_file_of_many_pages_is_read_whole() -> None:
    """The kernel gives some four thousand bytes at a time, whatever is asked for."""
    file = ProcFile("/proc/self/smaps")
    mine, theirs = file.read(), Path("/proc/self/smaps").read_bytes()
    file.close()
    assert len(mine) > 2 * 4096
    assert len(mine) > 0.8 * min(len(theirs), 64 * 4096)


@linux
def test_a_file_that_was_closed_behind_its_back_is_not_read_any_more(tmp_path: Path) -> None:
    there = tmp_path / "file"
    there.write_bytes(b"1 2")
    file = ProcFile(str(there))
    assert file.read() == b"1 2"
    descriptor = file._file.number
    os.close(descriptor)
    other = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)
    assert file.read() == b""
    file.close()
    os.fstat(other)  # theirs is still open
    os.close(other)


def test_a_server_in_the_process_has_measured_it_already() -> None:
    server = SimpleNamespace(monitor=SimpleNamespace(recent=lambda: {"cpu": 7.0}))
    monitor = OwnMonitor()
    undo = system.also_of(server)
    assert monitor.values() == {"cpu.percent": 7.0}
    undo()
    assert "memory.process" in monitor.values()
    monitor.close()


def test_where_there_is_no_proc_dasks_monitor_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise FileNotFoundError("/proc")

    monkeypatch.setattr(system, "Usage", type("Usage", (Usage,), {"__init__": lambda _: missing()}))
    monitor = OwnMonitor()
    assert "memory.process" in monitor.values()
    monitor.close()
