"""Tasks of a local scheduler in another process: run there one by one, and timed.

Imported by every process of a pool with its first task, so it imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import get_ident
from typing import Any

import dask.local

from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.context import within
from stageprof_runtime.interrupts import interrupted
from stageprof_runtime.probes import failure
from stageprof_runtime.stage import STEP, Stage

#: As in `compat`, which would import all of distributed here.
_identity: Callable[..., Any] | None = getattr(dask.local, "identity", None)


def timed_batch(batch: Callable[[list[Any]], list[Any]], home: int, tasks: list[Any]) -> Any:
    """Run tasks one by one where the scheduler sent them; returns results and their times."""
    results, times = [], []
    # The main threads of forked processes share an ident: there the process is the thread.
    thread = get_ident() if os.getpid() == home else os.getpid()
    for key, info, dumps, loads, *rest in tasks:
        said: list[str] = []
        spans: list[tuple[int, int, int]] = []
        task = (key, info, _noted(dumps, "result.dump", spans), _noted(loads, "task.load", spans))
        with within("client", Stage.EXECUTION):
            cpu, start = thread_ns(), now_ns()
            (result,) = batch([(*task, *_telling(rest, key, said))])
            stop, cpu = now_ns(), thread_ns() - cpu
        results.append(result)
        failed = (said[0] if said else failure.UNKNOWN) if result[2] else ""
        times.append((start, stop, thread, cpu, os.getpid(), failed, spans))
    return results, times


def _telling(rest: list[Any], key: object, said: list[str]) -> list[Any]:
    """The same, but what packs an exception says first which one it is; see `failure.label`."""
    *others, pack = rest

    def noted(error: BaseException, dumps: Callable[..., Any]) -> Any:
        try:
            said.append(failure.label(key, error))
        except BaseException as wrong:
            if interrupted(wrong):
                raise
        return pack(error, dumps)

    return [*others, noted]


def _noted(
    function: Callable[..., Any], step: str, spans: list[tuple[int, int, int]]
) -> Callable[..., Any]:
    if function is _identity:
        return function

    def noted(obj: Any) -> Any:
        start = now_ns()
        result = function(obj)
        spans.append((STEP[step], start, now_ns()))
        return result

    return noted
