"""A session in the client: what is installed, from `start` to `stop`, and where batches go.

Every batch, the client's own and those that scheduler and workers ship, is handed to the sink.
Clusters are joined and left by clients: the active one, a given one, and all that start while
the session is on.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable
from threading import get_ident
from typing import Any

from distributed.utils import sync

from stageprof_runtime import process
from stageprof_runtime.bootstrap import carry
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import client_handlers, client_loop
from stageprof_runtime.context import lane
from stageprof_runtime.event import MARK, PING, SAMPLE, Place
from stageprof_runtime.patch import Undo, together
from stageprof_runtime.probes import (
    clients,
    communication,
    imports,
    layers,
    local,
    optimization,
    scheduling,
    serialization,
    waiting,
)
from stageprof_runtime.process import EMIT
from stageprof_runtime.ring import Ring
from stageprof_runtime.sampler import Sampler
from stageprof_runtime.shipper import Shipper
from stageprof_runtime.system import own_monitor, sample

logger = logging.getLogger("stageprof")

PROBES = [
    layers.install,
    optimization.install,
    serialization.install,
    communication.install,
    scheduling.install,
    scheduling.install_local,
    local.install,
    waiting.install,
    imports.install,
    clients.install,
]
#: Seconds that joining a cluster may take before the run goes on without it.
PATIENCE_S = 15.0
#: Seconds that leaving may take: a scheduler may be busy making the state of a large graph.
LEAVE_S = 60.0
#: A client's spans are few and each may be the one that matters: kept from this length on.
CLIENT_SHORT_NS = 20_000

_numbers = itertools.count(1)

Sink = Callable[[bytes], None]


class Session:
    """One recording's presence in this process and on the clusters that its clients use."""

    def __init__(self, sink: Sink) -> None:
        self.name = f"stageprof-{os.getpid()}-{next(_numbers)}-{now_ns() % 10**9}"
        self.ring = Ring(short_ns=CLIENT_SHORT_NS)
        self._sink = sink
        place = Place("client", socket.gethostname(), os.getpid(), "client", now_ns())
        self._shipper = Shipper(place, self.ring, sink)
        self._sampler: Sampler | None = None
        self._joined: dict[Any, Undo] = {}
        self._leave: Undo = lambda: None
        self._lane: Any = None

    # -- the region -------------------------------------------------------------------------

    def start(self, client: Any = None, *, region: bool = True) -> None:
        """Install everything; with `region`, the calling thread's time is what is accounted."""
        self._install()
        active = client or active_client()
        if active is not None:
            self._sync(active, self.started, active)
        if region:
            self._begin_region(None)

    async def start_async(self, client: Any = None) -> None:
        """The same in a coroutine: the region is that of the calling task."""
        self._install()
        active = client or active_client()
        if active is not None:
            await self.started(active)
        self._begin_region(asyncio.current_task())

    def stop(self) -> None:
        """Take everything away again; all batches have gone to the sink when it returns."""
        self._end_region()
        for client in list(self._joined):
            self._sync(client, self.closing, client)
        self._uninstall()

    async def stop_async(self) -> None:
        """The same in a coroutine."""
        self._end_region()
        for client in list(self._joined):
            await self.closing(client)
        self._uninstall()

    def _install(self) -> None:
        self._monitor = own_monitor()
        self._leave = process.join("client", self.ring, PROBES)
        self._shipper.every += [self._sample, self._ask_loops]
        clients.followers.append(self)
        self._shipper.start()

    def _uninstall(self) -> None:
        if self in clients.followers:
            clients.followers.remove(self)
        self._leave()
        self._shipper.stop()
        self._monitor.close()  # type: ignore[attr-defined]
        for batch in self._shipper.drain():
            self._sink(batch)

    def _begin_region(self, task: Any) -> None:
        self._region = -next(_numbers) if task is not None else get_ident()
        if task is not None:
            self._lane = lane.set((self._region, task))
        self._sampler = Sampler.here(self.ring, task)
        label = f"{self._region} {get_ident()}"
        self.ring.emit((MARK, now_ns(), "region start", label))

    def _end_region(self) -> None:
        if self._sampler is None:
            return
        self.ring.emit((MARK, now_ns(), "region stop", str(self._region)))
        self._sampler.stop()
        self._shipper.cost["sampler"] = [self._sampler.looks, self._sampler.cost_ns]
        self._sampler = None
        if self._lane is not None:
            lane.reset(self._lane)
            self._lane = None

    # -- clusters ---------------------------------------------------------------------------

    def _sync(self, client: Any, function: Any, *args: Any) -> None:
        if client.asynchronous:
            # Its loop is this thread's: nothing can be awaited here.
            asyncio.ensure_future(function(*args))
            return
        if client.status != "running":
            return
        try:
            sync(client.loop, function, *args, callback_timeout=PATIENCE_S + LEAVE_S)
        except Exception as error:
            logger.warning("stageprof: %s of %r failed: %r", function.__name__, client, error)

    async def started(self, client: Any) -> None:
        """Join a client's cluster; if that fails the run goes on, and only the client is seen."""
        if client in self._joined or getattr(client, "scheduler", None) is None:
            return
        handlers, op = client_handlers(client), f"{self.name}-batch"
        handlers[op] = self._received
        self._joined[client] = together([waiting.install_arrivals(EMIT, client)])
        try:
            plugin = carry("scheduler", self.name, client.id, carry("worker", self.name))
            register = client.scheduler.register_scheduler_plugin
            await register(plugin=plugin, name=self.name, idempotent=False)
            self.ring.emit((MARK, now_ns(), "cluster joined", str(client.id)))
            await self._ping(client)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            self.ring.emit((MARK, now_ns(), "cluster not joined", reason))
            logger.warning("stageprof: the cluster cannot be recorded (%s); the run goes on", reason)

    async def closing(self, client: Any) -> None:
        """Leave a client's cluster: fetch what is left there, and take everything away."""
        undo = self._joined.pop(client, None)
        if undo is None:
            return
        try:
            end = getattr(client.scheduler, f"{self.name}-end")
            for batch in await asyncio.wait_for(end(), LEAVE_S):
                self._sink(batch)
            await asyncio.sleep(0.005)  # batches sent before may be behind in the stream
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            self.ring.emit((MARK, now_ns(), "cluster lost", reason))
        undo()
        client_handlers(client)[f"{self.name}-batch"] = _ignore

    def _received(self, batch: bytes = b"", **kwargs: Any) -> None:
        try:
            self._sink(batch)
        except Exception as error:
            logger.warning("stageprof: a batch was lost: %r", error)

    # -- every half second, on the shipper's thread -----------------------------------------

    def _sample(self) -> None:
        sample(self.ring, self._monitor())

    def _ask_loops(self) -> None:
        for client in list(self._joined):
            if client.status == "running":
                client_loop(client).call_soon_threadsafe(self._on_loop, client, now_ns())

    def _on_loop(self, client: Any, asked: int) -> None:
        self.ring.emit((SAMPLE, now_ns(), "loop.lag_s", (now_ns() - asked) / 1e9))
        self._pinging = asyncio.ensure_future(self._ping(client))

    async def _ping(self, client: Any) -> None:
        """Five small round trips to the scheduler's clock; the best will count."""
        try:
            clock = getattr(client.scheduler, f"{self.name}-clock")
            for _ in range(5):
                sent = now_ns()
                theirs = await clock()
                self.ring.emit((PING, sent, theirs, now_ns(), client.scheduler.address))
        except Exception:  # busy, closing or gone: another time
            return


def active_client() -> Any:
    """The client that Dask would use here, or None."""
    from distributed import get_client

    try:
        client = get_client()
    except ValueError:
        return None
    return client if client.status == "running" else None


def _ignore(**kwargs: Any) -> None:
    """Stands for a session that is over; a late batch of it must not be an error."""


__all__ = ["Session", "Sink", "active_client"]
