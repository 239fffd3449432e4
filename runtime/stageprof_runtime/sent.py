"""What a stream of Dask's has sent of ours: its log of messages is not to keep it.

Each stream logs its latest thousand messages, with all that is in them. With batches that was many
megabytes of a scheduler for each client, long after its recordings had ended. So a batch is taken
out of its message once that is written.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from stageprof_runtime.compat import copies, next_write, written


class Sent:
    """The messages of one operation on one stream; all of it on the loop's thread."""

    def __init__(self, stream: Any, op: str) -> None:
        self.stream = stream
        self._op = op
        #: the number of the write that each is part of, and the message
        self._messages: deque[tuple[int, dict[str, Any]]] = deque()

    def send(self, batch: bytes) -> None:
        """Send one.

        Raises:
            CommClosedError: the stream is closed.
        """
        self.forget()
        message = {"op": self._op, "batch": batch}
        self.stream.send(message)
        number = next_write(self.stream)
        if number and copies(self.stream):  # else the receiver has this very message
            self._messages.append((number, message))

    def pending(self) -> bool:
        """Whether something was not written, as far as can be told; from any thread."""
        try:
            latest = self._messages[-1]
        except IndexError:
            return False
        return not written(self.stream, *latest)

    def forget(self) -> None:
        """Take out what has been written since."""
        while self._messages and written(self.stream, *self._messages[0]):
            self._messages.popleft()[1]["batch"] = b""
