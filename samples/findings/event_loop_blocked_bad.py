"""Finding: event-loop-blocked.

Two threads in one worker: one parses documents in pure Python and holds the GIL, and the worker
can hardly answer those that ask it for data.
"""

from __future__ import annotations

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

PARTS = 12


@delayed
def made(part: int) -> np.ndarray:
    """Data of a part, 16 MB."""
    return np.random.default_rng(part).random(2_000_000)


@delayed
def parsed(part: int) -> int:
    """Digits of a long number, one by one."""
    total, value = 0, 7 ** (6_000 + part)
    for digit in str(value) * 250:
        total = (total * 31 + ord(digit)) % 1_000_003
    return total


@delayed
def joined(data: np.ndarray, other: np.ndarray, number: int) -> float:
    """Both parts and a number."""
    return float(data.mean() + other.mean() + number)


def main() -> None:
    """The sum of all."""
    data = [made(part) for part in range(PARTS)]
    ends = [joined(data[part], data[part - 1], parsed(part)) for part in range(PARTS)]
    print(f"{sum(compute(*ends)):.4f}")


def cluster() -> LocalCluster:
    """Two workers with four threads each."""
    return LocalCluster(n_workers=2, threads_per_worker=4, dashboard_address=":0")


if __name__ == "__main__":
    with cluster() as here, Client(here):
        main()
