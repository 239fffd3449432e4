"""One computation of a local scheduler: what it submits, and what comes back of it.

A task gets a run number of its own; the rows are those of a cluster whose scheduler and workers
are this process, so the account is the same.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from threading import get_ident
from typing import Any, Final, cast

from dask.local import MultiprocessingPoolExecutor

from stageprof_runtime.batch import Row
from stageprof_runtime.carried import share
from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.compat import INLINE, identity
from stageprof_runtime.context import within
from stageprof_runtime.elsewhere import timed_batch
from stageprof_runtime.event import ASSIGN, DEPEND, FINISH, POOLED, RESULT, RUN, SPAN
from stageprof_runtime.guard import Watch, attempt, caught
from stageprof_runtime.needs import needed, spread
from stageprof_runtime.patch import Emit, wrapped
from stageprof_runtime.probes import failure, stacks
from stageprof_runtime.probes.shares import NODES
from stageprof_runtime.scales import Scales, waited
from stageprof_runtime.shield import shield
from stageprof_runtime.stage import STEP, Stage

#: Run and graph numbers begin far from those of any scheduler.
_runs = itertools.count(2**40)
_graphs = itertools.count(2**40)

#: [tasks, assigned, finished] on the local schedulers since they are observed, for the live view
counts = [0, 0, 0]

#: What the hook around each task is called in the coverage.
_SUBMIT: Final = "local.submit"

_POOLS: Final = (ProcessPoolExecutor, MultiprocessingPoolExecutor)
#: (start, stop, thread, cpu, pid, failed, [(step, start, stop), ...]) of one task; `failed` is
#: "" or what it raised, as in `failure.label`
Times = tuple[int, int, int, int, int, str, list[tuple[int, int, int]]]


def begin() -> None:
    """Local schedulers are observed from now on: nothing is counted, and no hook put away."""
    counts[:] = [0, 0, 0]
    wrapped[_SUBMIT] = Watch(_SUBMIT)


class Computation:
    """One computation of a local scheduler: what it submits and what comes back."""

    def __init__(self, emit: Emit, submit: Callable[..., Future[Any]]) -> None:
        self.emit = emit
        self._submit = submit
        self._watch = wrapped[_SUBMIT]
        self.graph = next(_graphs)
        self.cause = -1 - self.graph
        self.dumps: Callable[..., Any] = identity
        self.loads: Callable[..., Any] = identity
        #: key -> the keys that it needs, as the scheduler has them; the last run of each key
        self.needs: Mapping[Any, Any] = {}
        self._run_of: dict[Any, int] = {}
        #: id of the bytes of a result that came back -> its key, until it is loaded
        self._results: dict[int, Any] = {}
        self._scales = Scales()
        executor = getattr(submit, "__self__", None)
        #: whether what is submitted runs in this process for certain
        self._threads = isinstance(executor, (ThreadPoolExecutor, *INLINE))
        #: whether it runs where stageprof is, and takes any function: a scheduler of somebody's
        #: own, or processes of another host, may not
        self._known = self._threads or isinstance(executor, _POOLS)

    def submit(self, batch: Any, tasks: list[Any]) -> Future[Any]:
        """Submit tasks as the scheduler asks, timed; their future holds only its own result."""
        if self._threads and self.dumps is identity:
            runs = [next(_runs) for _ in tasks]
            self._note(self._assigned, runs, tasks)
            return self._submit(self._run, batch, tasks, runs)
        return self._submit_elsewhere(batch, tasks)

    def _note(self, doing: Callable[..., None], *args: Any) -> None:
        if not self._watch.disabled:
            attempt(self._watch, doing, *args)

    def _run(self, batch: Any, tasks: list[Any], runs: list[int]) -> list[Any]:
        """Run tasks one by one on a thread of this process, and say so."""
        results: list[Any] = []
        times: list[tuple[int, int, int, str]] = []
        try:
            # No generator: of a task's StopIteration Python makes another error there.
            for task in tasks:
                results.append(self._timed(batch, task, times))  # noqa: PERF401
        finally:
            self._note(self._ran, runs[: len(times)], times, results)
        return results

    def _timed(self, batch: Any, task: Any, times: list[tuple[int, int, int, str]]) -> Any:
        """One task's result; the synchronous scheduler lets what it raises through."""
        with within("client", Stage.EXECUTION):
            before, failed, result = self._begun(task[0]), True, None
            cpu, start = thread_ns(), now_ns()
            try:
                (result,) = batch([task])
                failed = bool(result[2])
            finally:
                stop, cpu = now_ns(), thread_ns() - cpu
                attempt(self._watch, stacks.end, before)
                times.append((start, stop, cpu, self._said(task[0], result) if failed else ""))
        return result

    def _begun(self, key: Any) -> tuple[str, Any] | None:
        """The calling thread begins a task; what it was at before."""
        try:
            return stacks.begin("client", key)
        except BaseException as error:
            caught(error, self._watch)
            return None

    def _said(self, key: Any, result: Any) -> str:
        try:
            return _failed(key, result)
        except BaseException as error:
            caught(error, self._watch)
            return failure.UNKNOWN

    def _ran(
        self, runs: list[int], times: list[tuple[int, int, int, str]], results: list[Any]
    ) -> None:
        if not runs:  # an interrupt came before the first of them
            return
        row, thread = self.emit.row, get_ident()
        for run, (start, stop, cpu, failed) in zip(runs, times, strict=True):
            row("client", (RUN, run, start, start, start, stop, thread, cpu, "local"))
            self._finish(run, stop, failed, stop)
        counts[2] += len(runs)
        self.cause = runs[-1]
        for run, time, result in zip(runs, times, results, strict=False):
            self._brought(run, result, time[1] - time[0], time[2])

    def _brought(self, run: int, result: Any, ns: int, cpu: int) -> None:
        """Say what a run that waited brought; its result is as the scheduler's loop gets it."""
        _, info, failed = result
        if not failed and waited(ns, cpu):
            self._scales.waited += ns
            nbytes = len(info) if type(info) is bytes else self._scales.weigh(info[0])
            self._row_of((RESULT, run, nbytes))

    def _submit_elsewhere(self, batch: Any, tasks: list[Any]) -> Future[Any]:
        # What may run in another process gets the scheduler's own dumps and loads, not ours.
        plain = [(key, info, self.dumps, self.loads, *rest) for key, info, _, _, *rest in tasks]
        keys = [task[0] for task in tasks]
        runs = [next(_runs) for _ in tasks]
        self._note(self._assigned, runs, plain)
        out: Future[Any] = Future()
        if self._known:
            fut = self._submit(functools.partial(timed_batch, batch, os.getpid()), plain)
            fut.add_done_callback(lambda f: self._returned(f, out, runs, keys, f.result))
        else:
            start = now_ns()
            fut = self._submit(batch, plain)
            fut.add_done_callback(
                lambda f: self._returned(f, out, runs, keys, lambda: self._around(f, start))
            )
        return out

    def _around(self, fut: Future[Any], start: int) -> tuple[list[Any], list[Times]]:
        """What tasks returned, and their times as they are seen from here."""
        results, stop = fut.result(), now_ns()
        said = [failure.UNKNOWN if result[2] else "" for result in results]
        thread, pid = get_ident(), os.getpid()
        return results, [(start, stop, thread, 0, pid, failed, []) for failed in said]

    def _assigned(self, runs: list[int], tasks: list[Any]) -> None:
        t = now_ns()
        counts[1] += len(runs)
        cause = self.cause
        for run, task in zip(runs, tasks, strict=True):
            key = task[0]
            self.emit.row("client", (ASSIGN, run, t, "local", cause, key))
            needs = self.needs.get(key)
            if needs:
                found = [self._run_of.get(need) for need in spread(needs)]
                needed(self._row_of, run, cause, found)
            elif cause >= 0:
                self._row_of((DEPEND, run, -1))
            self._run_of[key] = run

    def _row_of(self, row: Row) -> None:
        self.emit.row("client", row)

    def _returned(
        self,
        fut: Future[Any],
        out: Future[Any],
        runs: list[int],
        keys: list[Any],
        told: Callable[[], tuple[list[Any], list[Times]]],
    ) -> None:
        try:
            results, times = told()
        except BaseException as error:  # handed on: it is the user's
            out.set_exception(error)
            return
        # On this thread an interrupt is not the user's: a result that is not set hangs the run.
        try:
            self._rows(runs, keys, times)
            for run, time, result in zip(runs, times, results, strict=True):
                self._brought(run, result, time[1] - time[0], time[3])
            if self.loads is not identity:  # its bytes are loaded soon, by the scheduler's thread
                self._results.update((id(info), key) for key, info, _ in results)
        except BaseException as error:
            self._watch.failed(error)
        out.set_result(results)

    def _rows(self, runs: list[int], keys: list[Any], times: list[Times]) -> None:
        for run, key, time in zip(runs, keys, times, strict=True):
            self._row(run, time)
            for step, start, stop in time[-1]:
                share(self.emit, "client", step, key, start, stop)
        counts[2] += len(runs)
        self.cause = runs[-1]

    def _row(self, run: int, time: Times) -> None:
        start, stop, thread, cpu, pid, failed, spans = time
        place = "local" if pid == os.getpid() else f"{POOLED}{pid}"
        for step, begin, end in spans:
            self.emit.row("client", (SPAN, step, begin, end, thread, place, 0))
        self.emit.row("client", (RUN, run, start, start, start, stop, thread, cpu, place))
        self._finish(run, now_ns(), failed, stop)

    def _finish(self, run: int, t: int, failed: str, stop: int) -> None:
        """A run ended, and if it failed, with what."""
        self.emit.row("client", (FINISH, run, t, int(failed != ""), 0, ""))
        if failed:
            failure.tell(self.emit, "client", "", stop, failed)

    def timed(self, function: Callable[..., Any], step: str) -> Callable[..., Any]:
        """The scheduler's own dumps or loads, timed in its own thread."""
        if function is identity:
            return function

        def make(function: Callable[..., Any]) -> Callable[..., Any]:
            def timed(obj: Any) -> Any:
                with within("client", Stage.SERIALIZATION):
                    start = now_ns()
                    result = function(obj)
                    stop = now_ns()
                self.emit.span("client", STEP[step], start, stop)
                self._share(step, obj, result, start, stop)
                return result

            return timed

        timed: Callable[..., Any] = shield(function, make, self._watch)
        return timed

    def _share(self, step: str, obj: Any, result: Any, start: int, stop: int) -> None:
        """Say whose was dumped (a task with its data) or loaded (bytes that a task returned)."""
        if step == "result.load":
            key, nbytes = self._results.pop(id(obj), None), _size(obj)
        else:
            task: Any = obj[0] if type(obj) is tuple and obj else None
            key = task.key if id(type(task)) in NODES else None
            nbytes = _size(result)
        if key is not None:
            share(self.emit, "client", STEP[step], key, start, stop, nbytes)


def _failed(key: Any, result: Any) -> str:
    """What a task raised (see `failure.label`); its result is None where that goes on."""
    if result is None:
        return failure.label(key, cast("BaseException", sys.exc_info()[1]))
    _, info, _ = result
    error = info[0] if type(info) is tuple and info else None
    return failure.label(key, error) if isinstance(error, BaseException) else failure.UNKNOWN


def _size(data: Any) -> int:
    return len(data) if type(data) is bytes else 0
