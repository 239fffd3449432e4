"""This process's side of the watch: starts it, tells it which threads there are, takes what it saw.

A thread of ours does all of it; it sleeps in a read, so that the process's work is not delayed.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import threading
from collections.abc import Callable
from typing import Any, Final

from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.descriptor import Descriptor
from stageprof_runtime.event import HOLD, MARK, SAMPLE
from stageprof_runtime.gil.messages import (
    COST,
    INTERVAL,
    NATIVE,
    RECORD,
    REST,
    RESTED,
    SUMS,
    TASKS,
    TEXT,
)
from stageprof_runtime.gil.permission import allow, allowed_no_more
from stageprof_runtime.gil.pipes import Pipes
from stageprof_runtime.gil.program import command, modules
from stageprof_runtime.gil.rows import stood, unseen
from stageprof_runtime.gil.state import GilState, NeverGil, NoGil, find
from stageprof_runtime.gil.unwound import stacks_of
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.patch import Emit
from stageprof_runtime.probes.stacks import running
from stageprof_runtime.ring import Ring

#: Looks each second while threads wait for one another.
RATE: Final = 100
#: Seconds that the watch is given to end.
PATIENCE_S: Final = 4.0
#: It says something more often than this, in seconds, as long as there is a pipe.
SILENT_S: Final = 2.0
#: A process has one GIL: what is known of it goes to each session's first ring, whatever its role.
ANY: Final = "any"
#: What the source of the numbers begins with where there is no watch.
TICKER: Final = "ticker: "
#: Our own threads: they are not asked whether they wait.
OURS: Final = "stageprof-"


class Watcher:
    """Keeps a watch on this process from `start` to `stop`."""

    def __init__(self, emit: Emit, *, rate: int = RATE) -> None:
        self._emit = emit
        #: whether C frames are wanted while tasks run; see `probes.native`
        self.native = False
        #: why none are seen though there is a watch; and whether what was seen of them is told
        self.unseen = ""
        self.rested = threading.Event()
        #: why there is no watch
        self._why: Exception | None = None
        self._rate = rate
        self._pid = os.getpid()
        self._child: subprocess.Popen[bytes] | None = None
        self._pipes: Pipes | None = None
        self._told: dict[int, int] = {}
        self._what = ""
        self._names: dict[int, str] = {}
        self._tasks = False
        self._over = threading.Event()
        #: what ends the thread's sleep: read end, write end
        self._bell = tuple(map(Descriptor, os.pipe()))
        #: what this side of it costs, the program itself, and py-spy
        self.watches = [Watch("gil"), Watch("gil.watch"), Watch("gil.py-spy")]
        #: called if nothing can be seen from outside
        self.instead: Callable[[], None] = lambda: None
        work = (self.watches[0], self._run)
        self._thread = threading.Thread(target=attempt, args=work, name=f"{OURS}gil", daemon=True)

    def start(self) -> None:
        """Begin; returns when the watch does.

        Not left to the thread: beside tasks that hold the GIL it would take seconds there.
        """
        self._source("watch")
        try:
            self._child = self._begin(find())
        except (NoGil, OSError, ValueError) as error:
            self._why = error
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it was told to end."""
        return self._over.is_set()

    def end(self) -> bool:
        """Tell it to end; whether it has."""
        if not self._over.is_set():
            self._over.set()
            bell = self._bell[1].number
            if bell >= 0:
                os.write(bell, b".")
        return not self._thread.is_alive()

    def rest(self) -> None:
        """Have no C frames looked at any more; `rested` once what was seen of them is told."""
        self.native = False
        if os.getpid() != self._pid or self._pipes is None:
            self.rested.set()
            return
        self.rested.clear()
        try:
            self._pipes.write(REST + b"\n")
        except OSError:  # it has ended
            self.rested.set()

    def stop(self) -> None:
        """End the watch and take what it saw last; nothing of it is left when it returns."""
        if os.getpid() != self._pid:
            self._forked()
            return
        self.end()
        if self._thread.is_alive():
            self._thread.join(PATIENCE_S)
        child = self._child
        if child is not None and child.poll() is None:
            child.kill()
            child.wait()
        for end in self._bell:
            end.close()

    def _forked(self) -> None:
        """In a forked child: watch and thread are its parent's; what was inherited is closed."""
        self._child, pipes, self._pipes = None, self._pipes, None
        if pipes is not None:
            pipes.close()
        bell, self._bell = self._bell, ()
        for end in bell:
            end.close()

    def _run(self) -> None:
        child, pipes = self._child, self._pipes
        if isinstance(self._why, NeverGil):
            self._source(f"{TICKER}{self._why}")  # which would have nothing to ask for
            return
        if child is None or pipes is None:
            self._refused(str(self._why))
            return
        attempt(self.watches[0], self._listen, pipes)
        pipes.hang_up()
        child.wait()
        said = pipes.last_words()
        pipes.close()
        allowed_no_more()
        if child.returncode or not self._over.is_set():
            self._refused(said or f"the watch ended with status {child.returncode}")

    def _begin(self, state: GilState) -> subprocess.Popen[bytes]:
        program = modules()
        words = command(len(program), os.getpid(), state, self._rate)
        pipe = subprocess.PIPE
        # In a group of its own: a Ctrl-C is for the program, which may go on after it.
        child = subprocess.Popen(  # noqa: S603
            words, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, process_group=0
        )
        allow(child.pid)
        self._pipes = Pipes(child)
        with contextlib.suppress(OSError):  # it has ended, and says why
            self._pipes.write(program)
        return child

    def _source(self, what: str) -> None:
        """Say what the numbers of the GIL come from from now on."""
        self._what = what[:300]
        self._emit.row(ANY, (MARK, now_ns(), "gil source", self._what))

    @property
    def blind(self) -> str:
        """Why nothing of the process can be seen from outside; "" if it can."""
        return self._what.removeprefix(TICKER) if self._what.startswith(TICKER) else ""

    def tell(self, ring: Ring) -> None:
        """Say what a session that begins now has missed: the source, and the threads' names."""
        ring.emit((MARK, now_ns(), "gil source", self._what))
        for label in tuple(self._names.values()):
            ring.emit((MARK, now_ns(), "thread", label))

    def _refused(self, reason: str) -> None:
        self._source(f"{TICKER}{reason}")
        if not self._over.is_set():
            self.instead()

    # -- what it is told --------------------------------------------------------------------

    def _introduce(self, pipes: Pipes) -> None:
        """Tell which threads have come."""
        now = {t.native_id: t for t in threading.enumerate() if t.native_id and t.ident}
        news = [n for n, t in now.items() if self._told.get(n) != t.ident]
        lines = "".join(
            f"{n} {now[n].ident} {int(not now[n].name.startswith(OURS))}\n" for n in news
        )
        self._told = {n: t.ident or 0 for n, t in now.items()}
        self._names = {n: f"{t.ident} {t.name}"[:200] for n, t in now.items()}
        if not self._tasks and len(running) > 1:
            self._tasks = True
            lines += f"{TASKS.decode()}\n"
        if self.native and running:
            lines += f"{NATIVE.decode()}\n"
        if lines:
            pipes.write(lines.encode())
        for n in news:
            self._emit.row(ANY, (MARK, now_ns(), "thread", self._names[n]))

    # -- what it says -----------------------------------------------------------------------

    def _listen(self, pipes: Pipes) -> None:
        """Take what it says until it ends; without a file more, which a program might close."""
        said, bell = b"", self._bell[0].number
        with selectors.PollSelector() as waiting:
            waiting.register(pipes.out, selectors.EVENT_READ)
            waiting.register(bell, selectors.EVENT_READ)
            self._introduce(pipes)
            while pipes.out >= 0:
                ready = [key.fileobj for key, _ in waiting.select(SILENT_S)]
                if bell in ready:
                    waiting.unregister(bell)
                if self._over.is_set():
                    pipes.hang_up()
                if pipes.out in ready:
                    chunk = pipes.read()
                    if not chunk:
                        break
                    said = self._heard(said + chunk)
                    if not self._over.is_set():
                        self._introduce(pipes)

    def _heard(self, said: bytes) -> bytes:
        """Emit what whole records say; returns what is left."""
        taken = self._take(said)
        self.watches[0].calls += 1
        self.watches[0].beside_ns = thread_ns()
        return said[taken:]

    def _take(self, said: bytes) -> int:
        """Emit what whole records say; how many bytes they took."""
        at = 0
        while at + RECORD.size <= len(said):
            kind, *numbers = RECORD.unpack_from(said, at)
            size = RECORD.size + (numbers[0] if kind == TEXT else 0)
            if at + size > len(said):
                break
            self._record(kind, numbers, said[at + RECORD.size : at + size])
            at += size
        return at

    def _record(self, kind: int, numbers: list[int], text: bytes) -> None:
        if kind == INTERVAL:
            self._emit.row(ANY, (HOLD, *numbers))
        elif kind == SUMS and numbers[0]:
            now, looks, held, waiting = now_ns(), *numbers[:3]
            self._emit.row(ANY, (SAMPLE, now, "gil.contention", held / looks))
            self._emit.row(ANY, (SAMPLE, now, "gil.waiting", waiting / looks))
            self.watches[1].calls += looks
        elif kind == COST:
            self._spent(*numbers)
        elif kind == TEXT:
            self._words(json.loads(text))

    def _spent(self, own: int, spied: int, late: int, dropped: int) -> None:
        """What the watch has used of a processor so far; it is no hook and has no budget."""
        for watch, ns in zip(self.watches[1:], (own, spied), strict=True):
            watch.calls = max(watch.calls, int(ns > 0))
            watch.beside_ns = ns
        if dropped:
            self._emit.row(ANY, (MARK, now_ns(), "gil dropped", str(dropped)))

    def _words(self, said: dict[str, Any]) -> None:
        if "refused" in said:
            self._emit.row(ANY, (MARK, now_ns(), "gil holders", said["refused"][:300]))
        elif "blind" in said:
            self.unseen = said["blind"]
            self._emit.row(ANY, unseen(self.unseen))
        elif RESTED in said:
            self.rested.set()
        elif "nodes" in said:
            for stack, looks in stacks_of(said):
                self._emit.native(stack, looks)
            if said["cut"]:
                self._emit.row(ANY, (SAMPLE, now_ns(), "stacks.cut", float(said["cut"])))
        else:
            for row in stood(said):
                self._emit.row(ANY, row)
