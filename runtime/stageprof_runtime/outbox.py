"""What a worker's loop has to send to the scheduler and has not sent yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from stageprof_runtime.compat import batched_stream, is_open, unwritten, waiting_in
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.relay import UNTAKEN
from stageprof_runtime.sent import Sent

#: Batches that may wait to be sent; with more, rows stay in the ring, which is bounded.
BACKLOG: Final = 20


class Outbox:
    """The batches of one session on one worker."""

    def __init__(self, worker: Any, op: str) -> None:
        self._worker = worker
        self._op = op
        self._watch = Watch("worker.outbox")
        self._waiting: deque[bytes] = deque()
        self._through = Sent(None, op)
        #: how many went through the stream
        self.sent = 0
        #: whether nothing is sent any more: what is left is asked for
        self.closed = False

    def ready(self) -> bool:
        """Whether what is sent now would leave; streams and loops have no bounds of their own."""
        stream = batched_stream(self._worker)
        waiting = max(len(self._waiting), waiting_in(stream, self._op))
        return waiting < BACKLOG and unwritten(stream) < UNTAKEN

    def left(self) -> bool:
        """Whether all that was sent has left this process, as far as can be told.

        A stream that ends lets go of what it has: it is asked last whether it has ended.
        """
        stream, through = batched_stream(self._worker), self._through
        waits = self._waiting or waiting_in(stream, self._op) or through.pending()
        return not (waits or unwritten(stream)) and stream is through.stream and is_open(stream)

    def send(self, batch: bytes) -> None:
        """Send a batch, from any thread."""
        self._waiting.append(batch)
        self._worker.loop.add_callback(self.send_all)

    def keep(self, batches: Iterable[bytes]) -> None:
        """Add batches that are sent with the next, or asked for."""
        self._waiting += batches

    def send_all(self) -> None:
        """Send what waits, in its order, on the loop's thread."""
        attempt(self._watch, self._send_all)

    def _send_all(self) -> None:
        while self._waiting and not self.closed and self._send_now(self._waiting[0]):
            self._waiting.popleft()

    def take(self) -> list[bytes]:
        """What is left; nothing is afterwards."""
        left = [*self._waiting]
        self._waiting.clear()
        attempt(self._watch, self._through.forget)
        return left

    def _send_now(self, batch: bytes) -> bool:
        try:
            stream = batched_stream(self._worker)
            if stream is not self._through.stream:  # it is connected anew
                self._through = Sent(stream, self._op)
            self._through.send(batch)
        except Exception:  # not connected
            return False
        self.sent += 1
        return True


__all__ = ["BACKLOG", "Outbox"]
