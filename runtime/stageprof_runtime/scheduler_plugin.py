"""The plugin on the scheduler: its probes, and the relay from workers to client.

The scheduler's loop is the most precious place there is: a hook appends one tuple and returns,
and workers' batches are passed on unopened. When the owner's client goes, everything goes.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from threading import get_ident
from typing import Any

import psutil

from stageprof_runtime import looker, process
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import address, forgettable, saturation, tick, underway
from stageprof_runtime.decisions import Decisions
from stageprof_runtime.event import MARK, SAMPLE, Place
from stageprof_runtime.graphs import Graphs
from stageprof_runtime.guard import attempt, cancelled, hook, quietly
from stageprof_runtime.incident import incident
from stageprof_runtime.patch import Undo, replace_item, together
from stageprof_runtime.probes import (
    communication,
    compression,
    deadlock,
    garbage,
    gil,
    imports,
    loops,
    scheduling,
    serialization,
    shares,
    sources,
)
from stageprof_runtime.relay import DRAIN_S, LINGER_S, Relay
from stageprof_runtime.ring import Ring
from stageprof_runtime.shipper import Shipper
from stageprof_runtime.system import also_of, monitored, sample, sample_host
from stageprof_runtime.tick import Ticks
from stageprof_runtime.unrunnable import Unrunnable

PROBES = [
    deadlock.install,
    scheduling.install,
    serialization.install,
    compression.install,
    shares.install,
    shares.install_optimizers,
    communication.install,
    imports.install,
    garbage.install,
    loops.install,
    sources.install,
    sources.install_cells,
]


class SchedulerProbe(Decisions):
    """Observes one scheduler for one session, and carries its workers' batches to the owner."""

    def __init__(
        self,
        session: str,
        owner: str,
        worker_plugin: bytes,
        watch_gil: bool = True,  # noqa: FBT001, FBT002
    ) -> None:
        super().__init__(session)
        self.name = session
        self._watch_gil = watch_gil
        self._owner = owner
        self._worker_plugin = worker_plugin
        self._undo: Undo = lambda: None
        #: whether it ends or has ended; also the scheduler; the task that does it
        self._ended = self._closes = False
        self._ending: asyncio.Task[list[Any]] | None = None

    async def start(self, scheduler: Any) -> None:
        """Begin to observe the scheduler, and hand the worker plugin to all workers."""
        before = scheduler.plugins.get(self._session)
        if isinstance(before, SchedulerProbe):  # its owner has gone, or has forgotten it
            await quietly(before.end(owner=False), self.watches["start"])
        self._relay = self._through(scheduler)
        self._relayed = self._relay.relayed
        try:
            self._begin(scheduler)
        except BaseException as error:
            attempt(self.watches["start"], self._undo)
            self._relay.stop_listening()
            if cancelled(error):
                raise
            # Only an `Exception` may reach the scheduler's loop; the client is told this one.
            raise RuntimeError(f"{type(error).__name__}: {error}"[:300]) from None
        scheduler.worker_plugins[self._session] = self._worker_plugin
        await self._relay.tell_workers("plugin-add", DRAIN_S, plugin=self._worker_plugin)
        # It may have gone meanwhile: no hook will say so again.
        if self._owner and self._owner not in scheduler.clients:
            self._relay.doing.later(functools.partial(self.end, owner=False))
        if self._ended:
            raise RuntimeError("the session ended while it began")
        # The last thing: Dask tells of what happens from now on.
        attempt(self.watches["start"], self._count_underway)

    def _through(self, scheduler: Any) -> Relay:
        return Relay(scheduler, self._session, self._owner, self.watches)

    def _begin(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._ring = ring = Ring()
        place = Place(
            "scheduler", socket.gethostname(), psutil.Process().pid, address(scheduler), now_ns()
        )
        self._relay.absent_because = self._not_instrumented
        self._relay.undrained = self._not_drained
        self._shipper = Shipper(place, ring, self._relay.send)
        self._shipper.watches = self.watches
        self._counts = self._shipper.counts
        unrunnable = Unrunnable(ring, scheduler)
        self._shipper.every += [self._sample, self._ask_loop, unrunnable.tell]
        self._shipper.seldom.append(functools.partial(sample_host, ring))
        self._shipper.ready = self._relay.ready
        undos: list[Undo] = []
        self._undo = together(undos)
        undos.append(self._shipper.stop)
        self._install(scheduler, undos)
        attempt(self.watches["start"], self._tell_saturation)
        loop = scheduler.loop.asyncio_loop
        undos.append(Ticks(loop, ring, self.watches["ticks"]).start(tick(scheduler)))
        ring.emit((MARK, now_ns(), "loop thread", str(get_ident())))
        for worker in scheduler.workers.values():
            self._seen(worker)
        self._shipper.start()

    def _tell_saturation(self) -> None:
        sample(self._ring, {"worker.saturation": saturation(self._scheduler)})

    def _count_underway(self) -> None:
        """Of a cluster that is busy when it is recorded; what waits for other tasks comes later."""
        processing, queued = underway(self._scheduler)
        self._counts[0] = max(self._counts[0], processing + queued)
        self._counts[1] = processing

    def _install(self, scheduler: Any, undos: list[Undo]) -> None:
        """Each undo is in the list as soon as there is something to undo."""
        self._relay.listen(forgettable(self.end))
        undos += [scheduling.here_is_loop(), also_of(scheduler)]
        probes = [*PROBES, *([gil.install] * self._watch_gil)]
        undos.append(process.join("scheduler", self._ring, probes, self._session))
        self.watches[loops.NAME] = looker.watch(loops.NAME)
        self._shipper.lead(gil.watches())
        graphs = Graphs(self._session, scheduler, self._ring)
        undos.append(replace_item(scheduler.stream_handlers, "update-graph", graphs.timed))

    @hook
    def add_worker(self, scheduler: Any, worker: str) -> None:
        """A worker came."""
        self._seen(scheduler.workers[worker])

    @hook
    def remove_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:
        """A worker went, by itself or not."""
        self._relay.left(worker)
        self._ring.emit((MARK, now_ns(), "worker left", worker))

    @hook
    def log_event(self, topic: Any, msg: Any) -> None:
        """Dask logged something; what befalls workers is kept."""
        found = incident(topic, msg)
        if found is not None:
            self._ring.emit((MARK, now_ns(), *found))

    def _seen(self, worker: Any) -> None:
        label = f"{worker.address} {worker.nthreads} {worker.memory_limit or 0} {worker.name}"
        self._ring.emit((MARK, now_ns(), "worker seen", label))

    @hook
    def remove_client(self, scheduler: Any, client: str) -> None:
        """The lease: with the owner's client everything goes."""
        if client == self._owner:
            self._relay.doing.later(functools.partial(self.end, owner=False))

    async def before_close(self) -> None:
        """The scheduler is closing: send what there is, and let go of this process.

        What takes messages stays, for workers and owner go on: one without a handler would cost its
        sender the connection, and be an error in the log.
        """
        self._close()

    @hook
    def _close(self) -> None:
        self._ended = True
        self._closes = True
        self._undo()
        self._shipper.stop()
        self._relay.send_all()
        for batch in self._shipper.drain():
            self._relay.send_now(batch)

    def _not_instrumented(self, worker: str, reason: str) -> None:
        self._ring.emit((MARK, now_ns(), "not instrumented", f"{worker} {reason}"))

    def _not_drained(self, worker: str, asked: int) -> None:
        self._ring.emit((MARK, asked, "not drained", worker))

    def _sample(self) -> None:
        sample(self._ring, monitored(self._scheduler))

    def _ask_loop(self) -> None:
        loop = self._scheduler.loop.asyncio_loop
        loop.call_soon_threadsafe(self._on_loop, now_ns())

    @hook
    def _on_loop(self, asked: int) -> None:
        self._ring.emit((SAMPLE, now_ns(), "loop.lag_s", (now_ns() - asked) / 1e9))
        self._belonging.rest(self._scheduler)

    async def end(self, *, owner: bool = True) -> list[Any] | None:
        """Take everything away again; what is left everywhere is collected for the owner.

        Returns how many batches went to the owner through its stream, and those that did not; None
        if the scheduler closes, and nothing can be collected.
        """
        if self._closes:
            return None
        if self._ended:
            if self._ending is not None:
                await asyncio.wait([self._ending])
            return [self._relay.passed]
        self._ended = True
        self._ending = asyncio.ensure_future(self._end(owner=owner))
        try:
            return await asyncio.shield(self._ending)
        finally:
            self._ending = None if self._ending.done() else self._ending

    async def _end(self, *, owner: bool) -> list[Any]:
        batches: list[Any] = []
        if owner:
            await quietly(self._relay.drain_workers(batches), self.watches["end"])
        if self._watch_gil:
            await quietly(gil.ended(), self.watches["end"])
        attempt(self.watches["end"], self._undo)
        self._shipper.stop()
        attempt(self.watches["end"], self._relay.send_all)
        attempt(self.watches["end"], lambda: batches.extend(self._shipper.drain()))
        self._relay.over = True
        passed = self._relay.passed
        await quietly(self._unregister(), self.watches["end"])
        return [passed, *batches]

    async def _unregister(self) -> None:
        scheduler = self._scheduler
        there = scheduler.plugins.get(self._session)
        if there not in (None, self):  # the session has begun again, by another client
            return
        if there is self:
            scheduler.remove_plugin(self._session)
        if scheduler.worker_plugins.pop(self._session, None) is not None:
            await self._relay.tell_workers("plugin-remove", LINGER_S)
        self._relay.doing.later(self._relay.stop)
