"""Programs with a planted profile: functions of a known share, for workers and threads alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dask.delayed import delayed

T = TypeVar("T")


def awaited(doing: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, from a thread of its own: a browser's loop may run in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, doing).result()


def spin(seconds: float) -> int:
    """Use a processor for so long, in bytecode."""
    end, n = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        n += 1
    return n


def heavy(seconds: float) -> int:
    """Seven parts of ten."""
    return spin(0.7 * seconds)


def light(seconds: float) -> int:
    """Three parts of ten."""
    return spin(0.3 * seconds)


def task(seconds: float) -> int:
    """What a task does."""
    return heavy(seconds) + light(seconds)


def nap(seconds: float) -> float:
    """A task that waits."""
    time.sleep(seconds)
    return seconds


def identity(x: Any) -> Any:
    """A task of which many are built."""
    return x


def build_much(n: int) -> list[Any]:
    """Three parts of a construction."""
    return [delayed(identity)(i) for i in range(3 * n)]


def build_little(n: int) -> list[Any]:
    """One part of it."""
    return [delayed(identity)(i) for i in range(n)]


def construction(rounds: int, n: int = 500) -> None:
    """Build in turns, so that neither has the colder or the fuller memory."""
    for _ in range(rounds):
        build_much(n)
        build_little(n)
