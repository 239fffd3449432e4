"""Finding: complex-object.

Prices baskets with a catalogue of a hundred thousand small Python objects. Pickling them takes much
longer than their bytes would explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

ARTICLES, BASKETS, DAYS = 100_000, 6, 400


@dataclass
class Article:
    """What is known of an article."""

    number: int
    price: float
    tax: float


class Catalogue:
    """All articles, by their number."""

    def __init__(self) -> None:
        self.articles = [Article(i, 1 + i % 97, 0.07 + i % 3 / 20) for i in range(ARTICLES)]


def priced(seed: int, catalogue: Catalogue) -> float:
    """What a basket of random articles brings in a day, over many days."""
    random = np.random.default_rng(seed)
    chosen = random.integers(0, ARTICLES, 20_000)
    articles = [catalogue.articles[i] for i in chosen.tolist()]
    prices = np.array([article.price * (1 + article.tax) for article in articles])
    return float((random.poisson(3, (DAYS, len(chosen))) @ prices).mean())


def main() -> None:
    """What all baskets bring in a day."""
    catalogue = Catalogue()
    prices = compute(*[delayed(priced)(seed, catalogue) for seed in range(BASKETS)])
    print(f"{sum(prices):.0f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
