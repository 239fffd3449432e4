"""The shipper: a thread that empties a ring into batches, at most ten times a second.

Hooks append and return; packing happens here, and what a batch is handed to is its only way
out. A message costs its sender, the scheduler and its receiver about a millisecond together, so a
few rows wait for more. Every half second what is there goes, the process is sampled and its
server's loop asked for its lag and for a round trip to the next clock; what can wait comes with
every fourth of these. What waits on a worker is kept ten times a second where a kill does not reach
it (see `tail`): by the worker's loop as long as that comes to its timer, for it wakes anyway, else
by this thread, which wakes more seldom where the loop does it and where few rows come.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from stageprof_runtime import patch, process
from stageprof_runtime.batch import Row, pack_sound
from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.context import phase
from stageprof_runtime.event import MARK, Place
from stageprof_runtime.guard import Watch, attempt, failures
from stageprof_runtime.measured import OFF, SAMPLED
from stageprof_runtime.patch import UNDONE, wrapped
from stageprof_runtime.ring import Ring
from stageprof_runtime.system import EVERY_S
from stageprof_runtime.tail import Tail

#: Seconds between two batches.
PERIOD_S = 0.1
#: Of so many rounds one samples the process and sends sums of short spans.
ROUNDS = round(EVERY_S / PERIOD_S)
#: Rows that are worth a message before the half second is over.
ENOUGH = 1_000
#: One time of so many that a process is sampled, what can wait is done.
SELDOM = 4
#: So many new ones in a round are few: the next lasts twice as long, then the rest of the half
#: second.
FEW = 100
#: The loop that kept what waits so lately, ns, will do so again before the thread has to.
LATELY_NS = round(2 * PERIOD_S * 1e9)
#: Rows of one batch; more rows make more batches, so that none grows without bound.
ROWS = 20_000


def sometimes(job: Callable[[], None]) -> Callable[[], None]:
    """A job for `Shipper.every` that is done the first time, and then one time of `SELDOM`."""
    times = itertools.count()

    def do() -> None:
        if not next(times) % SELDOM:
            job()

    return do


class Shipper:
    """Packs one place's ring and hands the batches to `send`."""

    def __init__(self, place: Place, ring: Ring, send: Callable[[bytes], None]) -> None:
        self.place = place
        self.ring = ring
        self.watches: dict[str, Watch] = {}
        #: called every half second on the shipper's thread
        self.every: list[Callable[[], None]] = []
        #: called by `start` and `drain`, and one time of `SELDOM` that those are
        self.seldom: list[Callable[[], None]] = []
        #: [tasks, assigned, finished] so far
        self.counts = [0, 0, 0]
        #: own cost beside the hooks: name -> [calls, ns]
        self.cost: dict[str, list[int]] = {"ship": [0, 0]}
        #: whether what is sent now would leave; else rows wait in the ring, which is bounded
        self.ready: Callable[[], bool] = lambda: True
        #: whether all that was sent before has left the process
        self.left: Callable[[], bool] = lambda: True
        #: after how many rounds what is there goes, however little it is
        self.rounds: Callable[[], int] = lambda: ROUNDS
        #: what the last batch told of drops and cost
        self._last: tuple[dict[str, int], dict[str, list[int]]] = ({}, {})
        #: what is not sent yet, where a kill does not reach; None: who would take it from there?
        self.tail: Tail | None = None
        #: rows that were taken from the ring and kept there
        self._held: list[Row] = []
        #: whether it tells what the process's wrappers take; else another one does
        self._leads = False
        #: what they take, if it was asked for lately: to ask each of them costs 0.1 ms
        self._wrappers: list[int] | None = None
        #: hook -> what it had done when it was met first
        self._before: dict[Watch, tuple[int, int]] = {}
        self._send = send
        self._watch = Watch(f"{place.role}.ship")
        self._tailing = Watch(f"{place.role}.tail")
        self._seq = self._waited = self._halves = 0
        self._due = 0  # rounds until what is there goes; 0: not asked yet
        #: how many rounds the next one lasts; rows that were there after the last
        self._lasts, self._left = 1, 0
        self._phase = 0
        self._unsent: dict[str, int] = {}
        self._told: set[str] = set()
        self._came = 0  # when the loop came to keep what waits
        self._packing = threading.Lock()
        self._stopped = False
        self._awake = threading.Event()
        name = f"stageprof-shipper-{place.role}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to ship."""
        self._do_seldom()
        self._thread.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Stop the thread; what is left in the ring is for `drain`."""
        self._stopped = True
        self._awake.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def drain(self) -> list[bytes]:
        """Pack all that is in the ring now, and the sums; one batch at least, for its counts."""
        self._do_seldom()
        return self._batches(every=True)

    def _batches(self, *, every: bool) -> list[bytes]:
        with self._packing:
            held, self._held = self._held, []
            rows = held + self.ring.take(sums_too=every)
            self._report_hooks(rows)
            parts = [rows[i : i + ROWS] for i in range(0, len(rows), ROWS)]
            batches = [self._pack(part) for part in parts or [[]][:every]]
            self._keep_sent(batches)
            return batches

    def _run(self) -> None:
        cost = self.cost["ship"]
        while self._slept():
            attempt(self._watch, self._round)
            cost[0] += 1
            cost[1] = thread_ns()  # with what it takes to wake, which is as much

    def _slept(self) -> bool:
        """Sleep for as long as the round lasts, or until `come` finds much; False: it is over."""
        began = now_ns()
        if self._awake.wait(PERIOD_S * self._lasts):
            self._awake.clear()
            self._lasts = min(self._lasts, max(1, round((now_ns() - began) / PERIOD_S / 1e9)))
        return not self._stopped

    def hurry(self) -> None:
        """Have what is done every half second done now."""
        self._due = 1
        self._awake.set()

    def come(self) -> None:
        """Called ten times a second on the worker's loop: keep what is new, if that is quick."""
        if self.tail is None or self._tailing.disabled or not self.tail.is_quick:
            return
        self._came = now_ns()
        if self._worth():
            self._awake.set()
        elif self._packing.acquire(blocking=False):
            try:
                self._keep_new(self.tail)
            finally:
                self._packing.release()

    def _round(self) -> None:
        self._waited += self._lasts
        self._due = self._due or self.rounds()
        every, worth = self._waited >= self._due, self._worth()
        few = not worth and self._waiting() - self._left < FEW
        if every:
            self._waited, self._due = 0, self.rounds()
            for job in self.every:
                attempt(self._watch, job)
            self._halves += 1
            if not self._halves % SELDOM:
                self._do_seldom()
        if (every or worth) and self.ready():
            for batch in self._batches(every=every):
                self._send(batch)
        else:
            self._keep()
        self._left = self._waiting()
        self._lasts = self._longer(few=few)

    def _do_seldom(self) -> None:
        self._wrappers = None
        for job in self.seldom:
            attempt(self._watch, job)

    def _waiting(self) -> int:
        return len(self._held) + len(self.ring)

    def _keep(self) -> None:
        """Keep what is new where a kill does not reach it; beyond what is sent at once, none."""
        if self.tail is not None and not self._tailing.disabled:
            with self._packing:
                self._keep_new(self.tail)

    def _keep_new(self, tail: Tail) -> None:
        if len(self._held) < ENOUGH:
            rows = self.ring.take(sums_too=False)
            self._held += rows
            sums = self.ring.sums_so_far() if rows else []
            attempt(self._tailing, tail.keep, rows, sums)

    def _keep_sent(self, batches: list[bytes]) -> None:
        if self.tail is not None and batches and not self._tailing.disabled:
            attempt(self._tailing, self._leave_to, self.tail, batches)

    def carry(self, batches: list[bytes]) -> None:
        """Send batches of others, and keep them as our own until they have left."""
        with self._packing:
            if self.tail is not None and not self._tailing.disabled:
                attempt(self._tailing, self.tail.carry, batches)
        for batch in batches:
            self._send(batch)

    def _leave_to(self, tail: Tail, batches: list[bytes]) -> None:
        told = self._seq, *self._last, self._phase, self.counts
        tail.sent(batches, *told, left=self.left())

    def _longer(self, *, few: bool) -> int:
        """How many rounds the next lasts; more than one where few rows come, or the loop does."""
        rest = max(1, min(self._due - self._waited, ROUNDS))
        if self.tail is not None:
            return rest if now_ns() - self._came < LATELY_NS else 1
        if not few:
            return 1
        return rest if self._lasts > 1 else min(rest, 2)

    def _worth(self) -> bool:
        """Whether many rows wait, or something is to be told at once.

        Which is that the place is there, and that a long step has begun or ended.
        """
        first, step = self._seq == 0, phase.get(self.place.role, 0)
        return first or self._waiting() >= ENOUGH or step != self._phase

    def _pack(self, rows: list[Any]) -> bytes:
        seq, self._seq = self._seq, self._seq + 1
        watches = [watch for watch in list(self.watches.values()) if watch.calls]
        cost = {watch.name: self._since(watch) for watch in watches} | self.cost
        if self._leads:
            self._wrappers = known = self._wrappers or self._of_wrappers()
            cost["wrappers"] = known
        now = self._phase = phase.get(self.place.role, 0)
        told = {"cost": cost, "now": now, "counts": self.counts}
        batch, lost = pack_sound(self.place, seq, now_ns(), rows, self._drops(), **told)
        for reason, n in lost.items():
            self.lost(reason, n)
        self._last = self._drops(), cost
        return batch

    def _since(self, watch: Watch) -> list[int]:
        """Calls of a hook, and ns that it took, in this session: others may have begun before."""
        now = watch.calls, watch.spent_ns + watch.beside_ns
        older = watch.began < self.place.life
        before = self._before.setdefault(watch, now if older else (0, 0))
        return [max(0, n - b) for n, b in zip(now, before, strict=True)]

    def lead(self, watches: dict[str, Watch]) -> None:
        """Tell, from now on, what wrappers and `watches` of the process take, if this tells of it.

        Others may be in the process for the same session; one of them does.
        """
        if process.is_first(self.ring):
            self._leads = True
            self.watches |= watches
            self._of_wrappers()  # what they have done so far is not ours

    def _of_wrappers(self) -> list[int]:
        each = [self._since(watch) for watch in patch.wrappers()]
        return [sum(calls for calls, _ in each), sum(ns for _, ns in each)]

    def lost(self, reason: str, rows: int) -> None:
        """Count rows that will not arrive."""
        self._unsent[reason] = self._unsent.get(reason, 0) + rows

    def _drops(self) -> dict[str, int]:
        for reason, n in failures().items():
            self.lost(reason, n)
        full = {"ring full": self.ring.dropped} if self.ring.dropped else {}
        return self._unsent | full

    def _report_hooks(self, rows: list[Any]) -> None:
        """Say once, as marks, which hooks are disabled or sampled and which probes are missing."""
        there = [w for w in list(wrapped.values()) if not 0 < w.ended < self.place.life]
        watches = [*list(self.watches.values()), self._tailing, *there]
        news = {w.name: w.disabled or SAMPLED for w in watches if w.disabled or w.sampled}
        for name, why in (news | process.failed).items():
            if why == UNDONE:
                continue
            if f"{name}{why}" not in self._told:
                self._told.add(f"{name}{why}")
                rows.append((MARK, now_ns(), OFF, f"{name}: {why}"))
