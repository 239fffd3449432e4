"""The hops of the critical path: what may be going on in each, and what it is otherwise.

A hop is a window between two known instants. Layers of spans say what was done there, in order
of precedence; what they leave is the hop's own step. Hops of a run depend on its worker and
scheduler only, so they are made once for each pair.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import given_back
from stageprof_collectors.account.block import SCATTER, STILL, Block
from stageprof_collectors.account.graph import untaken
from stageprof_collectors.account.intervals import innermost
from stageprof_collectors.account.lane import Lane, Lanes, What
from stageprof_collectors.account.stalls import stalls
from stageprof_collectors.account.timeline import Ints, Timeline
from stageprof_collectors.account.turns import turns
from stageprof_runtime.coordination import WAITS
from stageprof_runtime.event import LOCK
from stageprof_runtime.stage import OUTSIDE, STEP, STEPS, UNEXPLAINED

#: Layers in order of precedence, and what they leave.
Hop = tuple[list[Lane], What]

#: Calls of a client that run the caller's own function on servers, in older recordings; what of any
#: other call no task explains is its messages.
UNSEEN = frozenset({"_run", "_run_on_scheduler", "_run_coroutine", "_run_async"})

#: Codes of steps of the six stages.
_STEPS = range(OUTSIDE + 1, len(STEPS))

P = ParamSpec("P")


def _once(make: Callable[..., Hop]) -> Callable[..., Hop]:
    """Keep a hop by its arguments."""

    def kept(self: Any, *key: Any) -> Hop:
        cache: dict[Any, Hop] = self.__dict__.setdefault("_kept", {})
        name = (make.__name__, *key)
        if name not in cache:
            cache[name] = make(self, *key)
        return cache[name]

    return kept


class Hops:
    """The hops of one timeline; `worker`, `scheduler` and `client` are indices of places."""

    def __init__(self, timeline: Timeline, lanes: Lanes) -> None:
        self._t = timeline
        self._lanes = lanes

    @cached_property
    def _workers(self) -> dict[int, None]:
        return dict.fromkeys(self._of_role("worker"))

    def _of_role(self, role: str) -> list[int]:
        return [i for i, place in enumerate(self._t.store.places) if place.role == role]

    @cached_property
    def _turns(self) -> dict[int, Lane]:
        return turns(self._t).lanes()

    @cached_property
    def _stalls(self) -> dict[int, Lane]:
        return stalls(self._t)

    @cached_property
    def _unspilling(self) -> Lane:
        """Workers that read what they had spilled."""
        return self._lanes.step(self._workers, STEP["spill.read"])

    # -- of a blocking call -------------------------------------------------------------------

    @_once
    def waking(self, client: int) -> Hop:
        """Results were fetched; the caller wakes up."""
        return [self._lanes.bytes_work(client)], What(STEP["result.gather"], client)

    @_once
    def gathering(self, client: int) -> Hop:
        """Results come from the workers to the client."""
        load = STEP["result.load"], STEP["decompress"]
        dump = STEP["result.dump"], STEP["compress"], STEP["spill.read"]
        layers = [self._lanes.step([client], *load), self._lanes.step(self._workers, *dump)]
        layers.append(self._lanes.loop(client))
        return layers, What(STEP["result.gather"], client)

    @_once
    def acting(self, client: int) -> Hop:
        """An actor was called: its arguments went there, and what it gave came back."""
        there = STEP["data.load"], STEP["result.dump"], STEP["compress"], STEP["decompress"]
        here = STEP["data.dump"], STEP["result.load"], STEP["compress"], STEP["decompress"]
        layers = [self._lanes.soft(p, STEP["compute"]) for p in self._workers]
        layers += [self._lanes.step([client], *here), self._lanes.step(self._workers, *there)]
        return layers, What(STEP["result.gather"], client)

    @_once
    def scattering(self, client: int) -> Hop:
        """Data go from the client to the workers, by way of the scheduler or not."""
        others = [i for i in range(len(self._t.store.places)) if i != client]
        layers = [self._lanes.step(others, STEP["data.load"])]
        # The client's loop hashes it, and has a thread of its own dump what is large.
        layers += [self._lanes.step([client], STEP["tokenize"]), self._lanes.bytes_work(client)]
        layers.append(self._lanes.loop(client))
        return layers, What(STEP["data.transfer"], client)

    @_once
    def exchanging(self, worker: int) -> Hop:
        """A task of a P2P exchange waits until pieces have gone to the other workers."""
        others = [place for place in self._workers if place != worker]
        bytes_ = STEP["data.dump"], STEP["data.load"], STEP["compress"], STEP["decompress"]
        layers = [self._lanes.bytes_work(worker), self._lanes.step(others, *bytes_)]
        return layers, What(STEP["data.transfer"], worker)

    def moving(self, block: Block) -> Hop:
        """Data are scattered, or exchanged."""
        return (self.scattering if block.call == SCATTER else self.exchanging)(block.place)

    def otherwise(self, block: Block) -> Hop:
        """What of a blocking call nothing else explains."""
        if block.call == "under way":
            return [self._keyless], What(UNEXPLAINED, block.place)
        if block.call == LOCK:  # what the other threads do beside it is the user's own
            return [], What(OUTSIDE, block.place)
        if block.call.startswith(WAITS):
            return [], What(STEP["wait.resource"], block.place)
        step = UNEXPLAINED if block.call in UNSEEN else STEP["result.gather"]
        return [], What(step, block.place)

    def busy(self, block: Block) -> Hop | None:
        """What a scheduler was at when a call ended before its graph was there; None: who knows."""
        if block.awaited != STILL and not (block.gave_up and self._untaken):
            return None
        now = {p: self._t.store.origins[p].now for p in self._of_role("scheduler")}
        for place in (p for p in now if now[p] in _STEPS):
            return [self._lanes.all(place)], What(now[place], place)
        return self.taking_in(min(now)) if now and self._untaken else None

    @cached_property
    def _untaken(self) -> bool:
        return untaken(self._t) is not None

    @cached_property
    def _keyless(self) -> Lane:
        """Tasks from before the recording, of which only that they ran is known."""
        compute = STEP["compute"]
        return innermost((a, b, What(compute, place)) for a, b, place in self._t.keyless)

    # -- of a run, from its end to its beginning ----------------------------------------------

    @_once
    def notified(self, scheduler: int, client: int) -> Hop:
        """The scheduler tells the client that a key is done."""
        layers = [self._lanes.loop(scheduler), self._lanes.bytes_work(client)]
        return [*layers, self._stalls.get(scheduler, [])], What(STEP["result.gather"], client)

    @_once
    def running(self, worker: int, _scheduler: int = -1) -> Hop:
        """The recording ended first: all that is known is that a worker had the task."""
        return [], What(STEP["compute"], worker)

    def _worker(self, worker: int) -> list[Lane]:
        """What a worker's event loop did, a task's coroutine included, which may have kept it."""
        return [self._lanes.loop(worker), self._turns.get(worker, [])]

    def _scheduler(self, scheduler: int) -> list[Lane]:
        """What a scheduler's event loop did, and when it could do nothing."""
        return [self._lanes.loop(scheduler), self._stalls.get(scheduler, [])]

    @_once
    def reporting(self, worker: int, scheduler: int) -> Hop:
        """The function has ended; the worker stores the result and tells the scheduler."""
        layers = [*self._worker(worker), *self._scheduler(scheduler)]
        return layers, What(STEP["task.send"], worker)

    @_once
    def starting(self, worker: int, _scheduler: int) -> Hop:
        """The task is ready; a thread takes it."""
        return self._worker(worker), What(STEP["wait.thread"], worker)

    @_once
    def allotting(self, worker: int, _scheduler: int) -> Hop:
        """The task is ready but for a resource of its worker that others have."""
        return self._worker(worker), What(STEP["wait.resource"], worker)

    @_once
    def held(self, scheduler: int, name: int, needs: int) -> Hop:
        """A worker had the task, and it was taken back before it ran: nobody says why it waited.

        Its thread had another, or what it needed was under way, or its message was. `name`: the
        text of the worker's address; `needs`: 1 if it needed another's result.
        """
        worker = self._by_name.get(name, -1)
        if worker < 0:
            return [], What(STEP["wait.thread"], worker)
        runs, mine = self._t.runs, self._t.at.of(worker)
        times = [*zip(runs["start"][mine].tolist(), runs["stop"][mine].tolist(), strict=True)]
        times += () if needs else self._went_on(name)
        busy = innermost((a, b, What(STEP["wait.thread"], worker)) for a, b in times)
        fetching, moved = self.fetching(worker, scheduler, name)
        sending, sent = self.sending(worker, scheduler)
        return [*(fetching if needs else sending), busy], moved if needs else sent

    def _went_on(self, name: int) -> list[tuple[int, int]]:
        """From when to when a worker had tasks of which no end is known but the worker's own."""
        runs, rows = self._t.runs, self._untold
        mine = rows[runs["worker"][rows] == name]
        ended = runs["finished"][mine]
        stop = np.where(ended > 0, ended, self._t.region.stop)
        return list(zip(runs["assigned"][mine].tolist(), stop.tolist(), strict=True))

    @cached_property
    def _untold(self) -> Ints:
        """Runs that no worker told of and that were not given back."""
        found: Ints = np.flatnonzero((self._t.runs["seen"] == 0) & ~self._given_back)
        return found

    def gave_back(self, run: int) -> bool:
        """Whether a worker had a run that never was."""
        return bool(self._given_back[run])

    @cached_property
    def _given_back(self) -> NDArray[np.bool_]:
        return given_back(self._t.runs)

    def needs(self, run: int) -> int:
        """1 if a run needed another's result."""
        first = self._t.depends.first
        return int(first[run + 1] > first[run])

    @cached_property
    def _by_name(self) -> dict[int, int]:
        """Workers that were seen, by the text of their address."""
        texts, places = self._t.store.strings, self._t.store.places
        known = {places[i].name: i for i in self._workers}
        return {n: known[text] for n, text in enumerate(texts) if text in known}

    @_once
    def fetching(self, worker: int, _scheduler: int, name: int) -> Hop:
        """Dependencies come from other workers; `name` is the text of the worker's address."""
        if worker < 0:  # not instrumented, or lost: all that is known is that it had the task
            return [], What(STEP["compute"], worker)
        step = STEP["data.dump"]
        others = [p for p in self._lanes.naming(step, name) if p in self._workers and p != worker]
        layers = [
            self._lanes.bytes_work(worker),
            *self._worker(worker),
            self._lanes.step(others, step, label=name),
            self._unspilling,
            self._lanes.soft(worker, STEP["connect"]),
        ]
        return layers, What(STEP["data.transfer"], worker)

    @_once
    def sending(self, worker: int, scheduler: int) -> Hop:
        """The scheduler's message brings the task to the worker."""
        bytes_ = STEP["task.dump"], STEP["compress"]
        layers = [
            self._lanes.bytes_work(worker),
            self._lanes.step([scheduler], *bytes_),
            *self._worker(worker),
            *self._scheduler(scheduler),
        ]
        return layers, What(STEP["task.send"], scheduler)

    @_once
    def placing(self, _worker: int, scheduler: int) -> Hop:
        """What led to the run has happened; the scheduler places it."""
        return [self._lanes.loop(scheduler)], What(STEP["place"], scheduler)

    @_once
    def local(self, client: int) -> Hop:
        """Anything between tasks of a local scheduler is its loop."""
        return [], What(STEP["local.loop"], client)

    # -- of a graph ---------------------------------------------------------------------------

    @_once
    def taking_in(self, scheduler: int) -> Hop:
        """The scheduler makes tasks of a graph."""
        return [self._lanes.all(scheduler)], What(STEP["place"], scheduler)

    @_once
    def handing_over(self, client: int, scheduler: int) -> Hop:
        """The graph goes from the client to the scheduler."""
        layers = [self._lanes.bytes_work(client), self._lanes.all(scheduler)]
        return [*layers, self._stalls.get(scheduler, [])], What(STEP["graph.send"], client)
