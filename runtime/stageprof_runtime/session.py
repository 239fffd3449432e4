"""A session in the client: what is installed, from `start` to `stop`, and where batches go.

Every batch, the client's own and those that scheduler and workers ship, is handed to the sink.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import socket
from threading import get_ident
from typing import Any

from stageprof_runtime import cells, computation, looker, process, rounds
from stageprof_runtime.clock import now_ns
from stageprof_runtime.context import begin_lane, regions
from stageprof_runtime.ending import RAISED, raised
from stageprof_runtime.event import MARK, Place
from stageprof_runtime.fetched import fetched
from stageprof_runtime.guard import Watches, attempt, attempt_each, quietly
from stageprof_runtime.heir import Heir
from stageprof_runtime.inbox import Sink, sinks
from stageprof_runtime.memberships import Memberships
from stageprof_runtime.patch import Undo
from stageprof_runtime.probes import (
    clients,
    communication,
    compression,
    deadlock,
    garbage,
    gil,
    groupby,
    groups,
    imports,
    layers,
    local,
    locks,
    native,
    objects,
    optimization,
    parallel,
    plans,
    scatters,
    scheduling,
    serialization,
    shares,
    sources,
    stacks,
    tracebacks,
    training,
    waiting,
)
from stageprof_runtime.ring import Ring
from stageprof_runtime.sampler import Sampler
from stageprof_runtime.shipper import Shipper
from stageprof_runtime.system import OwnMonitor, sample, sample_host
from stageprof_runtime.underway import Waits

PROBES = [
    deadlock.install,
    layers.install,
    optimization.install,
    plans.install,
    serialization.install,
    compression.install,
    shares.install,
    shares.install_optimizers,
    communication.install,
    scheduling.install,
    scheduling.install_local,
    local.install,
    stacks.install,
    waiting.install,
    locks.install,
    parallel.install,
    imports.install,
    training.install,
    groupby.install,
    groups.install,
    clients.install,
    objects.install,
    scatters.install,
    garbage.install,
    tracebacks.install,
    sources.install_cells,
]
#: A client's spans are few and each may be the one that matters: kept from this length on.
CLIENT_SHORT_NS = 20_000

_numbers = itertools.count(1)


class Session:
    """One recording's presence in this process and on the clusters that its clients use."""

    def __init__(
        self,
        sink: Sink,
        *,
        watch_gil: bool = True,
        native: bool = False,
        cost: dict[str, list[int]] | None = None,
    ) -> None:
        """A session that has not begun.

        Args:
            sink: what batches are handed to; it is called on several threads, and returns at once.
            watch_gil: whether to watch who holds the GIL of each process.
            native: whether to look at C frames of tasks.
            cost: what the sink costs this process: name -> [calls, ns], which it keeps up to date.
        """
        self.name = f"stageprof-{os.getpid()}-{next(_numbers)}-{now_ns() % 10**9}"
        self.ring = Ring(short_ns=CLIENT_SHORT_NS)
        self._sink = sink
        self._cost = cost or {}
        self._watching = {"watch_gil": watch_gil, "native": native}
        place = Place("client", socket.gethostname(), os.getpid(), "client", now_ns())
        self._shipper = Shipper(place, self.ring, sink)
        self._sampler: Sampler | None = None
        self._leave: Undo = lambda: None
        self._monitor: OwnMonitor | None = None
        self.watches = Watches("client")
        self._heir = Heir(self.name)
        self._clusters = Memberships(self.name, self.ring, sink, self.watches, self._watching)

    def start(self, client: Any = None, *, region: bool = True) -> None:
        """Install everything; with `region`, the calling thread's time is what is accounted."""
        try:
            attempt(self.watches["start"], self._install)
            active = client or active_client()
            if active is not None:
                self._clusters.join(active)
            if region:
                attempt(self.watches["start"], self._begin_region, None)
        except BaseException:
            self._uninstall()
            raise

    async def start_async(self, client: Any = None) -> None:
        """The same in a coroutine: the region is that of the calling task."""
        try:
            attempt(self.watches["start"], self._install)
            active = client or active_client()
            if active is not None:
                await self._clusters.join_async(active)
            attempt(self.watches["start"], self._begin_region, asyncio.current_task())
        except BaseException:
            self._uninstall()
            raise

    def stop(self) -> None:
        """Take everything away again; all batches have gone to the sink when it returns."""
        if self._clusters.forked():
            return
        self._clusters.over = True
        try:
            attempt(self.watches["stop"], self._end_region)
            self._clusters.leave()
        finally:
            self._uninstall()

    async def stop_async(self) -> None:
        """The same in a coroutine."""
        if self._clusters.forked():
            return
        self._clusters.over = True
        try:
            attempt(self.watches["stop"], self._end_region)
            await self._clusters.leave_async()
            for probe, end in (("native", native.settled), ("watch_gil", gil.ended)):
                await quietly(end(), self.watches["stop"]) if self._watching[probe] else None
        finally:
            self._uninstall()

    def ended(self, error: BaseException, what: str) -> None:
        """The region ends with an exception; `what` it is: program, block, function or cell."""
        attempt(self.watches["stop"], self._tell_end, error, what)

    def _tell_end(self, error: BaseException, what: str) -> None:
        said = raised(error, what)
        if said:
            self.ring.emit((MARK, now_ns(), RAISED, said))

    def _install(self) -> None:
        probes = [*PROBES, *([gil.install] * self._watching["watch_gil"])]
        probes += [native.install] * self._watching["native"]
        self._leave = process.join("client", self.ring, probes, self.name)
        clients.followers.append(self._clusters)
        sinks[self.name] = self._sink
        self._shipper.watches = self.watches
        self._shipper.lead({stacks.NAME: looker.watch(stacks.NAME)} | gil.watches())
        self._shipper.counts = computation.counts
        self._shipper.cost |= {"objects": objects.cost} | self._cost
        asked = (self._sample, self._clusters.ask_loops, self._await_tails)
        self._shipper.every += [*asked, Waits(self.ring).tell]
        self._shipper.seldom += [functools.partial(sample_host, self.ring), self._take_left]
        self._clusters.coming = self._shipper.hurry  # workers may not live for half a second
        self._shipper.start()
        self._monitor = OwnMonitor()

    def _uninstall(self) -> None:
        stopping = [self._end_region, self._clusters.abort, self._follow_no_more, self._tell_loops]
        stopping += [native.settle] * self._watching["native"]
        stopping += [self._leave, self._shipper.stop, self._flush, self._end_monitor]
        attempt_each(self.watches["stop"], [*stopping, self._take_tails, self._heir.end])

    def _follow_no_more(self) -> None:
        if self._clusters in clients.followers:
            clients.followers.remove(self._clusters)
        sinks.pop(self.name, None)

    def _end_monitor(self) -> None:
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None

    def _tell_loops(self) -> None:
        for name, told in (("loop", rounds.told()), ("fetches", fetched.told())):
            for label in told:
                self.ring.emit((MARK, now_ns(), name, label))

    @property
    def refused(self) -> str:
        """Why a cluster could not be joined; "" if all could."""
        return self._clusters.refused

    def _tell_cells(self) -> None:
        for label in cells.told():
            self.ring.emit((MARK, now_ns(), cells.MARK_NAME, label))

    def _flush(self) -> None:
        for batch in self._shipper.drain():
            self._sink(batch)

    def _await_tails(self) -> None:
        if self._clusters.any:
            self._heir.wait()

    def _take_left(self) -> None:
        for batch in self._heir.left():
            self._sink(batch)

    def _take_tails(self) -> None:
        for batch in self._heir.take():  # of workers that ended here, and whom no other followed
            self._sink(batch)

    def _begin_region(self, task: Any) -> None:
        self._region = -next(_numbers) if task is not None else get_ident()
        if task is not None:
            begin_lane(self._region, task)
        self._sampler = Sampler.here(self.ring, task)
        regions.append(self._region)
        label = f"{self._region} {get_ident()}"
        self.ring.emit((MARK, now_ns(), "region start", label))

    def _end_region(self) -> None:
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            end = functools.partial(self._end_sampler, sampler)
            attempt_each(self.watches["stop"], [self._tell_region_end, end])

    def _tell_region_end(self) -> None:
        if self._region in regions:
            regions.remove(self._region)
        attempt(self.watches["stop"], self._tell_cells)
        self.ring.emit((MARK, now_ns(), "region stop", str(self._region)))

    def _end_sampler(self, sampler: Sampler) -> None:
        sampler.stop()
        self.watches["sampler"] = sampler.watch
        self._shipper.cost["sampler"] = [sampler.looks, sampler.cost_ns]

    def _sample(self) -> None:
        if self._monitor is not None:
            sample(self.ring, self._monitor.values())


def active_client() -> Any:
    """The client that Dask would use here, or None."""
    from distributed import get_client

    try:
        client = get_client()
    except Exception:  # there is none; or the program's configuration lacks what Dask asks it for
        return None
    return client if client.status == "running" else None


__all__ = ["Session", "Sink", "active_client"]
