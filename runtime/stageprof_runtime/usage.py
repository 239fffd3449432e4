"""What this process takes, and what its host reads and writes, with few system calls.

For processes that have no monitor of Dask's. Such a monitor, made beside a thread in pure Python,
waited for the GIL for 60 to 130 ms and used 12 to 18 ms of a processor, twice a second; this takes
a fifth of that (see `procfile`). The numbers are psutil's: bytes of whole disks, of all interfaces.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from stageprof_runtime.clock import now_ns
from stageprof_runtime.procfile import ProcFile

#: Bytes of what the kernel counts a disk's traffic in, whatever the disk's own sectors are.
SECTOR: Final = 512
#: Columns of a line of /proc/net/dev behind the interface's name, and of /proc/diskstats.
_RECEIVED, _SENT = 0, 8
_DISK, _READ, _WRITTEN = 2, 5, 9


class Counted(NamedTuple):
    """What has been counted so far: of a processor, ns, and bytes."""

    t: int
    cpu: int
    received: int
    sent: int
    read: int
    written: int


class Usage:
    """Reads what this process and its host use; names are Dask's.

    Raises:
        OSError: this system has no such files.
    """

    def __init__(
        self, clock: Callable[[], int] = now_ns, cpu: Callable[[], int] = time.process_time_ns
    ) -> None:
        self._clock, self._cpu = clock, cpu
        self._disks = frozenset(name.encode() for name in os.listdir("/sys/block"))
        names = ("/proc/self/statm", "/proc/net/dev", "/proc/diskstats")
        self._files = [ProcFile(name) for name in names]
        if not self._files[0].read():
            self.close()
            raise FileNotFoundError(names[0])
        self._before = self._count()

    def update(self) -> dict[str, float]:
        """What is used now, and a second since this was last asked."""
        before, now = self._before, self._count()
        self._before = now
        seconds = max(now.t - before.t, 1) / 1e9
        memory = self._files[0].read().split()
        found = {"cpu": (now.cpu - before.cpu) / 1e7 / seconds}
        if len(memory) > 1:
            found["memory"] = float(int(memory[1]) * mmap.PAGESIZE)
        names = ("net_io.read", "net_io.write", "disk_io.read", "disk_io.write")
        for name, last, new in zip(names, before[2:], now[2:], strict=True):
            found[f"host_{name}_bps"] = max(0, new - last) / seconds
        return found

    def close(self) -> None:
        """Read no more."""
        for file in self._files:
            file.close()

    def _count(self) -> Counted:
        net = list(_lines(self._files[1].read().replace(b":", b" "), _SENT + 2))
        devices = _lines(self._files[2].read(), _WRITTEN + 1)
        disks = [line for line in devices if line[_DISK] in self._disks]
        return Counted(
            self._clock(),
            self._cpu(),
            _sum(net, _RECEIVED + 1),
            _sum(net, _SENT + 1),
            _sum(disks, _READ) * SECTOR,
            _sum(disks, _WRITTEN) * SECTOR,
        )


def _lines(text: bytes, columns: int) -> Iterator[list[bytes]]:
    """The words of each line that has so many."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= columns:
            yield words


def _sum(lines: list[list[bytes]], column: int) -> int:
    total = 0
    for words in lines:
        with contextlib.suppress(ValueError):  # it is a heading
            total += int(words[column])
    return total
