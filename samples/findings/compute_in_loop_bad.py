"""Finding: compute-in-loop.

Simulates one portfolio after the other: each compute waits for its own few tasks, and one of the
two workers has nothing to do.
"""

from __future__ import annotations

import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

PORTFOLIOS = 20


def simulated(seed: int) -> float:
    """The mean value of a portfolio over random paths."""
    random = np.random.default_rng(seed)
    value = np.full(60_000, 100.0)
    for _ in range(100):
        value *= np.exp(random.normal(0.0, 0.02, len(value)))
    return float(value.mean())


def main() -> None:
    """The best portfolio."""
    values = [delayed(simulated)(seed).compute() for seed in range(PORTFOLIOS)]
    print(f"{max(values):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
