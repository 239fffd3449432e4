"""What looking at C frames costs tasks, which stop while py-spy looks.

Run ``python benchmarks/native.py [--rounds 8]``. Two threads of a worker sort and compress arrays,
the same work each time: recorded without C frames, with them as stageprof does it, and beside a
py-spy of our own at other rates. Ways are interleaved within a round; each is compared with the
work without C frames of its round. The first line is the spread of that work against itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import stageprof
from stageprof_runtime.gil.permission import spy
from stageprof_runtime.gil.unwinding import RATE

#: Tasks of one run; two seconds on one processor in 2024.
TASKS = 30
RATES = (10, 50, 100)

Way = Callable[[Client], AbstractContextManager[None]]


def work(seed: int) -> int:
    """NumPy and zlib, most of the time without the GIL."""
    numbers = np.random.default_rng(seed).integers(0, 50, 2_000_000, dtype=np.uint8)
    return len(zlib.compress(np.sort(numbers[::2]).tobytes() + numbers[:1_000_000].tobytes(), 6))


@contextlib.contextmanager
def recorded(_: Client, *, native: bool = False) -> Iterator[None]:
    """As a user records it."""
    with stageprof.profile(native=native):
        yield


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


def seconds(client: Client, way: Way) -> float:
    """Wall seconds of the work, done in one way."""
    with way(client):
        start = time.perf_counter()
        client.gather(client.map(work, range(TASKS), pure=False))
        return time.perf_counter() - start


def main() -> None:
    """Measure, and print a line for each way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    rounds = parser.parse_args().rounds
    ways: dict[str, Way] = {
        "again without C frames": recorded,
        f"native=True ({RATE}/s)": lambda client: recorded(client, native=True),
        **{f"py-spy at {rate}/s": beside(rate) for rate in RATES},
    }
    ratios: dict[str, list[float]] = {name: [] for name in ways}
    cluster = LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None)
    with cluster, Client(cluster) as client:
        seconds(client, recorded)
        for turn in range(rounds):
            base = seconds(client, recorded)
            names = [*ways][turn % len(ways) :] + [*ways][: turn % len(ways)]
            for name in names:
                ratios[name].append(seconds(client, ways[name]) / base)
    for name, found in ratios.items():
        low, middle, high = statistics.quantiles(found, n=4)
        print(f"{name:28} {middle:.3f} ({low:.3f}-{high:.3f})")


if __name__ == "__main__":
    main()
