"""Independent simulations with `delayed`, summed up in one compute."""

from __future__ import annotations

import dask
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster


@delayed
def simulated(seed: int, paths: int = 40_000, steps: int = 60) -> float:
    """Mean of the payoffs of an option over random paths."""
    random = np.random.default_rng(seed)
    price = np.full(paths, 100.0)
    for _ in range(steps):
        price *= np.exp(random.normal(0.0, 0.02, paths))
    return float(np.maximum(price - 105.0, 0.0).mean())


def main(size: float = 1.0) -> None:
    """The mean over all simulations."""
    payoffs = dask.compute(*[simulated(seed) for seed in range(int(144 * size))])
    print(f"{np.mean(payoffs):.1f}")


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        main()
