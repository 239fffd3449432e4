"""Finding: worker-restarted.

Simulates demand in three markets. A worker keeps each market's table once it has made it; with the
third, and what one simulation takes beside it, it takes more than it may. Dask ends it, starts
another, and has the simulation done again, and the next worker makes its tables anew.
"""

from __future__ import annotations

import dask
import numpy as np
from distributed import Client, LocalCluster, as_completed, get_worker

SIMULATIONS, MARKETS, SIZE = 24, 3, 20_000_000


def table(market: int) -> np.ndarray:
    """The demand in one market; made once in each worker."""
    worker = get_worker()
    if not hasattr(worker, "tables"):
        worker.tables = {}
    if market not in worker.tables:
        worker.tables[market] = np.random.default_rng(market).normal(size=SIZE)
    return worker.tables[market]


def simulate(number: int) -> float:
    """How far demand is from what one simulation draws, on average."""
    demand = table(number * MARKETS // SIMULATIONS)
    drawn = np.random.default_rng(1_000 + number).random(size=SIZE // 10)
    return float(np.abs(demand[::10] - drawn).mean())


def main() -> None:
    """The mean over all simulations."""
    simulations = client.map(simulate, range(SIMULATIONS))
    done = as_completed(simulations, with_results=True)
    del simulations
    results = [result for _, result in done]
    print(f"{sum(results) / len(results):.6f}")


if __name__ == "__main__":
    with (
        dask.config.set(
            {
                "distributed.scheduler.allowed-failures": 100,
                "distributed.worker.memory.pause": False,
            }
        ),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="540MB",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        main()
