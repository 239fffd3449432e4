"""Finding: results-one-by-one.

Prices simulated options, and asks each future for its result.
"""

from __future__ import annotations

import numpy as np
from distributed import Client, LocalCluster, wait

OPTIONS = 500
PATHS = 800_000


def price(strike: float) -> float:
    """The mean of what an option pays, over simulated paths."""
    ends = np.random.default_rng(round(strike)).lognormal(0.0, 0.2, PATHS)
    return float(np.maximum(100 * ends - strike, 0).mean())


def main(client: Client) -> None:
    """The dearest and the cheapest option."""
    futures = client.map(price, np.linspace(60, 140, OPTIONS))
    wait(futures)
    prices = [future.result() for future in futures]
    print(f"{max(prices):.6f} {min(prices):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
