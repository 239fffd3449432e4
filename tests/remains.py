"""What of stageprof is on a scheduler, a worker or in this process: to be run there."""

from __future__ import annotations

import sys
import threading
from typing import Any

import psutil
from distributed import Client


def of_scheduler(dask_scheduler: Any) -> list[str]:
    """Plugins, handlers, replaced attributes and threads of ours on the scheduler."""
    s = dask_scheduler
    names = [*s.plugins, *s.worker_plugins, *s.handlers, *s.stream_handlers]
    return [*_ours(names), *of_process(), *_shielded(s.stream_handlers)]


def of_worker(dask_worker: Any) -> list[str]:
    """The same on a worker."""
    w = dask_worker
    return [*_ours([*w.plugins, *w.handlers]), *of_process(), *_shielded(w.handlers)]


def of_client(client: Client) -> list[str]:
    """The same in a client and its process."""
    handlers = client._stream_handlers
    return [*_ours(list(handlers)), *of_process(), *_shielded(handlers)]


def of_process() -> list[str]:
    """Probes, replaced attributes and threads of ours in this process."""
    if "stageprof_runtime.process" not in sys.modules:
        return []
    from stageprof_runtime import patch, process

    threads = [t.name for t in threading.enumerate() if t.name.startswith("stageprof")]
    return [*process.installed(), *threads, *(str(x.ours) for x in patch._layers.values())]


def _ours(names: list[Any]) -> list[str]:
    return [name for name in names if isinstance(name, str) and name.startswith("stageprof")]


def _shielded(handlers: dict[str, Any]) -> list[str]:
    codes = {op: getattr(handler, "__code__", None) for op, handler in handlers.items()}
    return [op for op, code in codes.items() if code is not None and "shield" in code.co_filename]


def everywhere(client: Client) -> list[str]:
    """What is left on a cluster, as another client sees it."""
    found = list(client.run_on_scheduler(of_scheduler))
    for worker in client.run(of_worker).values():
        found += worker
    return found


def count(dask_worker: Any = None, dask_scheduler: Any = None) -> dict[str, int]:
    """Threads, open files and plugins of a process; equal before and after, or something leaks."""
    import gc

    gc.collect()
    server = dask_worker or dask_scheduler
    return {
        "threads": threading.active_count(),
        "fds": psutil.Process().num_fds(),
        "plugins": len(server.plugins) if server is not None else 0,
        "handlers": len(server.handlers) + len(server.stream_handlers) if server else 0,
    }
