"""What this process takes, and what its host reads and writes, with few system calls.

For processes that have no monitor of Dask's. To read one of those beside a thread that gives the
GIL up often took a quarter of a second and more; this takes a tenth of that (see `procfile`, and
`benchmarks/building.py`). The numbers are psutil's: bytes of whole disks, of all interfaces.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import psutil

from stageprof_runtime.clock import now_ns
from stageprof_runtime.procfile import ProcFile

#: Bytes of what the kernel counts a disk's traffic in, whatever the disk's own sectors are.
SECTOR: Final = 512
#: Columns of a line of /proc/net/dev, whose first is the interface's name, and of /proc/diskstats.
_RECEIVED, _SENT = 1, 9
_DISK, _READ, _WRITTEN = 2, 5, 9


class Counted(NamedTuple):
    """What has been counted so far: of a processor, ns; of each interface and disk, bytes."""

    t: int
    cpu: int
    #: name -> received and sent, or read and written
    net: dict[bytes, tuple[int, int]]
    disks: dict[bytes, tuple[int, int]]


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
        # somebody has closed the file; psutil opens one of its own
        pages = int(memory[1]) if len(memory) > 1 else 0
        rss = pages * mmap.PAGESIZE if pages else psutil.Process().memory_info().rss
        found = {"cpu": (now.cpu - before.cpu) / 1e7 / seconds, "memory": float(rss)}
        for name, old, new in (("net", before.net, now.net), ("disk", before.disks, now.disks)):
            for i, way in enumerate(("read", "write")):
                more = sum(max(0, new[n][i] - old[n][i]) for n in new.keys() & old.keys())
                found[f"host_{name}_io.{way}_bps"] = more / seconds
        return found

    def close(self) -> None:
        """Read no more."""
        for file in self._files:
            file.close()

    def _count(self) -> Counted:
        net = _columns(self._files[1].read().replace(b":", b" "), 0, _RECEIVED, _SENT)
        disks = _columns(self._files[2].read(), _DISK, _READ, _WRITTEN)
        sizes = {n: (a * SECTOR, b * SECTOR) for n, (a, b) in disks.items() if n in self._disks}
        return Counted(self._clock(), self._cpu(), net, sizes)


def _columns(text: bytes, name: int, first: int, second: int) -> dict[bytes, tuple[int, int]]:
    """Two columns of numbers of each line, by the one that names it; headings are passed over."""
    found = {}
    for words in map(bytes.split, text.splitlines()):
        with contextlib.suppress(ValueError, IndexError):
            found[words[name]] = int(words[first]), int(words[second])
    return found
