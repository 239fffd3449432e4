"""A session's membership in one cluster, through one client: from joining it to leaving it.

The scheduler's plugin sends batches through the client's stream; what is left when the session
ends comes as the answer to a call. A client that lost its connection is let go: the scheduler, if
it is still there, has ended the session by itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from stageprof_runtime import process
from stageprof_runtime.bootstrap import carry
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import client_handlers, forgettable, scheduler_id
from stageprof_runtime.event import MARK
from stageprof_runtime.guard import Watches, attempt, hook
from stageprof_runtime.inbox import Sink
from stageprof_runtime.patch import Undo
from stageprof_runtime.pings import Pings
from stageprof_runtime.probes import arrivals
from stageprof_runtime.ring import Ring

logger = logging.getLogger("stageprof")

#: Seconds that leaving may take: a scheduler may be busy making the state of a large graph.
LEAVE_S: Final = 60.0
#: Looks a second whether batches that were sent have come; without one for so long, none comes.
_LOOKS: Final = 200
_STILL_S: Final = 10
#: Why the last of a cluster is missing (two ways); why its first seconds are, or all.
_HURRIED: Final = "the client had to be closed before the cluster had told what was left"
_CLOSES: Final = "the scheduler closed before the cluster had told what was left"
_LATE: Final = "no answer from the scheduler in time; what came before one is not recorded"


class Membership:
    """Joined through `client` as the session `name`; batches go to the sink, the rest to the ring.

    Of a cluster that could not be joined only the client is seen.
    """

    def __init__(self, client: Any, name: str, ring: Ring, sink: Sink, watches: Watches) -> None:
        self.client = client
        self.watches = watches
        self._name = name
        self._ring = ring
        self._sink = sink
        #: batches that came through the client's stream
        self._got = 0
        #: the client's stream when it joined: a new one is that of a scheduler that forgot us
        self._stream: Any = None
        self._pings = Pings(ring)
        #: whether another client's membership is that of this one's cluster, too
        self.guest = False
        #: whether the cluster could not be joined, and why if its scheduler said so
        self.failed = False
        self.why = ""
        #: set once joining has ended, well or not
        self._tried = asyncio.Event()
        #: whether nobody waits any more for what the cluster has to tell
        self._over = False
        #: what tells the scheduler from others, however its address is spelt
        self.cluster = scheduler_id(client)
        self._op = f"{name}-batch"
        # The client keeps what its last message was for until the next one comes.
        client_handlers(client)[self._op] = forgettable(self._received)
        self._undo: Undo = process.share(arrivals.Arrivals(client))

    @property
    def host(self) -> bool:
        """Whether it is through this one that its cluster is, or is about to be, recorded."""
        return not self.guest and not self.failed

    def inherit(self) -> None:
        """The host has left: this one is to `join`, and to be waited for."""
        self.guest = False
        self._tried.clear()

    def give_up(self) -> None:
        """It cannot join."""
        self.failed = True
        self._tried.set()

    def visit(self) -> None:
        """The cluster is recorded already, through another client: what this one does is noted."""
        self.guest = True
        self._mark("cluster joined", str(self.client.id))
        self._stream = self.client.scheduler_comm
        self._tried.set()

    async def join(self, *, watch_gil: bool, native: bool = False) -> None:
        """Begin on the scheduler, which begins on its workers; if it fails the run goes on."""
        try:
            scheduler = self.client.scheduler
            worker = carry("worker", self._name, watch_gil, native)
            plugin = carry("scheduler", self._name, self.client.id, worker, watch_gil)
            register = scheduler.register_scheduler_plugin
            await register(plugin=plugin, name=self._name, idempotent=False)
            if self._over:  # as long as that took: nothing may stay there
                await self._end()
                return
            self._mark("cluster joined", str(self.client.id))
            self._stream = self.client.scheduler_comm
            await self.ping()
        except asyncio.CancelledError:  # its loop ends
            self.failed = True
            raise
        except Exception as error:
            self.failed = True
            reason = f"{type(error).__name__}: {error}"[:300]
            self._mark("cluster not joined", reason)
            self.why = reason
            logger.warning(
                "stageprof: the cluster cannot be recorded (%s); the run goes on", reason
            )
        finally:
            self._tried.set()

    def late(self) -> None:
        """The run goes on without waiting for it to join; it may still, and is left then."""
        self._mark("cluster not joined", _LATE)

    async def leave(self) -> None:
        """Fetch what is left there, and take everything away."""
        try:
            await asyncio.wait_for(self._tried.wait(), LEAVE_S)
            if self.guest:
                return
            passed, *batches = await asyncio.wait_for(self._left(), LEAVE_S)
            for batch in batches:
                self._sink(batch)
            await self._wait_for(passed)
            if self._got < passed:  # what comes yet finds nobody
                client_handlers(self.client)[self._op] = _ignore
        except asyncio.CancelledError:
            self._mark("cluster lost", _HURRIED)
            client_handlers(self.client)[self._op] = _ignore
            raise
        except Exception as error:
            if self._stream is not None:  # else it was not joined, as was said then
                self._mark("cluster lost", f"{type(error).__name__}: {error}"[:300])
            if not self.failed:  # it may be joined yet
                client_handlers(self.client)[self._op] = _ignore
        finally:
            self._over = True
            self._undo()
            handlers = client_handlers(self.client)
            if handlers.get(self._op) is not _ignore:
                handlers.pop(self._op, None)

    async def _end(self) -> Any:
        """Have the scheduler end the session; what it has left of it."""
        return await getattr(self.client.scheduler, f"{self._name}-end")()

    async def _left(self) -> Any:
        """The same of one that is there to have it.

        Raises:
            ConnectionError: it closes.
        """
        said = await self._end()
        if said is None:
            raise ConnectionError(_CLOSES)
        return said

    def abandon(self, why: str) -> None:
        """Let go of a client that cannot be asked to leave: its cluster is gone or stuck."""
        self._over = True
        if self.host:
            self._mark("cluster lost", why)
        attempt(self.watches["stop"], self._undo)
        if self.forgotten:  # nothing comes any more through a stream that is closed
            client_handlers(self.client).pop(self._op, None)
        else:
            client_handlers(self.client)[self._op] = _ignore

    @property
    def forgotten(self) -> bool:
        """Whether the client lost its connection, with which a session on the scheduler ends."""
        return self._stream is not None and self._stream is not self.client.scheduler_comm

    async def ping(self) -> None:
        """A small round trip to the scheduler's clock, if it is time and there is one."""
        if self._stream is None or self.guest:
            return
        scheduler = self.client.scheduler
        await self._pings.ask(getattr(scheduler, f"{self._name}-clock"), scheduler.address)

    async def _wait_for(self, passed: int) -> None:
        """Batches that the scheduler sent before its answer may be behind in the stream."""
        got, still = self._got, 0
        while self._got < passed and self.client.status != "closed" and still < _STILL_S * _LOOKS:
            await asyncio.sleep(1 / _LOOKS)
            still = still + 1 if self._got == got else 0
            got = self._got

    def _received(self, batch: bytes = b"", **kwargs: Any) -> None:
        self._got += 1  # also if it cannot be kept: it came
        self._take(batch)

    @hook
    def _take(self, batch: bytes) -> None:
        self._sink(batch)

    def _mark(self, name: str, label: str) -> None:
        self._ring.emit((MARK, now_ns(), name, label))


def _ignore(**kwargs: Any) -> None:
    """Stands for a session that could not say goodbye; a late batch of it must not be an error."""
