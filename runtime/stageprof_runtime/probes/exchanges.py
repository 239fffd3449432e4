"""Tasks of Dask's P2P exchanges (shuffles, joins, rechunks) that wait for the other workers.

A task hands the pieces of its partition to its worker's event loop, which sends them while others
run. It waits where too many bytes have not left; the barrier waits until all have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any, Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import address, place
from stageprof_runtime.event import BLOCK, EXCHANGE
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.probes.stacks import running
from stageprof_runtime.ring import SHORT_NS

#: What a task waits for the disk in: that is no message.
_OF_DISK: Final = "flush_receive"


def install(emit: Emit) -> Undo:
    """Time what such tasks wait for from now on."""
    wait = functools.partial(_waited, emit)
    return together([replace(*place(name), wait) for name in ("p2p.partition", "p2p.barrier")])


def _waited(emit: Emit, sync: Callable[..., Any]) -> Callable[..., Any]:
    def timed(loop: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        start = now_ns()
        try:
            return sync(loop, func, *args, **kwargs)
        finally:
            stop = now_ns()
            if stop - start >= SHORT_NS and getattr(func, "__name__", "") != _OF_DISK:
                _tell(emit, start, stop)

    return timed


def _tell(emit: Emit, start: int, stop: int) -> None:
    thread = get_ident()
    if thread in running:
        from distributed import get_worker

        row = (BLOCK, start, stop, thread, EXCHANGE, 0, 0, 0, "")
        emit.row_of("worker", address(get_worker()), row)
