"""Where a session's batches go: into the file (or memory) as they come, and into the live view.

Batches arrive on event loops, which must not wait; a thread of the collector narrows and writes
them, and sleeps for a while between two times: to wake costs a busy process more than to write.
What the live view shows is read off the batches' heads when it is asked for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import deque

from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.file import MAX_MEMORY, Writer, lasting, way_out
from stageprof_collectors.storage.header import describe
from stageprof_collectors.storage.live import Live
from stageprof_collectors.storage.merge import merge
from stageprof_collectors.storage.origin import Origin
from stageprof_collectors.storage.saved import save
from stageprof_collectors.storage.store import Store
from stageprof_runtime.clock import thread_ns
from stageprof_runtime.errors import StageprofError, UsageError
from stageprof_runtime.event import Place

__all__ = ["Collector", "Live"]

logger = logging.getLogger("stageprof")

#: Seconds that batches are gathered before those of one place are written as one; what is lost
#: if this process is killed.
GATHER_S = 0.5
#: So many batches in that time come from many places, each of which tells of little; the more of
#: it is written as one, the less room it takes. So a file's are gathered for longer then, and the
#: clocks of so many agree on no nanosecond: it has instants to the microsecond.
CROWD = 100
CROWD_S = 2.0
#: So many batches, or bytes of them, wait for a disk that has stopped taking any (a server that is
#: gone): what more comes would fill the memory of the program that is recorded. So many seconds
#: without a byte written the end of a recording waits for it.
STUCK, STUCK_BYTES, STILL_S = 20_000, MAX_MEMORY // 2, 120.0


class Collector:
    """Takes batches until it is closed; `recording` is what they make.

    Args:
        path: the file to write; None keeps the recording in memory.
        label: what was recorded, for the recording's header.
        savable: keep in memory what `save` needs, too; only where there is no file.
        whole: whether a whole program is recorded.

    Raises:
        RecordingNotWritable: the file cannot be begun.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        label: str = "",
        *,
        savable: bool = False,
        whole: bool = False,
    ) -> None:
        header = describe(label, whole=whole)
        path = None if path is None else lasting(path)
        self.path = path
        self._live = Live()
        self._writer = None if path is None else Writer(path, header)
        #: the recording itself where there is no file
        self._store = Store(header)
        #: which batches have come so far, by place
        self._origins: dict[Place, Origin] = {}
        #: the batches as a file would hold them, if somebody may ask for one
        self._kept: list[bytes] | None = [] if savable and path is None else None
        #: held while the store grows, and by those who look at it meanwhile
        self.lock = threading.Lock()
        #: what is not kept yet, and what the live view has not seen
        self._waiting: deque[bytes] = deque()
        self._unseen: deque[bytes] = deque()
        #: bytes of what waits, about: several threads add to it
        self._weight = 0
        self._seeing = threading.Lock()
        #: whether something waits; whether no more will come
        self._came, self._over = threading.Event(), threading.Event()
        self._told = False
        #: why nothing more is kept, or "" while all is well
        self._failed = ""
        self._pid = os.getpid()
        #: what its thread has done: times that it kept something, ns of a processor
        self.cost = {"collector": [0, 0]}
        self._thread = threading.Thread(target=self._run, name="stageprof-collector", daemon=True)
        with contextlib.suppress(RuntimeError):  # there may be no more threads: see `_finish`
            self._thread.start()

    def take(self, batch: bytes) -> None:
        """Hand over one batch; returns at once. What comes after `close` is not kept."""
        if self._over.is_set():
            return
        if len(self._waiting) >= STUCK or self._weight >= STUCK_BYTES:
            self._failed = self._failed or f"{len(self._waiting):,} batches wait to be written"
            return
        self._weight += len(batch)
        self._waiting.append(batch)
        self._unseen.append(batch)
        if not self._came.is_set():
            self._came.set()

    @property
    def live(self) -> Live:
        """How far the run is, by all that came so far."""
        self._see()
        return self._live

    @property
    def failed(self) -> str:
        """Why nothing more is kept; "" while all is well."""
        return self._failed or (self._writer.failed if self._writer else "")

    @property
    def growing(self) -> Store:
        """The recording itself where there is no file; look at it with `lock` held."""
        return self._store

    def snapshot(self) -> Recording:
        """What is in memory now, as a recording that grows no more."""
        with self.lock:
            return Recording(self._store.copy())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is in memory now to a file that is not there yet.

        Raises:
            RecordingNotWritable: it cannot be written there, or a file is there.
            UsageError: nothing was kept for it.
        """
        if self._kept is None:
            raise UsageError("what was recorded was not kept for saving")
        with self.lock:
            batches = self._kept.copy()
        save(path, self._store.header, batches, whole=not self._failed)

    def close(self) -> Recording:
        """Take no more; everything handed over is in the recording that this returns.

        It raises nothing, for the user's block ends here: where the file is gone or was overwritten
        the recording is empty, and says so. In a forked child it is the parent's, as far as it is.
        """
        if os.getpid() != self._pid:  # threads that are not here may have taken locks for ever
            return self._reopened(self._writer.path) if self._writer else Recording(self._store)
        try:
            done = self._finish()
        except BaseException:  # Ctrl-C: it is closed now or never, and locked as long as it is open
            if self._writer is not None:
                self._writer.abandon()
            raise
        if not done:
            self._failed = self._store.incomplete_reason = f"nothing written for {STILL_S:.0f} s"
            self._tell(self._failed)
            return Recording(self._store, self.path)
        if self._writer is not None:
            self._writer.fail(self._failed)
            self._writer.close()
            self._tell(self._writer.failed)
            return self._reopened(self._writer.path)
        self._tell(self._failed)
        self._store.complete, self._store.incomplete_reason = not self._failed, self._failed
        return Recording(self._store)

    def _finish(self) -> bool:
        """Keep all that came, and end the thread; False: its disk takes nothing, and it is left."""
        self._over.set()
        self._came.set()
        if self._thread.ident is None:  # it could not begin: nothing has been kept yet
            self._run()
        growing, before = self._writer or self._store, -1
        while self._thread.is_alive() and growing.bytes != before:
            before = growing.bytes
            self._thread.join(STILL_S)
        return not self._thread.is_alive()

    def _reopened(self, path: os.PathLike[str]) -> Recording:
        try:
            return Recording.open(path)
        except (StageprofError, OSError) as error:
            self._store.incomplete_reason = f"the file cannot be read: {error}"
            logger.warning("stageprof: nothing was recorded: %s", error)
            return Recording(self._store, self.path)

    def _run(self) -> None:
        more, cost = True, self.cost["collector"]
        while more:
            try:
                more = self._gather()
                cost[:] = cost[0] + 1, thread_ns()
            except BaseException as error:  # no memory is left, say
                more = self._lost(error)
        if self._failed and self._writer:  # nobody may wait for it any more
            self._writer.abandon()

    def _lost(self, error: BaseException) -> bool:
        """Keep no more, for there is a hole now, and let go of what waits; False if all is over.

        What comes goes on being taken: it would fill the memory of a run that goes on.
        """
        self._weight = 0
        self._waiting.clear()
        try:
            self._failed = self._failed or f"{type(error).__name__}: {error}"[:200].strip(": ")
            self._tell(self._failed)
        except BaseException:  # not even for that; `close` says it
            self._failed = self._failed or "no memory is left"
        return not self._over.is_set()

    def _gather(self) -> bool:
        """Keep what comes within a while after the next batch; False once there is no more."""
        self._came.wait()
        self._over.wait(GATHER_S)
        if len(self._waiting) >= CROWD and self._writer is not None:  # in memory nothing is gained
            self._over.wait(CROWD_S - GATHER_S)
        self._came.clear()
        self._weight = 0
        more = not self._over.is_set()  # asked between: what comes after is heard, or is kept now
        self._keep([self._waiting.popleft() for _ in range(len(self._waiting))])
        self._see()  # nobody may ask for the live view, and what it has not seen takes its room
        return more

    def _keep(self, batches: list[bytes]) -> None:
        if self._failed:
            return
        if self._writer is None:
            batches = batches if self._kept is None else merge(batches, self._origins)
            with self.lock:
                taken = [batch for batch in batches if self._store.add(batch)]
                if self._kept is not None:
                    self._kept += taken
            if self._store.full:
                self._failed = f"in memory {MAX_MEMORY:,} bytes are all; record to a file"
                self._tell(self._failed)
        elif batches:
            self._writer.write(*merge(batches, self._origins, coarse=len(batches) >= CROWD))
            self._tell(self._writer.failed)

    def _tell(self, failed: str) -> None:
        if failed and not self._told:
            self._told = True
            logger.warning(
                "stageprof: recording to %s stopped: %s. What was recorded until now is kept and "
                "the run goes on. %s silence this, set the level of the logger 'stageprof'.",
                self.path or "memory",
                failed,
                "To" if self._failed else f"{way_out(failed)}; to",
            )

    def _see(self) -> None:
        with self._seeing:
            while self._unseen:
                self._live.see(self._unseen.popleft())
