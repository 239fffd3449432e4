"""A session in the client: what is installed, from `start` to `stop`, and where batches go.

Every batch, the client's own and those that scheduler and workers ship, is handed to the sink.
Clusters are joined and left by clients: the active one, a given one, and all that start while
the session is on.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import logging
import os
import socket
from collections.abc import Coroutine
from threading import get_ident
from typing import Any

from distributed.utils import sync

from stageprof_runtime import cells, looker, process, rounds, tail
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import client_loop
from stageprof_runtime.context import lane
from stageprof_runtime.event import MARK, SAMPLE, Place
from stageprof_runtime.guard import Watches, attempt, hook, quietly
from stageprof_runtime.inbox import Sink, sinks
from stageprof_runtime.membership import LEAVE_S, Membership
from stageprof_runtime.patch import Undo
from stageprof_runtime.probes import (
    clients,
    communication,
    compression,
    garbage,
    gil,
    imports,
    layers,
    local,
    native,
    objects,
    optimization,
    scheduling,
    serialization,
    shares,
    sources,
    stacks,
    tracebacks,
    training,
    unused,
    waiting,
)
from stageprof_runtime.ring import Ring
from stageprof_runtime.sampler import Sampler
from stageprof_runtime.shipper import Shipper
from stageprof_runtime.system import OwnMonitor, sample, sample_host

logger = logging.getLogger("stageprof")

PROBES = [
    layers.install,
    optimization.install,
    unused.install,
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
    imports.install,
    training.install,
    clients.install,
    objects.install,
    garbage.install,
    tracebacks.install,
    sources.install_cells,
]
#: Seconds that joining a cluster may take before the run goes on without it.
PATIENCE_S = 15.0
#: Seconds that a client which closes waits for another to go on with its cluster.
HAND_OVER_S = 2.0
#: A client's spans are few and each may be the one that matters: kept from this length on.
CLIENT_SHORT_NS = 20_000
#: Why a cluster is lost whose scheduler was restarted, or could not be reached for a while.
_CUT_OFF = "the client lost its connection to the scheduler; what came after is not recorded"

#: Why the end of a recording is missing that was ended without `async with`.
_UNAWAITED = "stop() in the loop's own thread cannot wait for the cluster; use `async with`"

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
        self._joined: dict[Any, Membership] = {}
        self._leave: Undo = lambda: None
        #: whether it is ending: no cluster is joined any more
        self._over = False
        self._lane: Any = None
        self._monitor: OwnMonitor | None = None
        self.watches = Watches("client")
        #: tasks of ours on clients' loops; the loops keep no reference to them
        self._doing: set[asyncio.Task[Any]] = set()

    # -- the region -------------------------------------------------------------------------

    def start(self, client: Any = None, *, region: bool = True) -> None:
        """Install everything; with `region`, the calling thread's time is what is accounted."""
        attempt(self.watches["start"], self._install)
        try:
            active = client or active_client()
            if active is not None:
                self._sync(active, self.started, active)
            if region:
                attempt(self.watches["start"], self._begin_region, None)
        except BaseException:
            self._abort()
            raise

    async def start_async(self, client: Any = None) -> None:
        """The same in a coroutine: the region is that of the calling task."""
        attempt(self.watches["start"], self._install)
        try:
            active = client or active_client()
            if active is not None:
                await quietly(self.started(active), self.watches["start"])
            attempt(self.watches["start"], self._begin_region, asyncio.current_task())
        except BaseException:
            self._abort()
            raise

    def stop(self) -> None:
        """Take everything away again; all batches have gone to the sink when it returns."""
        if self._forked():
            return
        self._over = True
        try:
            attempt(self.watches["stop"], self._end_region)
            for client in list(self._joined):
                self._sync(client, self.closing, client)
                self._abandon(client)
        finally:
            self._abort()

    async def stop_async(self) -> None:
        """The same in a coroutine."""
        if self._forked():
            return
        self._over = True
        try:
            attempt(self.watches["stop"], self._end_region)
            for client in list(self._joined):
                await quietly(self.closing(client), self.watches["stop"])
                self._abandon(client)
        finally:
            self._abort()

    def _abandon(self, client: Any) -> None:
        """Let go of a client that could not be asked to leave: its cluster is gone or stuck.

        One of a loop that runs in this thread is asked, but cannot be waited for.
        """
        if not client.asynchronous or not _in_loop():
            self._let_go(client, f"client is {client.status}")
        elif client in self._joined:
            self.ring.emit((MARK, now_ns(), "cluster lost", _UNAWAITED))

    def _let_go(self, client: Any, why: str) -> None:
        membership = self._joined.pop(client, None)
        if membership is not None:
            membership.abandon(why)

    def _forked(self) -> bool:
        """Whether this is a child of the process that began; the session is its parent's."""
        return os.getpid() != self._shipper.place.pid

    def _install(self) -> None:
        probes = [*PROBES, *([gil.install] * self._watching["watch_gil"])]
        probes += [native.install] * self._watching["native"]
        self._leave = process.join("client", self.ring, probes, self.name)
        self._shipper.lead()
        self.watches |= {stacks.NAME: looker.watch(stacks.NAME)} | gil.watches()
        clients.followers.append(self)
        sinks[self.name] = self._sink
        self._shipper.watches = self.watches
        self._shipper.counts = local.counts
        self._shipper.cost |= {"objects": objects.cost} | self._cost
        self._shipper.every += [self._sample, self._ask_loops]
        self._shipper.seldom.append(functools.partial(sample_host, self.ring))
        self._shipper.start()
        self._monitor = OwnMonitor()

    def _abort(self) -> None:
        """Take everything away, and have clusters left of which nobody could wait for the end."""
        self._over = True
        for client in list(self._joined):
            leaving = functools.partial(self._leave_later, client)
            with contextlib.suppress(RuntimeError):  # its loop has ended
                client_loop(client).call_soon_threadsafe(leaving)
        self._uninstall()

    @hook
    def _leave_later(self, client: Any) -> None:
        self._later(self.closing(client))

    def _uninstall(self) -> None:
        if self in clients.followers:
            clients.followers.remove(self)
        sinks.pop(self.name, None)
        attempt(self.watches["stop"], self._tell_loops)
        try:
            if self._watching["native"]:
                attempt(self.watches["stop"], native.settle)
        finally:  # that waits, and may be interrupted
            flushing = (self._shipper.stop, self._flush, self._take_tails)
            for step in (self._leave, *flushing, self._end_monitor):
                attempt(self.watches["stop"], step)

    def _end_monitor(self) -> None:
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None

    def _tell_loops(self) -> None:
        for label in rounds.told():
            self.ring.emit((MARK, now_ns(), "loop", label))

    def _tell_cells(self) -> None:
        for label in cells.told():
            self.ring.emit((MARK, now_ns(), cells.MARK_NAME, label))

    def _flush(self) -> None:
        for batch in self._shipper.drain():
            self._sink(batch)

    def _take_tails(self) -> None:
        """Of workers that were killed here, and whom no other one has followed."""
        for batch in tail.remaining(self.name):
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
        sampler.stop()
        self.watches["sampler"] = sampler.watch
        self._shipper.cost["sampler"] = [sampler.looks, sampler.cost_ns]
        if self._lane is not None:
            token, self._lane = self._lane, None
            lane.reset(token)  # which fails where the region ends in another context

    # -- clusters ---------------------------------------------------------------------------

    def _sync(self, client: Any, function: Any, *args: Any) -> None:
        if client.asynchronous:
            # Its loop is this thread's: nothing can be awaited here; or it is that of no thread.
            if _in_loop():
                self._later(function(*args))
            return
        if client.status != "running":
            return
        try:
            watch = self.watches[function.__name__]
            sync(
                client.loop,
                lambda: quietly(function(*args), watch),
                callback_timeout=PATIENCE_S + LEAVE_S * self._over,
            )
        except Exception as error:
            logger.warning("stageprof: %s of %r failed: %r", function.__name__, client, error)

    async def started(self, client: Any) -> None:
        """Join a client's cluster."""
        if self._forked() or self._over or client in self._joined:
            return
        if getattr(client, "scheduler", None) is None:
            return
        membership = Membership(client, self.name, self.ring, self._sink, self.watches)
        there = self._members_of(membership.cluster)
        self._joined[client] = membership
        if any(each.host for each in there):
            membership.visit()
        else:
            await membership.join(**self._watching)
            if membership.failed:  # another may be let in, or have come meanwhile
                await self._stay(membership.cluster)

    def _members_of(self, cluster: str) -> list[Membership]:
        # Copied at once: clients live on loops of their own.
        return [each for each in list(self._joined.values()) if each.cluster == cluster]

    async def closing(self, client: Any) -> None:
        """Leave a client's cluster."""
        membership = None if self._forked() else self._joined.pop(client, None)
        if membership is None:
            return
        if membership.forgotten:
            membership.abandon(_CUT_OFF)
        else:
            await membership.leave()
        await self._stay(membership.cluster)

    async def _stay(self, cluster: str) -> None:
        """If the client through which a cluster was recorded has left, go on through another.

        It joins on its own loop. One whose loop may be this program's own thread is not waited for.
        """
        members = self._members_of(cluster)
        heir = next((each for each in members if each.guest), None)
        if heir is None or self._over or any(each.host for each in members):
            return
        heir.inherit()
        loop, inherited = client_loop(heir.client), self._inherited(heir)
        try:
            joining = asyncio.run_coroutine_threadsafe(inherited, loop)
        except RuntimeError:  # its loop has ended
            inherited.close()
            heir.give_up()
            return
        if not heir.client.asynchronous or loop is asyncio.get_running_loop():
            await asyncio.wait([asyncio.wrap_future(joining)], timeout=HAND_OVER_S)

    async def _inherited(self, heir: Membership) -> None:
        task = self._later(heir.join(**self._watching))
        await asyncio.shield(task)

    def _later(self, doing: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(quietly(doing, self.watches["task"]))
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)
        return task

    # -- every half second, on the shipper's thread -----------------------------------------

    def _sample(self) -> None:
        if self._monitor is not None:
            sample(self.ring, self._monitor.values())

    def _ask_loops(self) -> None:
        for client in list(self._joined):
            if client.status == "running":
                with contextlib.suppress(RuntimeError):  # its loop has ended
                    client_loop(client).call_soon_threadsafe(self._on_loop, client, now_ns())

    @hook
    def _on_loop(self, client: Any, asked: int) -> None:
        self.ring.emit((SAMPLE, now_ns(), "loop.lag_s", (now_ns() - asked) / 1e9))
        membership = self._joined.get(client)
        if membership is None:
            return
        if membership.forgotten:
            self._let_go(client, _CUT_OFF)
            self._later(self._stay(membership.cluster))
        elif len(self._doing) <= len(self._joined):
            self._later(membership.ping())


def _in_loop() -> bool:
    """Whether an event loop runs in this thread."""
    return asyncio._get_running_loop() is not None


def active_client() -> Any:
    """The client that Dask would use here, or None."""
    from distributed import get_client

    try:
        client = get_client()
    except Exception:  # there is none; or the program's configuration lacks what Dask asks it for
        return None
    return client if client.status == "running" else None


__all__ = ["Session", "Sink", "active_client"]
