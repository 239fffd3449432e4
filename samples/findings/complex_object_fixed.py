"""Finding: complex-object, after the fix.

Prices baskets with a catalogue of two arrays, which are pickled as the bytes that they are.
"""

from __future__ import annotations

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

ARTICLES, BASKETS, DAYS = 100_000, 6, 400


def priced(seed: int, price: np.ndarray, tax: np.ndarray) -> float:
    """What a basket of random articles brings in a day, over many days."""
    random = np.random.default_rng(seed)
    chosen = random.integers(0, ARTICLES, 20_000)
    prices = price[chosen] * (1 + tax[chosen])
    return float((random.poisson(3, (DAYS, len(chosen))) @ prices).mean())


def main() -> None:
    """What all baskets bring in a day."""
    number = np.arange(ARTICLES)
    price, tax = 1.0 + number % 97, 0.07 + number % 3 / 20
    prices = compute(*[delayed(priced)(seed, price, tax) for seed in range(BASKETS)])
    print(f"{sum(prices):.0f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
