"""What passes the scheduler on its way between the workers and the owner of a session.

Batches are passed on unopened; where the owner is in this process they are handed to it (see
`inbox`). A stalled owner would fill the scheduler's memory: then everybody is told, by way of the
clock that they ask, to keep theirs.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import pickle
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from distributed.diagnostics.plugin import WorkerPlugin

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import forgettable, unwritten, waiting_in
from stageprof_runtime.coroutines import Coroutines
from stageprof_runtime.guard import Watches, hook, quietly
from stageprof_runtime.inbox import sinks
from stageprof_runtime.sent import Sent

#: Seconds that the drain of one worker may take before it counts as lost.
DRAIN_S = 5.0
#: Seconds that the relay stays after all workers were told; a message without a handler would
#: cost its sender the connection, and the last of them may still be on their way.
LINGER_S = 1.0
#: How often that is doubled for workers that do not answer: some nine minutes from one try to the
#: next, each of which Dask logs as an error.
SLOWER = 9
#: Batches that may wait for the owner, or one from each worker if there are more of them; beyond,
#: everybody keeps theirs in their bounded rings.
BACKLOG = 50
#: Bytes that may be on their way to somebody who does not take them; beyond, the same.
UNTAKEN = 16_000_000
#: What the clock says to workers then.
STALLED = -1
#: A plugin that does nothing, which workers have wherever stageprof is not installed.
NOTHING: Final = WorkerPlugin()


def forget(handlers: dict[str, Any], op: str, mine: Any) -> None:
    """Take a handler away, unless another one has its place: the session began again."""
    if op in handlers and handlers[op] is mine:
        del handlers[op]


class Relay:
    """The streams of one session on one scheduler."""

    def __init__(self, scheduler: Any, session: str, owner: str, watches: Watches) -> None:
        self._scheduler = scheduler
        self._session = session
        self._owner = owner
        self.watches = watches
        #: the owner's stream: after a new one it is another session's, or nobody's
        self._sent = Sent(scheduler.client_comms.get(owner), f"{session}-batch")
        #: called with a worker and why it cannot be observed
        self.absent_because: Callable[[str, str], None] = lambda *_: None
        #: called with a worker that did not give what was left, and when it was asked
        self.undrained: Callable[[str, int], None] = lambda *_: None
        #: worker -> batches that came from it through the stream
        self.relayed: dict[str, int] = {}
        #: workers that said that they cannot be observed
        self._absent: set[str] = set()
        #: batches sent through the owner's stream; whether it has what it waited for
        self.passed = 0
        self.over = False
        self._outbox: deque[bytes] = deque()
        #: what the session does on the scheduler's loop
        self.doing = Coroutines(watches["task"])
        #: worker -> what tells it to add or remove the plugin; who has answered the latest
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._heard: set[str] = set()
        #: what answers the clock, takes batches, and ends the session
        self._listening: tuple[Any, Any, Any] = (None, None, None)

    def listen(self, end: Any) -> None:
        """Take what workers send, tell them the time, and have `end` answer to the owner."""
        self._listening = forgettable(self._clock), forgettable(self._relay), end
        for handlers, op, mine in self._handlers():
            handlers[op] = mine

    def stop_listening(self) -> None:
        """Forget what comes; the session may have begun again meanwhile, by another client."""
        for handlers, op, mine in self._handlers():
            forget(handlers, op, mine)

    def _handlers(self) -> tuple[tuple[dict[str, Any], str, Any], ...]:
        clock, batch, end = self._listening
        return (
            (self._scheduler.handlers, f"{self._session}-end", end),
            (self._scheduler.handlers, f"{self._session}-clock", clock),
            (self._scheduler.stream_handlers, f"{self._session}-batch", batch),
        )

    # -- to the owner -----------------------------------------------------------------------

    def send(self, batch: bytes) -> None:
        """Send a batch to the owner, from any thread."""
        if self._handed(batch):
            return
        self._outbox.append(batch)
        self._scheduler.loop.add_callback(self.send_all)

    def send_all(self) -> None:
        """Send what other threads wanted sent, in its order; on the loop's thread."""
        while self._outbox:
            self.send_now(self._outbox.popleft())

    @hook
    def send_now(self, batch: bytes) -> None:
        """Send one now, on the loop's thread."""
        if self._handed(batch):
            return
        comm = self._mine()
        if comm is None or comm.closed() or self.over:  # gone, or it has what it waited for
            return
        self._sent.send(batch)
        self.passed += 1

    def _handed(self, batch: bytes) -> bool:
        """Whether the owner is in this process, and has it now."""
        sink = sinks.get(self._session)
        if sink is not None and not self.over:
            sink(batch)
        return sink is not None

    def _mine(self) -> Any:
        """The owner's stream; None if it is gone, or the owner has come back with another."""
        comm = self._scheduler.client_comms.get(self._owner)
        return comm if comm is self._sent.stream else None

    def ready(self) -> bool:
        """Whether the owner takes what is sent to it."""
        if len(self._outbox) >= BACKLOG:  # the loop is busy
            return False
        comm = self._mine()
        if comm is None or self._session in sinks:
            return True
        most = max(BACKLOG, len(self._scheduler.workers))
        return waiting_in(comm, f"{self._session}-batch") < most and unwritten(comm) < UNTAKEN

    async def _clock(self) -> int:
        """Our time for those who measure round trips; STALLED if they should not send."""
        try:
            return STALLED if self.over or not self.ready() else now_ns()
        except BaseException as error:  # nothing but an `Exception` may reach the loop
            self.watches["clock"].failed(error)
            return STALLED

    # -- from the workers -------------------------------------------------------------------

    @hook
    def _relay(self, batch: bytes = b"", worker: str = "", reason: str = "", **kw: Any) -> None:
        if reason:
            self._absent.add(worker)
            self.absent_because(worker, reason)
            return
        self.relayed[worker] = self.relayed.get(worker, 0) + 1
        self.send_now(batch)

    def left(self, worker: str) -> None:
        """A worker went; another one may have its address later, and be another in all."""
        self.relayed.pop(worker, None)
        self._absent.discard(worker)

    async def tell_workers(self, op: str, patience: float, **what: Any) -> None:
        """Have all workers add or remove the plugin; those that are stuck are not waited for."""
        message = {"op": op, "name": self._session, **what}
        self._heard = set()
        self._tell(list(self._scheduler.workers), [message])
        if self._telling:
            await asyncio.wait(self._telling.values(), timeout=patience)

    def _tell(self, workers: list[str], messages: list[dict[str, Any]]) -> None:
        before, heard = self._telling, self._heard
        self._telling = {
            w: self.doing.later(
                functools.partial(self._tell_one, w, messages, before.get(w), heard)
            )
            for w in workers
        }

    async def _tell_one(
        self,
        worker: str,
        messages: list[dict[str, Any]],
        before: asyncio.Task[None] | None,
        heard: set[str],
    ) -> None:
        """Tell a worker, once it has what it was told before: it might read that last."""
        if before is not None:
            await asyncio.wait([before])
        for message in messages:
            answers = await self._scheduler.broadcast(
                msg=message, workers=[worker], on_error="return"
            )
            if isinstance(answers[worker], OSError):
                return
        # One that answers with an error was reached, and would say the same again.
        heard.add(worker)

    async def drain_workers(self, batches: list[Any]) -> None:
        """Have all workers stop and give what is left; a worker may not have sent anything yet."""
        workers = [w for w in self._scheduler.workers if w not in self._absent]
        watch = self.watches["drain"]
        await asyncio.gather(*(quietly(self._drain_one(w, batches), watch) for w in workers))

    async def _drain_one(self, worker: str, batches: list[Any]) -> None:
        asked = now_ns()
        try:
            drain = getattr(self._scheduler.rpc(worker), f"{self._session}-drain")
            sent, *left = await asyncio.wait_for(drain(), DRAIN_S)
        except Exception:  # of one that left that is known anyway
            if worker in self._scheduler.workers:
                self.undrained(worker, asked)
            return
        batches += left
        for _ in range(round(DRAIN_S * 100)):
            # What went through the stream before may still be on its way, if the worker is there.
            if self.relayed.get(worker, 0) >= sent or worker not in self._scheduler.workers:
                return
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Forget the relay, once every worker has heard of the end or is gone.

        One that could not be reached is told again: it sends once it can, and a message without a
        handler would cost it the connection. It may have heard though its answer was lost: then
        what it removes is a plugin that does nothing, or Dask would complain that there is none.
        """
        for times in itertools.count():
            if self._telling:
                await asyncio.wait(self._telling.values())
            await asyncio.sleep(LINGER_S * 2 ** min(times, SLOWER))
            self._sent.forget()
            deaf = [w for w in self._telling if self._is_deaf(w)]
            if not deaf or not self._is_listening():
                break
            again = {"op": "plugin-add", "name": self._session, "plugin": pickle.dumps(NOTHING)}
            self._tell(deaf, [again, {"op": "plugin-remove", "name": self._session}])
        self.stop_listening()

    def _is_deaf(self, worker: str) -> bool:
        return worker not in self._heard and worker in self._scheduler.workers

    def _is_listening(self) -> bool:
        """Whether the session has not begun again meanwhile, by another client."""
        return all(handlers.get(op) is mine for handlers, op, mine in self._handlers())
