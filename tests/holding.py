"""Work that holds the GIL for known times, for tests to import on both sides of a cluster."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
from typing import NamedTuple

import numpy as np

#: Calls made through it keep the GIL.
_KEEPING = ctypes.PyDLL(None)


class Held(NamedTuple):
    """When a thread of a process held the GIL for certain, ns of the process's clock."""

    pid: int
    thread: int
    start: int
    stop: int


def _here(start: int) -> Held:
    return Held(os.getpid(), threading.get_ident(), start, time.perf_counter_ns())


def in_c(seconds: float, times: int, pause: float = 0.0) -> list[Held]:
    """Hold the GIL in C, with pauses without it."""
    found = []
    for _ in range(times):
        start = time.perf_counter_ns()
        _KEEPING.usleep(round(seconds * 1e6))
        found.append(_here(start))
        if pause:
            time.sleep(pause)
    return found


def in_python(seconds: float) -> list[Held]:
    """Run bytecode for so long, holding the GIL whenever it is to be had."""
    start = time.perf_counter_ns()
    number = 0.5
    while time.perf_counter_ns() - start < seconds * 1e9:
        for _ in range(500):
            number = math.sin(number)
    return [_here(start)]


def in_numpy(seconds: float) -> list[Held]:
    """Have numpy compute, which gives the GIL up meanwhile."""
    start = time.perf_counter_ns()
    data = np.linspace(0, 1, 2_000_000)
    while time.perf_counter_ns() - start < seconds * 1e9:
        np.sqrt(data, out=data)
    return []


def waiting(seconds: float) -> list[Held]:
    """Sleep, without the GIL."""
    time.sleep(seconds)
    return []
