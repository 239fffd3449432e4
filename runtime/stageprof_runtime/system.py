"""Numbers of a process every half second: memory, CPU, network, disk, loop lag.

Schedulers and workers have Dask's own `SystemMonitor`; its latest values are taken over. A
process without one (a client with a local scheduler) gets a monitor of its own.
"""

from __future__ import annotations

import functools
import os
import platform
import time
from typing import Any, Final

import dask
import distributed
import psutil

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import SAMPLE
from stageprof_runtime.patch import Undo
from stageprof_runtime.ring import Ring
from stageprof_runtime.usage import Usage
from stageprof_runtime.version import __version__

#: Seconds between two samples.
EVERY_S = 0.5

#: Dask's name -> ours
_NAMES = {
    "cpu": "cpu.percent",
    "memory": "memory.process",
    "host_net_io.read_bps": "network.read_bps",
    "host_net_io.write_bps": "network.write_bps",
    "host_disk_io.read_bps": "disk.read_bps",
    "host_disk_io.write_bps": "disk.write_bps",
}

#: What psutil calls time in which a processor did something, beside "user" and "system".
_DONE: Final = ("nice", "irq", "softirq", "steal")

#: Dask's own, of servers in this process that are being recorded.
_monitors: Final[list[Any]] = []


def sample(ring: Ring, values: dict[str, float]) -> None:
    """Emit one SAMPLE a value, all at the same instant."""
    t = now_ns()
    for name, value in values.items():
        ring.emit((SAMPLE, t, name, float(value)))


def sample_host(ring: Ring) -> None:
    """Emit what the host's processors have done so far, for everybody, and for this process.

    What a hypervisor took away counts as done: it was for others.
    """
    try:
        did = psutil.cpu_times()
    except OSError:  # a system that does not say
        return
    done = did.user + did.system + sum(getattr(did, name, 0.0) for name in _DONE)
    values = {
        "host.busy_s": done,
        "host.cpus": psutil.cpu_count() or 0,
        "process.cpu_s": time.process_time(),
    }
    sample(ring, values)


def monitored(server: Any) -> dict[str, float]:
    """The latest values of a scheduler's or worker's own monitor."""
    recent = server.monitor.recent()
    return {ours: recent[theirs] for theirs, ours in _NAMES.items() if theirs in recent}


def memory_limits(worker: Any) -> dict[str, float]:
    """A worker's memory limit in bytes, and at which fractions of it what happens; 0: never.

    Its own as they are in force, the nanny's as it was configured: it handed its configuration on.
    """
    manager = worker.memory_manager
    ends = dask.config.get("distributed.worker.memory.terminate", 0) if worker.nanny else 0
    return {
        "memory.limit": float(manager.memory_limit or 0),
        "memory.target": float(manager.memory_target_fraction or 0),
        "memory.spill": float(manager.memory_spill_fraction or 0),
        "memory.pause": float(manager.memory_pause_fraction or 0),
        "memory.terminate": float(ends or 0),
    }


def managed(worker: Any) -> int:
    """Bytes that Dask takes the results in a worker's memory for."""
    fast = getattr(worker.data, "fast", None)
    weights = getattr(fast, "total_weight", None)
    return int(getattr(worker.state, "nbytes", 0) if weights is None else weights)


def worker_memory(worker: Any) -> dict[str, float]:
    """Bytes of a worker's memory: managed, spilled, and what is neither; and tasks by state."""
    spilled = getattr(worker.data, "spilled_total", None)
    held = float(managed(worker))
    values = {
        "memory.managed": held,
        "memory.spilled": float(getattr(spilled, "disk", 0)),
        "tasks.executing": float(worker.state.executing_count),
        "tasks.ready": float(len(worker.state.ready)),
    }
    process = monitored(worker).get("memory.process", 0.0)
    values["memory.unmanaged"] = max(0.0, process - held)
    return values


def also_of(server: Any) -> Undo:
    """Have the process's values taken from the monitor of a server in it until undone."""
    _monitors.append(server.monitor)
    return functools.partial(_monitors.remove, server.monitor)


if hasattr(os, "register_at_fork"):  # a child has none of its parent's servers
    os.register_at_fork(after_in_child=_monitors.clear)


class OwnMonitor:
    """Values of this process: from a server's monitor while there is one in it, or read by us."""

    def __init__(self) -> None:
        self._own: Any
        try:
            self._own = Usage()
        except OSError:
            from distributed.system_monitor import SystemMonitor

            # Dask's monitor would start gilknocker, whose thread can abort a process that ends.
            self._own = SystemMonitor(maxlen=2, monitor_gil_contention=False)

    def values(self) -> dict[str, float]:
        """The latest; see `_NAMES`."""
        # a list that another thread may empty meanwhile
        recent = next((m.recent() for m in reversed(_monitors)), None) or self._own.update()
        return {ours: recent[theirs] for theirs, ours in _NAMES.items() if theirs in recent}

    def close(self) -> None:
        """Keep no file open."""
        if isinstance(self._own, Usage):
            self._own.close()


def surroundings() -> dict[str, Any]:
    """Versions and machine, nothing that may be secret: what a recording's header says of them."""
    return {
        "stageprof": __version__,
        "dask": dask.__version__,
        "distributed": distributed.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count() or 0,
    }
