"""What looking at C frames costs tasks, which stop while py-spy looks.

Run ``python benchmarks/native.py [--rounds 8]``. Two threads of a worker sort and compress arrays,
the same work each time: recorded without C frames, with them as stageprof does it, and beside a
py-spy of our own at other rates. Ways are interleaved within a round. Of each way there is the
median (and quartiles) of its wall seconds over those of the work without C frames in its round, and
its fastest round over the fastest without. The first line is the work without C frames against
itself. Last on each line is the part of the time for which the process stood still: of looks at its
state in ``/proc``, every 2 ms, those in which another had stopped it. Of all figures that is the
one that a machine with other work to do falsifies least.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

import numpy as np
from distributed import Client, LocalCluster

import stageprof
from stageprof_runtime.gil.permission import spy
from stageprof_runtime.gil.unwinding import RATE

#: Tasks of one run; two seconds on one processor in 2024.
TASKS = 30
RATES = (20, 50)

Way = Callable[[Client], AbstractContextManager[None]]


def work(seed: int) -> int:
    """NumPy and zlib, most of the time without the GIL."""
    numbers = np.random.default_rng(seed).integers(0, 50, 2_000_000, dtype=np.uint8)
    return len(zlib.compress(np.sort(numbers[::2]).tobytes() + numbers[:1_000_000].tobytes(), 6))


def recorded(*, native: bool) -> Way:
    """As a user records it."""

    @contextlib.contextmanager
    def way(_: Client) -> Iterator[None]:
        with stageprof.profile(native=native):
            yield

    return way


def beside(rate: int) -> Way:
    """With a py-spy of our own, at a rate."""

    @contextlib.contextmanager
    def way(client: Client) -> Iterator[None]:
        (pid,) = client.run(os.getpid).values()
        with tempfile.TemporaryDirectory() as folder, stageprof.profile():
            words = [spy(), "record", "--pid", str(pid), "--native", "--threads", "--idle"]
            words += ["--format", "chrometrace", "--output", str(Path(folder) / "trace")]
            words += ["--rate", str(rate), "--duration", "60"]
            with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                process.stdout.readline()
                yield
                process.send_signal(signal.SIGINT)
                process.communicate()

    return way


class Stopped:
    """Sees how much of the time a process is stopped by another."""

    def __init__(self, pid: int) -> None:
        self._file = Path(f"/proc/{pid}/stat")
        self._over = threading.Event()
        self._seen = [0, 0]
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.002):
            state = self._file.read_bytes().rpartition(b")")[2].split()[0]
            self._seen[state == b"t"] += 1

    @property
    def part(self) -> float:
        """Of the looks those that saw it stopped."""
        return self._seen[1] / max(sum(self._seen), 1)


def taken(client: Client, way: Way) -> tuple[float, float]:
    """Wall seconds of the work, done in one way, and the part in which the worker stood still."""
    (pid,) = client.run(os.getpid).values()
    with way(client), Stopped(pid) as stopped:
        start = time.perf_counter()
        client.gather(client.map(work, range(TASKS), pure=False))
        took = time.perf_counter() - start
    return took, stopped.part


def measured(
    client: Client, ways: dict[str, Way], rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """What each way has taken by round; "" is without C frames."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("", *ways)}
    for turn in range(rounds):
        found[""].append(taken(client, recorded(native=False)))
        names = [*ways][turn % len(ways) :] + [*ways][: turn % len(ways)]
        for name in names:
            found[name].append(taken(client, ways[name]))
    return found


def tell(found: dict[str, list[tuple[float, float]]]) -> None:
    """Print a line for each way."""
    base = [took for took, _ in found.pop("")]
    for name, rows in found.items():
        ratios = [took / theirs for (took, _), theirs in zip(rows, base, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        best = min(took for took, _ in rows) / min(base)
        still = statistics.median(part for _, part in rows)
        wall = f"{middle:.3f} ({low:.3f}-{high:.3f}), fastest {best:.3f}"
        print(f"{name:24} {wall}, stood still {still:.1%}")


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    ways: dict[str, Way] = {
        "again without C frames": recorded(native=False),
        f"native=True ({RATE}/s)": recorded(native=True),
        **{f"py-spy at {rate}/s": beside(rate) for rate in RATES},
    }
    cluster = LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None)
    with cluster, Client(cluster) as client:
        taken(client, recorded(native=False))
        tell(measured(client, ways, parser.parse_args().rounds))


if __name__ == "__main__":
    main()
