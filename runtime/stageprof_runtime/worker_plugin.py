"""The plugin on each worker: probes, a ring, and a shipper to the scheduler.

`setup` is synchronous and quick, as a joining worker must not wait for it. The hook that is called
for every task is in `states`.
"""

from __future__ import annotations

import functools
import socket
from threading import get_ident
from typing import Any

import psutil
from dask.system import cpu_count
from distributed.core import Status
from distributed.system import MEMORY_LIMIT

from stageprof_runtime import inheritance, locked, looker, process
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import address, batched_stream, forgettable, heartbeat_s, tick
from stageprof_runtime.coroutines import Coroutines
from stageprof_runtime.event import MARK, SAMPLE, Place
from stageprof_runtime.guard import attempt, hook, quietly
from stageprof_runtime.heldup import HeldUp
from stageprof_runtime.inbox import sinks
from stageprof_runtime.ongoing import Ongoing
from stageprof_runtime.outbox import Outbox
from stageprof_runtime.patch import Install, Undo, together
from stageprof_runtime.pings import FIRST, UNANSWERED, Pings
from stageprof_runtime.probes import (
    communication,
    compression,
    deadlock,
    exchanges,
    execution,
    frames,
    garbage,
    gil,
    groupby,
    imports,
    locks,
    memory,
    native,
    serialization,
    shares,
    sources,
    spill,
    stacks,
    tracebacks,
    waiting,
)
from stageprof_runtime.ring import Ring
from stageprof_runtime.shipper import PERIOD_S, ROUNDS, Shipper, sometimes
from stageprof_runtime.states import States
from stageprof_runtime.system import memory_limits, monitored, sample, sample_host, worker_memory
from stageprof_runtime.tail import Tail
from stageprof_runtime.tick import Ticks

#: What runs on a worker; the client's probes too, for tasks that launch tasks.
PROBES = [
    deadlock.install,
    serialization.install,
    compression.install,
    shares.install,
    communication.install,
    execution.install,
    spill.install,
    stacks.install,
    frames.install,
    groupby.install,
    imports.install,
    waiting.install,
    locks.install,
    exchanges.install,
    memory.install,
    garbage.install,
    tracebacks.install,
    sources.install,
]

#: Times in a row that a scheduler knows nothing of the session until its word of the end is not
#: waited for any more.
SURE = 3

#: Heartbeats as rare as this, in seconds, are those of 50 workers or more: what comes from each
#: worker however little it does (a batch, samples, round trips) comes as rarely, but never more
#: rarely than the second. With a thousand workers the scheduler's loop would do nothing else.
MANY_S, RAREST_S = 2.0, 5.0


def _closes(worker: Any) -> bool:
    return getattr(worker, "status", None) is Status.closing


class Left:
    """Stands for a plugin on a worker that closes, from its teardown on.

    The session may end just then: Dask removes the plugin twice, and complains of what is not
    there.
    """

    def __init__(self, plugin: WorkerProbe) -> None:
        self._answers = plugin  # which is asked for what is left


class WorkerProbe(States):
    """Observes one worker for one session."""

    def __init__(
        self,
        session: str,
        watch_gil: bool = True,  # noqa: FBT001, FBT002
        native: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        super().__init__()
        self.name = session
        self._watch_gil = watch_gil
        self._native = native
        self._session = session
        self._op = f"{session}-batch"
        self._undo: Undo = lambda: None
        #: whether the scheduler wants none for now
        self._stalled = False
        #: how often in a row it knew nothing of the session
        self._unknown = 0
        self._pinging = Coroutines(self.watches["ping"])

    def setup(self, worker: Any) -> None:
        """Begin to observe; returns at once, and never fails: a failure would stop the worker."""
        self._worker = worker
        try:
            self._outbox = Outbox(worker, self._op)
            self._begin(worker)
        except BaseException as error:  # see above
            self.watches["setup"].failed(error)
            attempt(self.watches["setup"], self._undo)
            self.watches["transition"].disabled = "the worker cannot be observed"
            self._say(f"{type(error).__name__}: {error}"[:300])

    def _begin(self, worker: Any) -> None:
        ring = Ring()
        pid = psutil.Process().pid
        place = Place("worker", socket.gethostname(), pid, address(worker), now_ns())
        self._shipper = shipper = Shipper(place, ring, self._outbox.send)
        shipper.watches = self.watches
        shipper.ready, shipper.left = self._ready, self._outbox.left
        shipper.rounds = self._rounds
        self._ongoing = Ongoing(ring, worker)
        shipper.every += [self._sample, self._ask_loop, HeldUp(ring).tell, self._ongoing.tell]
        shipper.seldom += [functools.partial(sample_host, ring)]
        if locked.AVAILABLE and self._session not in sinks:  # whose owner would die with it
            shipper.tail = Tail(self._session, place)
            # not among what is seldom, which is done as well while the last is packed, for nobody
            shipper.every.append(sometimes(self._inherit))
        self._ring, self._pings = ring, Pings(ring)
        self._hello(worker)
        worker.handlers[f"{self._session}-drain"] = forgettable(self._drain)
        undos: list[Undo] = [self._stop_listening]
        self._undo = together(undos)
        undos.append(shipper.stop)
        probes: list[Install] = [*PROBES, communication.Serving(worker), execution.Actors(worker)]
        probes += [gil.install] * self._watch_gil + [native.install] * self._native
        undos.append(process.join("worker", ring, probes, self._session, place.name))
        ticks = Ticks(worker.loop.asyncio_loop, ring, self.watches["ticks"], shipper.come)
        undos.append(ticks.start(tick(worker)))
        shipper.lead({stacks.NAME: looker.watch(stacks.NAME)} | gil.watches())
        self._ask_loop()
        shipper.start()

    def _stop_listening(self) -> None:
        if not _closes(self._worker):  # else it may still be asked, and without a handler complains
            self._worker.handlers.pop(f"{self._session}-drain", None)

    @hook
    def teardown(self, worker: Any) -> None:
        """Take everything away again, and send what is left."""
        if _closes(worker):
            worker.plugins.setdefault(self.name, Left(self))
        attempt(self.watches["teardown"], self._tell_ongoing)
        attempt(self.watches["teardown"], self._undo)
        self._shipper.stop()
        self._ring.emit((MARK, now_ns(), "told all", ""))
        if not self._outbox.closed:  # else nobody would take from here what others have left
            attempt(self.watches["teardown"], self._inherit)
        self._pack_all()
        self._outbox.send_all()
        if self._shipper.tail is not None:
            self._end(self._shipper.tail)

    def _end(self, kept: Tail) -> None:
        """Leave to others what may not have left: the stream may be closed, or its loop ending."""
        if self._outbox.closed or self._outbox.left():
            kept.close()
        else:
            kept.leave(self._outbox.take())

    @hook
    def _say(self, reason: str) -> None:
        """Tell the scheduler why this worker cannot be observed."""
        batched_stream(self._worker).send({"op": self._op, "reason": reason})

    def _hello(self, worker: Any) -> None:
        facts = {
            "threads": worker.state.nthreads,
            "cpus": psutil.cpu_count() or 0,
            # what affinity and the container's quota leave of them
            "cpus_usable": cpu_count() or 0,
            # what Dask deals out to the workers of a machine, or of a container
            "host_memory": MEMORY_LIMIT,
            **memory_limits(worker),
        }
        sample(self._ring, {f"worker.{name}": value for name, value in facts.items()})
        self._ring.emit((MARK, now_ns(), "worker name", str(worker.name)))
        self._ring.emit((MARK, now_ns(), "loop thread", str(get_ident())))

    def _sample(self) -> None:
        sample(self._ring, monitored(self._worker) | worker_memory(self._worker))

    def _rounds(self) -> int:
        """Rounds of the shipper after which what is there goes."""
        every = heartbeat_s(self._worker)
        return round(min(every, RAREST_S) / PERIOD_S) if every >= MANY_S else ROUNDS

    def _ask_loop(self) -> None:
        loop = self._worker.loop.asyncio_loop
        loop.call_soon_threadsafe(self._on_loop, now_ns())

    @hook
    def _on_loop(self, asked: int) -> None:
        self._ring.emit((SAMPLE, now_ns(), "loop.lag_s", (now_ns() - asked) / 1e9))
        if not self._pinging:
            self._pinging.later(self._ping)

    async def _ping(self) -> None:
        """A small round trip to the scheduler's clock."""
        scheduler = self._worker.scheduler
        clock = getattr(scheduler, f"{self._session}-clock")
        first = FIRST if self._rounds() == ROUNDS else 1  # or those of all workers come together
        said = await self._pings.ask(clock, scheduler.address, first=first)
        self._unknown = self._unknown + 1 if said is None else 0
        if said is None:
            self._orphaned()
        elif said != UNANSWERED:
            self._stalled = said < 0

    def _orphaned(self) -> None:
        """The scheduler knows nothing of the session, whose end this worker must have missed.

        Unless word of the end is on its way, which would find nothing to remove, and complain.
        """
        if (
            self._unknown < SURE
            or self._outbox.closed
            or self._worker.plugins.get(self.name) is not self
        ):
            return
        self._outbox.closed = True
        self._worker.loop.add_callback(self._worker.plugin_remove, name=self.name)

    def _ready(self) -> bool:
        return not self._stalled and self._outbox.ready()

    async def _drain(self) -> list[Any]:
        """How many batches went through the stream, and what is left; nothing is sent after."""
        if self._native:
            await quietly(native.settled(), self.watches["drain"])
        if self._watch_gil:
            await quietly(gil.ended(), self.watches["drain"])
        self._outbox.closed = True
        done = self._tell_ongoing, self._undo, self._shipper.stop, self._inherit, self._pack_all
        for step in done:
            attempt(self.watches["drain"], step)
        return [self._outbox.sent, *self._outbox.take()]

    def _tell_ongoing(self) -> None:
        self._ongoing.end()

    def _pack_all(self) -> None:
        self._outbox.keep(self._shipper.drain())

    def _inherit(self) -> None:
        """Send what workers that were on this host have left."""
        if batches := inheritance.inherited(self._session):
            self._shipper.carry(batches)
