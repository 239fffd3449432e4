"""Planted delays that time themselves: what a ground-truth test injects and reads back.

Everything here is importable by scheduler and workers, and logs to the file that `LOG` names in
the object itself, so that the truth is measured and not assumed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any


def note(log: str, what: str, started: float) -> None:
    """Append what took how long, and in which process and thread."""
    line = {
        "what": what,
        "seconds": time.perf_counter() - started,
        "pid": os.getpid(),
        "main": threading.current_thread() is threading.main_thread(),
    }
    with Path(log).open("a") as file:
        file.write(json.dumps(line) + "\n")


def truths(log: str | Path) -> list[dict[str, Any]]:
    """What was noted so far."""
    path = Path(log)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def timed_sleep(log: str, what: str, seconds: float) -> None:
    """Sleep, and note how long it really took."""
    started = time.perf_counter()
    time.sleep(seconds)
    note(log, what, started)


def rebuild(log: str, dump_s: float, load_s: float) -> Slow:
    """Unpickle a `Slow`, slowly."""
    timed_sleep(log, "load", load_s)
    return Slow(log, dump_s, load_s)


class Slow:
    """An object that is slow to pickle and to unpickle."""

    def __init__(self, log: str, dump_s: float, load_s: float) -> None:
        self.log = log
        self.dump_s = dump_s
        self.load_s = load_s

    def __reduce__(self) -> Any:
        timed_sleep(self.log, "dump", self.dump_s)
        return rebuild, (self.log, self.dump_s, self.load_s)


class SlowToken:
    """An object that is slow to tokenize."""

    def __init__(self, log: str, seconds: float) -> None:
        self.log = log
        self.seconds = seconds

    def __dask_tokenize__(self) -> Any:
        timed_sleep(self.log, "tokenize", self.seconds)
        return ("slow-token", self.seconds)


def identity(x: Any, *rest: Any) -> Any:
    """Give back the first argument."""
    return x


def ignore(*args: Any) -> int:
    """Take anything, give back a number."""
    return 1


def make_slow(log: str, dump_s: float, load_s: float, *needs: Any) -> Slow:
    """A task whose result is slow to bring home."""
    return Slow(log, dump_s, load_s)


def work(log: str, seconds: float, *needs: Any) -> float:
    """A task that takes this long."""
    timed_sleep(log, "work", seconds)
    return seconds


def blob(nbytes: int, seed: int = 0) -> Any:
    """A task that makes an incompressible array of this size."""
    import numpy as np

    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


def size(x: Any, *rest: Any) -> int:
    """The size of what a task was given, bytes."""
    return int(x.nbytes)


def meta_slow(block: Any, log: str, seconds: float) -> Any:
    """A function for map_blocks that is slow on the empty block of meta inference only."""
    if block.size == 0:
        timed_sleep(log, "meta", seconds)
    return block
