"""The observer keeps nothing alive: what a task made is gone when it has ended, as without it."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

from stageprof_runtime.probes import stacks


class Large:
    """Something that a task makes."""


class Emit:
    """Takes what is emitted and forgets it."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args: None


def test_looking_at_a_task_does_not_keep_its_variables() -> None:
    """The frames of all threads hold the looker's own, which holds them: a circle."""
    made: list[weakref.ref[Large]] = []
    begun, end = threading.Event(), threading.Event()

    def task() -> None:
        large = Large()
        made.append(weakref.ref(large))
        begun.set()
        end.wait(10)

    thread = threading.Thread(target=task)
    gc.disable()
    try:
        thread.start()
        assert begun.wait(10)
        assert thread.ident is not None
        stacks.running[thread.ident] = ("worker", "task-1")
        stacks.Tasks(Emit()).look(time.perf_counter_ns(), 50_000_000, 0.0)
        end.set()
        thread.join()
        assert made[0]() is None
    finally:
        end.set()
        stacks.running.clear()
        gc.enable()
