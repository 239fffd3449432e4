"""The thread that writes what a flight recorder keeps: the scheduler's loop only appends."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

from stageprof_runtime.clock import thread_ns
from stageprof_runtime.flight.segments import Segments
from stageprof_runtime.guard import Watch, attempt

#: Seconds that batches are gathered before they are written; what is lost if the process is killed.
GATHER_S: Final = 0.5
#: Bytes that may wait to be written: beyond, places are asked to keep theirs in their own bounded
#: rings; and at twice as many what comes is dropped.
WAITING: Final = 16 << 20


class Tape:
    """Takes batches on the scheduler's loop and writes them on a thread, from `start` to `stop`."""

    def __init__(self, segments: Segments, watch: Watch) -> None:
        self._segments = segments
        self._watch = watch
        self._batches: deque[bytes] = deque()
        #: rounds of writing, and what they took, ns
        self.cost = [0, 0]
        #: bytes taken (by the loop) and written (by whoever holds the lock)
        self._taken = self._written = 0
        self._over = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="stageprof-flight", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is left, and no more; as long as the disk takes, which may be for ever."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        attempt(self._watch, self._write)
        with self._writing:
            self._segments.close()

    @property
    def folder(self) -> str:
        """Where it writes."""
        return self._segments.folder

    @property
    def waiting(self) -> int:
        """Bytes that were taken and not written yet."""
        return self._taken - self._written

    @property
    def dropped(self) -> dict[str, int]:
        """Batches that could not be kept, by reason."""
        return dict(self._segments.dropped)

    def ready(self) -> bool:
        """Whether the disk keeps up."""
        return self.waiting < WAITING

    def keep(self, batch: bytes) -> None:
        """Take one batch; on the loop's thread only."""
        if self.waiting >= 2 * WAITING:
            self._segments.dropped["disk too slow"] += 1
            return
        self._batches.append(batch)
        self._taken += len(batch)

    def cut(self) -> list[tuple[int, int]]:
        """What is kept up to now, as `Segments.files` has it; for a thread that may wait."""
        self._write()
        with self._writing:
            return self._segments.files()

    def _run(self) -> None:
        while not self._over.wait(GATHER_S):
            attempt(self._watch, self._write)
            self.cost[0] += 1
            self.cost[1] = thread_ns()

    def _write(self) -> None:
        with self._writing:
            found = [self._batches.popleft() for _ in range(len(self._batches))]
            try:
                self._segments.write(found)
            finally:
                self._written += sum(map(len, found))
