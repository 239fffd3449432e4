"""The flight recorder: a scheduler that records itself and its workers from the start.

The same probes as for a session, without an owner: what would go to a client is kept in a
bounded row of files, and handed out when somebody asks for it (`stageprof attach --dump`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from distributed.core import Status

from stageprof_runtime.bootstrap import carry
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import address, unwritten
from stageprof_runtime.flight import folder as folders
from stageprof_runtime.flight.apart import apart
from stageprof_runtime.flight.segments import Segments
from stageprof_runtime.flight.tape import Tape
from stageprof_runtime.guard import hook, quietly
from stageprof_runtime.relay import BACKLOG, Relay
from stageprof_runtime.scheduler_plugin import SchedulerProbe
from stageprof_runtime.system import surroundings
from stageprof_runtime.version import __version__

#: Says what there is to say in the scheduler's own log.
logger = logging.getLogger("distributed.stageprof")

#: The operation that hands the recording out, and the metadata that tells of it.
OP: Final = "stageprof-flight"
#: Bytes of one message; the next is read when most of those before were taken.
PIECE: Final = 2 << 20
#: Bytes that may be on their way to somebody who does not take them yet.
UNTAKEN: Final = 2 * PIECE
#: Seconds that writing what is left may take as the scheduler ends.
CLOSING_S: Final = 5.0
#: Seconds that he may take for a message, and between two looks at whether he did.
TAKING_S: Final = 30.0
LOOK_S: Final = 0.01
#: Seconds that workers are given to ship what they have before a recording is handed out.
PATIENCE_S: Final = 2.0


class Limits(NamedTuple):
    """What is kept."""

    minutes: float
    #: bytes on disk
    size: int
    #: a folder that stays when the scheduler ends; "": one that goes with it
    folder: str = ""
    watch_gil: bool = False


class Flight(SchedulerProbe):
    """Records one scheduler from its start to its end."""

    def __init__(self, limits: Limits) -> None:
        session = f"{OP}-{os.getpid()}-{now_ns() % 10**9}"
        worker = carry("worker", session, limits.watch_gil)
        super().__init__(session, "", worker, limits.watch_gil)
        self._limits = limits
        self._let_go: Callable[[], None] = lambda: None
        self._began = False

    async def start(self, scheduler: Any) -> None:
        """Begin to record; Dask calls it again when the scheduler has started."""
        if self._began:
            return
        self._began = True
        folder = self._folder(scheduler)
        segments = Segments(folder, _about(scheduler, self._limits), *self._limits[:2])
        self._tape = Tape(segments, self.watches["tape"])
        self._tape.start()
        try:
            await super().start(scheduler)
        except BaseException:
            await quietly(self._stopped(), self.watches["close"])
            raise
        self._shipper.cost["flight"] = self._tape.cost
        scheduler.handlers[OP] = self.hand_out
        scheduler.set_metadata([OP], {"stageprof": __version__, "folder": folder})

    def _folder(self, scheduler: Any) -> str:
        if not self._limits.folder:
            return folders.made(scheduler.local_directory)
        folder, self._let_go = folders.take(os.path.abspath(self._limits.folder))
        return folder

    def _through(self, scheduler: Any) -> Relay:
        self._kept = Keeping(scheduler, self.name, self._tape, self.watches)
        return self._kept

    async def before_close(self) -> None:
        """The scheduler is closing: write what there is, and let go of this process."""
        await super().before_close()
        self._forget()
        await quietly(self._stopped(), self.watches["close"])

    @hook
    def _forget(self) -> None:
        self._scheduler.handlers.pop(OP, None)

    async def _stopped(self) -> None:
        """Until all is written, unless the folder does not answer: the scheduler has to end."""
        try:
            await asyncio.wait_for(apart(self._stop), CLOSING_S)
        except TimeoutError:
            logger.warning(
                "stageprof: %s takes nothing; the end of the flight recording may be lost",
                self._tape.folder,
            )

    def _stop(self) -> None:
        self._tape.stop()
        self._let_go()  # not before: nobody else may write there meanwhile

    async def hand_out(self, comm: Any) -> Any:
        """Write what is kept to a connection: a message about it, then pieces of the segments."""
        await quietly(self._caught_up(), self.watches["hand_out"])
        files = await apart(self._tape.cut)
        lengths, dropped = [length for _, length in files], self._tape.dropped
        try:
            await comm.write({"stageprof": __version__, "segments": lengths, "dropped": dropped})
            await _hand_over(comm, files)
        except TimeoutError:
            logger.info("stageprof: %s did not take the flight recording", comm.peer_address)
            comm.abort()
        finally:
            for file, _ in files:
                os.close(file)
        return Status.dont_reply

    async def _caught_up(self) -> None:
        """Until everybody has shipped since now, which all do twice a second."""
        before = dict(self._kept.counts)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            here = {"", *self._scheduler.workers} & before.keys()
            if all(self._kept.counts[place] > before[place] for place in here):
                return
            await asyncio.sleep(0.02)


class Keeping(Relay):
    """A relay whose owner is a tape."""

    def __init__(self, scheduler: Any, session: str, tape: Tape, watches: Any) -> None:
        super().__init__(scheduler, session, "", watches)
        self._tape = tape
        #: batches of the scheduler itself
        self._own = 0

    @property
    def counts(self) -> dict[str, int]:
        """Batches kept by worker; those of the scheduler under ""."""
        return self.relayed | {"": self._own}

    def send(self, batch: bytes) -> None:
        """Keep a batch of the scheduler's, from any thread."""
        self._own += 1
        super().send(batch)

    @hook
    def send_now(self, batch: bytes) -> None:
        """Keep a batch; on the loop's thread."""
        self._tape.keep(batch)
        self.passed += 1

    def ready(self) -> bool:
        """Whether the loop and the disk keep up."""
        return len(self._outbox) < BACKLOG and self._tape.ready()


async def _hand_over(comm: Any, files: list[tuple[int, int]]) -> None:
    for file, length in files:
        for start in range(0, length, PIECE):
            await asyncio.wait_for(_taken(comm), TAKING_S)
            size = min(PIECE, length - start)
            await comm.write({"piece": await apart(os.pread, file, size, start)})


async def _taken(comm: Any) -> None:
    """Until there is room for a message: to write one does not wait for whoever reads it."""
    while unwritten(_Stream(comm)) > UNTAKEN:  # noqa: ASYNC110 (Tornado tells nobody)
        await asyncio.sleep(LOOK_S)


class _Stream(NamedTuple):
    """A connection as what goes through it."""

    comm: Any


def _about(scheduler: Any, limits: Limits) -> dict[str, Any]:
    """What a recording says of where it was made, as one that a client makes does."""
    return {
        "address": address(scheduler),
        **surroundings(),
        "program": "dask scheduler",
        "minutes": limits.minutes,
        "size": limits.size,
    }
