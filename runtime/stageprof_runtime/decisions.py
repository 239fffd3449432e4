"""What a scheduler decides: which worker a task is given to, and what it makes of a run's end.

Each run has a cause: what happened last before the scheduler gave the task to a worker, which is
another run's end or a graph that came. A run is of the graph that brought its task, which is said
where its cause is of another one.
"""

from __future__ import annotations

from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.scheduler import KilledWorker

from stageprof_runtime.belonging import Belonging
from stageprof_runtime.clock import now_ns
from stageprof_runtime.ending import LOST, status_of
from stageprof_runtime.event import ASSIGN, DEPEND, FINISH, MARK, NO_CAUSE, OWNER, RUN, WANT
from stageprof_runtime.graphs import UNSEEN, taken
from stageprof_runtime.guard import TIMED, Watches, guard, hook
from stageprof_runtime.needs import FEW, MOST, needed, spread
from stageprof_runtime.probes import failure
from stageprof_runtime.ring import Ring

#: How a task ends that is done; any other way it goes on, or is not wanted any more.
_DONE = frozenset({"memory", "erred"})


class Decisions(SchedulerPlugin):
    """The hooks that tell of one scheduler's decisions for one session.

    A subclass sets what they need before Dask knows the plugin.
    """

    _scheduler: Any
    _ring: Ring
    #: [tasks, assigned, finished] so far
    _counts: list[int]
    #: workers that tell of their runs themselves
    _relayed: dict[str, int]

    def __init__(self, session: str) -> None:
        self._session = session
        self.watches = Watches("scheduler")
        self._transition = self.watches["transition"]
        self._hook = guard(self._note, self._transition)
        #: the last thing that happened: a run that ended, or -1 - graph
        self._cause = NO_CAUSE
        #: the key of that run
        self._cause_key: Any = None
        self._belonging = Belonging()
        #: the graph of the cause; -1: of one that was not seen, None: unknown
        self._cause_graph: int | None = -1
        #: tasks that were given up
        self._killers = 0

    def transition(self, key: Any, start: Any, finish: Any, *args: Any, **kwargs: Any) -> None:
        """A task was given to a worker, or its run ended."""
        if start == "processing" or finish == "processing":
            watch = self._transition
            calls = watch.calls + 1
            if calls % TIMED and not watch.disabled and not watch.sampled:
                watch.calls = calls  # as `_hook` does, in one call less
                try:
                    self._note(key, start, finish, kwargs)
                except BaseException as error:
                    watch.failed(error)
            else:
                self._hook(key, start, finish, kwargs)

    def _note(self, key: Any, start: str, finish: str, details: dict[str, Any]) -> None:
        """Five microseconds a task are allowed here for both calls: no detours."""
        task, ring = self._scheduler.tasks[key], self._ring
        emit = ring.append if len(ring.rows) < ring.roomy else ring.emit
        if finish == "processing":
            worker = task.processing_on
            address = worker.address if worker else ""
            run, cause = task.run_id, self._cause
            emit((ASSIGN, run, now_ns(), address, cause, key))
            self._counts[1] += 1
            if self._belonging.of is not None:
                self._owned(emit, run, key)
            if task.dependencies:
                self._needs(run, cause, task.dependencies)
            elif cause >= 0:
                emit((DEPEND, run, -1))
            return
        t = now_ns()
        self._cause = run = task.run_id
        self._cause_key = key
        if finish in _DONE:
            self._counts[2] += 1
        else:  # it will be assigned again, or is wanted no more
            self._counts[1] -= 1
            self._counts[0] -= not (task.who_wants or task.waiters)
        if self._belonging.of is not None:
            self._cause_graph = self._belonging.of.get(key, self._belonging.others)
        status = 0 if finish == "memory" else status_of(finish, str(details.get("stimulus_id", "")))
        if task.who_wants:
            emit((WANT, run, t, key))
        worker = details.get("worker")
        if worker and worker not in self._relayed:
            self._estimate(run, t, worker, details.get("startstops") or ())
        nbytes, kind = details.get("nbytes") or 0, details.get("typename") or ""
        emit((FINISH, run, t, status, nbytes, kind))
        if finish == "erred":
            self._given_up(key, t, str(details.get("stimulus_id", "")))

    def _given_up(self, key: Any, t: int, stimulus: str) -> None:
        """A task went with so many workers that it is tried no more: no worker tells of that."""
        if stimulus.startswith(LOST) and self._killers < failure.MOST:
            self._killers += 1
            label = failure.label(key, KilledWorker.__name__)
            self._ring.emit((MARK, t, failure.NAME, label))

    def _owned(self, emit: Any, run: int, key: Any) -> None:
        """Say whose a run is, if it is not what its cause is."""
        belonging = self._belonging
        graph = belonging.of.get(key, belonging.others) if belonging.of is not None else None
        if graph is not None and graph != self._cause_graph:
            emit((OWNER, run, graph))

    def _needs(self, run: int, cause: int, tasks: Any) -> None:
        """Say which runs a run needed; fewer of many, and of all where the ring fills up."""
        most = FEW if len(tasks) <= FEW else min(MOST, self._ring.room() >> 6)
        runs = [task.run_id for task in spread(tasks, most)]
        if len(tasks) > most and cause not in runs:
            last = self._scheduler.tasks.get(self._cause_key)
            runs += [cause] if last in tasks else []
        needed(self._ring.emit, run, cause, runs)

    def _estimate(self, run: int, t: int, worker: str, startstops: Any) -> None:
        """A run on a worker without stageprof: its length is the worker's, its end is now."""
        for part in startstops:
            if part["action"] == "compute":
                start = t - int((part["stop"] - part["start"]) * 1e9)
                self._ring.emit((RUN, run, start, start, start, t, 0, 0, worker))

    @hook
    def update_graph(self, scheduler: Any, **kwargs: Any) -> None:
        """The state of a graph's tasks has been made; what follows is because of it."""
        facts = taken(self._session)
        number = facts[0]
        self._cause = -1 - number
        self._cause_graph = graph = -1 if number == UNSEEN else number
        brought = self._belonging.took(scheduler, graph, kwargs.get("tasks") or ())
        self._counts[0] += brought
        facts[1:] = [facts[1] or brought, len(kwargs.get("keys") or ())]
