"""A session in the client: what is installed, from `start` to `stop`, and where batches go.

Every batch, the client's own and those that scheduler and workers ship, is handed to the sink.
Clusters are joined and left by clients: the active one, a given one, and all that start while
the session is on.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from threading import get_ident
from typing import Any

from distributed.utils import sync

from stageprof_runtime import cells, looker, process, rounds
from stageprof_runtime.bootstrap import carry
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import client_handlers, client_loop
from stageprof_runtime.context import lane
from stageprof_runtime.event import MARK, SAMPLE, Place
from stageprof_runtime.guard import Watches, attempt, hook, quietly
from stageprof_runtime.patch import Undo
from stageprof_runtime.pings import Pings
from stageprof_runtime.probes import (
    clients,
    communication,
    garbage,
    gil,
    imports,
    layers,
    local,
    objects,
    optimization,
    scheduling,
    serialization,
    shares,
    stacks,
    training,
    unused,
    waiting,
)
from stageprof_runtime.ring import Ring
from stageprof_runtime.sampler import Sampler
from stageprof_runtime.shipper import Shipper
from stageprof_runtime.system import own_monitor, sample

logger = logging.getLogger("stageprof")

PROBES = [
    layers.install,
    optimization.install,
    unused.install,
    serialization.install,
    shares.install,
    shares.install_optimizers,
    communication.install,
    scheduling.install,
    scheduling.install_local,
    local.install,
    stacks.install,
    waiting.install,
    imports.install,
    training.install,
    clients.install,
    objects.install,
    garbage.install,
]
#: Seconds that joining a cluster may take before the run goes on without it.
PATIENCE_S = 15.0
#: Seconds that leaving may take: a scheduler may be busy making the state of a large graph.
LEAVE_S = 60.0
#: A client's spans are few and each may be the one that matters: kept from this length on.
CLIENT_SHORT_NS = 20_000
#: Why a cluster is lost whose scheduler was restarted, or could not be reached for a while.
_CUT_OFF = "the client lost its connection to the scheduler; what came after is not recorded"

_numbers = itertools.count(1)

Sink = Callable[[bytes], None]


class Session:
    """One recording's presence in this process and on the clusters that its clients use."""

    def __init__(self, sink: Sink, *, watch_gil: bool = True) -> None:
        self.name = f"stageprof-{os.getpid()}-{next(_numbers)}-{now_ns() % 10**9}"
        self.ring = Ring(short_ns=CLIENT_SHORT_NS)
        self._sink = sink
        self._watch_gil = watch_gil
        place = Place("client", socket.gethostname(), os.getpid(), "client", now_ns())
        self._shipper = Shipper(place, self.ring, sink)
        self._sampler: Sampler | None = None
        self._joined: dict[Any, Undo] = {}
        #: joined client -> batches that came through its stream
        self._got: dict[Any, int] = {}
        #: joined client -> its stream then: a new one is that of a scheduler that forgot us
        self._streams: dict[Any, Any] = {}
        self._pings: dict[Any, Pings] = {}
        self._leave: Undo = lambda: None
        self._lane: Any = None
        self._monitor: Any = None
        self.watches = Watches("client")
        #: tasks of ours on clients' loops; the loops keep no reference to them
        self._doing: set[asyncio.Task[Any]] = set()

    # -- the region -------------------------------------------------------------------------

    def start(self, client: Any = None, *, region: bool = True) -> None:
        """Install everything; with `region`, the calling thread's time is what is accounted."""
        attempt(self.watches["start"], self._install)
        active = client or active_client()
        if active is not None:
            self._sync(active, self.started, active)
        if region:
            attempt(self.watches["start"], self._begin_region, None)

    async def start_async(self, client: Any = None) -> None:
        """The same in a coroutine: the region is that of the calling task."""
        attempt(self.watches["start"], self._install)
        active = client or active_client()
        if active is not None:
            await quietly(self.started(active), self.watches["start"])
        attempt(self.watches["start"], self._begin_region, asyncio.current_task())

    def stop(self) -> None:
        """Take everything away again; all batches have gone to the sink when it returns."""
        if self._forked():
            return
        attempt(self.watches["stop"], self._end_region)
        for client in list(self._joined):
            self._sync(client, self.closing, client)
            self._abandon(client)
        self._uninstall()

    async def stop_async(self) -> None:
        """The same in a coroutine."""
        if self._forked():
            return
        attempt(self.watches["stop"], self._end_region)
        for client in list(self._joined):
            await quietly(self.closing(client), self.watches["stop"])
            self._abandon(client)
        self._uninstall()

    def _abandon(self, client: Any) -> None:
        """Let go of a client that could not be asked to leave: its cluster is gone or stuck."""
        if not client.asynchronous:
            self._let_go(client, f"client is {client.status}")

    def _let_go(self, client: Any, why: str) -> None:
        undo = self._joined.pop(client, None)
        if undo is None:
            return
        self.ring.emit((MARK, now_ns(), "cluster lost", why))
        attempt(self.watches["stop"], undo)
        handlers, op = client_handlers(client), f"{self.name}-batch"
        handlers[op] = _ignore
        if self._forgotten(client):  # and nothing can be late
            del handlers[op]
        self._got.pop(client, None)
        self._streams.pop(client, None)
        self._pings.pop(client, None)

    def _forgotten(self, client: Any) -> bool:
        """Whether a client lost its connection, with which a session on the scheduler ends."""
        stream = self._streams.get(client)
        return stream is not None and stream is not client.scheduler_comm

    def _forked(self) -> bool:
        """Whether this is a child of the process that began; the session is its parent's."""
        return os.getpid() != self._shipper.place.pid

    def _install(self) -> None:
        probes = [*PROBES, *([gil.install] * self._watch_gil)]
        self._leave = process.join("client", self.ring, probes, self.name)
        self.watches |= {stacks.NAME: looker.watch(stacks.NAME)} | gil.watches()
        clients.followers.append(self)
        self._shipper.watches = self.watches
        self._shipper.counts = local.counts
        self._shipper.cost["objects"] = objects.cost
        self._shipper.every += [self._sample, self._ask_loops]
        self._shipper.start()
        self._monitor = own_monitor()

    def _uninstall(self) -> None:
        if self in clients.followers:
            clients.followers.remove(self)
        attempt(self.watches["stop"], self._tell_loops)
        for step in (self._leave, self._shipper.stop, self._flush):
            attempt(self.watches["stop"], step)

    def _tell_loops(self) -> None:
        for label in rounds.told():
            self.ring.emit((MARK, now_ns(), "loop", label))

    def _tell_cells(self) -> None:
        for label in cells.told():
            self.ring.emit((MARK, now_ns(), cells.MARK_NAME, label))

    def _flush(self) -> None:
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
        sampler, self._sampler = self._sampler, None
        if sampler is None:
            return
        attempt(self.watches["stop"], self._tell_cells)
        stop = (MARK, now_ns(), "region stop", str(self._region))
        attempt(self.watches["stop"], self.ring.emit, stop)
        if self._lane is not None:
            lane.reset(self._lane)
            self._lane = None
        sampler.stop()
        self.watches["sampler"] = sampler.watch
        self._shipper.cost["sampler"] = [sampler.looks, sampler.cost_ns]

    # -- clusters ---------------------------------------------------------------------------

    def _sync(self, client: Any, function: Any, *args: Any) -> None:
        if client.asynchronous:
            # Its loop is this thread's: nothing can be awaited here.
            self._later(function(*args))
            return
        if client.status != "running":
            return
        try:
            watch = self.watches[function.__name__]
            sync(
                client.loop,
                lambda: quietly(function(*args), watch),
                callback_timeout=PATIENCE_S + LEAVE_S,
            )
        except Exception as error:
            logger.warning("stageprof: %s of %r failed: %r", function.__name__, client, error)

    async def started(self, client: Any) -> None:
        """Join a client's cluster; if that fails the run goes on, and only the client is seen."""
        if client in self._joined or getattr(client, "scheduler", None) is None:
            return
        handlers, op = client_handlers(client), f"{self.name}-batch"
        handlers[op] = functools.partial(self._received, client)
        self._joined[client] = process.share(waiting.Arrivals(client))
        try:
            gil = self._watch_gil
            worker = carry("worker", self.name, gil)
            plugin = carry("scheduler", self.name, client.id, worker, gil)
            register = client.scheduler.register_scheduler_plugin
            await register(plugin=plugin, name=self.name, idempotent=False)
            self.ring.emit((MARK, now_ns(), "cluster joined", str(client.id)))
            self._got.setdefault(client, 0)
            self._streams[client] = client.scheduler_comm
            await self._ping(client)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            self.ring.emit((MARK, now_ns(), "cluster not joined", reason))
            logger.warning(
                "stageprof: the cluster cannot be recorded (%s); the run goes on", reason
            )

    async def closing(self, client: Any) -> None:
        """Leave a client's cluster: fetch what is left there, and take everything away."""
        if self._forgotten(client):
            self._let_go(client, _CUT_OFF)
        undo = self._joined.pop(client, None)
        if undo is None:
            return
        try:
            end = getattr(client.scheduler, f"{self.name}-end")
            passed, *batches = await asyncio.wait_for(end(), LEAVE_S)
            for batch in batches:
                self._sink(batch)
            await self._wait_for(client, passed)
        except Exception as error:
            if client in self._got:  # else it was not joined, as was said then
                reason = f"{type(error).__name__}: {error}"[:300]
                self.ring.emit((MARK, now_ns(), "cluster lost", reason))
                client_handlers(client)[f"{self.name}-batch"] = _ignore
        finally:
            undo()
            self._got.pop(client, None)
            self._streams.pop(client, None)
            self._pings.pop(client, None)
            handlers, op = client_handlers(client), f"{self.name}-batch"
            if handlers.get(op) is not _ignore:
                handlers.pop(op, None)

    async def _wait_for(self, client: Any, passed: int) -> None:
        """Batches that the scheduler sent before its answer may be behind in the stream."""
        for _ in range(round(LEAVE_S * 200)):
            if self._got.get(client, 0) >= passed or client.status != "running":
                return
            await asyncio.sleep(0.005)

    def _received(self, client: Any, batch: bytes = b"", **kwargs: Any) -> None:
        self._got[client] = self._got.get(client, 0) + 1  # also if it cannot be kept: it came
        self._take(batch)

    @hook
    def _take(self, batch: bytes) -> None:
        self._sink(batch)

    def _later(self, doing: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(quietly(doing, self.watches["task"]))
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    # -- every half second, on the shipper's thread -----------------------------------------

    def _sample(self) -> None:
        if self._monitor is not None:
            sample(self.ring, self._monitor())

    def _ask_loops(self) -> None:
        for client in list(self._joined):
            if client.status == "running":
                client_loop(client).call_soon_threadsafe(self._on_loop, client, now_ns())

    @hook
    def _on_loop(self, client: Any, asked: int) -> None:
        self.ring.emit((SAMPLE, now_ns(), "loop.lag_s", (now_ns() - asked) / 1e9))
        if self._forgotten(client):
            self._let_go(client, _CUT_OFF)
        elif len(self._doing) <= len(self._joined):
            self._later(self._ping(client))

    async def _ping(self, client: Any) -> None:
        """A small round trip to the scheduler's clock."""
        scheduler = client.scheduler
        pings = self._pings.setdefault(client, Pings(self.ring))
        await pings.ask(getattr(scheduler, f"{self.name}-clock"), scheduler.address)


def active_client() -> Any:
    """The client that Dask would use here, or None."""
    from distributed import get_client

    try:
        client = get_client()
    except Exception:  # there is none; or the program's configuration lacks what Dask asks it for
        return None
    return client if client.status == "running" else None


def _ignore(**kwargs: Any) -> None:
    """Stands for a session that could not say goodbye; a late batch of it must not be an error."""


__all__ = ["Session", "Sink", "active_client"]
