"""The hook that is told of each change of a task's state on a worker.

It notes two instants of a task in a dict and returns; the task's row is emitted by the thread that
ran it.
"""

from __future__ import annotations

from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import ran_ns, resources, run_id
from stageprof_runtime.event import MARK, RESOURCE
from stageprof_runtime.guard import TIMED, Watches, guard
from stageprof_runtime.probes import execution
from stageprof_runtime.process import EMIT
from stageprof_runtime.ring import Ring

#: States that a task enters on its way to its run of which the instant is noted: when it came, and
#: when its dependencies were there.
_COMES = frozenset({"waiting", "ready", "constrained"})
#: States that it leaves with its run, or without one; the others are not looked at.
_ENDS = frozenset({*_COMES, "executing", "long-running", "cancelled"})
_RUNNING = frozenset({"executing", "long-running"})
#: Where a running task goes whose function goes on: it left its thread to others, or its result is
#: not wanted any more.
_GOES_ON = frozenset({"long-running", "released"})
#: The mark that a run left its thread to others (`secede`); its label is the run's number.
LEFT = "left its thread"


class States(WorkerPlugin):
    """The hook of one worker for one session.

    A subclass sets what it needs before Dask knows the plugin.
    """

    _worker: Any
    _ring: Ring

    def __init__(self) -> None:
        self._times = execution.pending
        self.watches = Watches("worker")
        self._transition = self.watches["transition"]
        self._hook = guard(self._note, self._transition)

    def transition(self, key: Any, start: Any, finish: Any, **kwargs: Any) -> None:
        """When a task came and had its dependencies, and the end of one that no probe saw run."""
        if finish not in _COMES and (
            start not in _ENDS or finish == "executing" or key not in self._times
        ):
            return
        watch = self._transition
        calls = watch.calls + 1
        if calls % TIMED and not watch.disabled and not watch.sampled:
            watch.calls = calls  # as `_hook` does, in one call less
            try:
                self._note(key, start, finish)
            except BaseException as error:
                watch.failed(error)
        else:
            self._hook(key, start, finish)

    def _note(self, key: Any, start: str, finish: str) -> None:
        if finish in _COMES:
            t = now_ns()
            came = self._times.get(key) if finish != "waiting" else None
            self._times[key] = (came[0], t) if came else (t, t)
            if finish == "constrained":
                self._constrained(key)
        elif start in _RUNNING:
            if finish not in _GOES_ON:
                self._ended(key)
            elif finish == "long-running":
                self._ring.emit((MARK, now_ns(), LEFT, str(run_id(self._worker, key))))
        elif finish == "released" or finish == "forgotten":
            self._times.pop(key, None)  # stolen or cancelled before it ran

    def _constrained(self, key: Any) -> None:
        """It waits for a resource of its worker's, and perhaps for a thread as well."""
        needs = resources(self._worker, key)
        self._ring.emit((RESOURCE, run_id(self._worker, key), needs))

    def _ended(self, key: Any) -> None:
        """A run that no probe saw (an executor of its own): it took what Dask says, and is over."""
        times = self._times.get(key)  # the task's own thread may have taken it just now
        if times is not None:
            t, ran = now_ns(), ran_ns(self._worker, key)
            start = t - ran if ran else times[1]
            execution.finished(EMIT, self._worker, key, start, t, 0, 0)
