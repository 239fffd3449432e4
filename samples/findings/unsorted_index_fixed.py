"""Finding: unsorted-index, after the fix.

How answers go together in a sample of people, drawn with replacement: positions in order,
so that each piece of the sample takes from one or two pieces of the answers.
"""

from __future__ import annotations

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

PEOPLE, QUESTIONS = 60_000, 150


def main() -> None:
    """Print two sums of the products of all pairs of questions."""
    answers = da.random.default_rng(1).integers(1, 6, (PEOPLE, QUESTIONS), chunks=(1_000, -1))
    drawn = np.sort(np.random.default_rng(2).choice(PEOPLE, PEOPLE // 2))
    sample = answers[drawn]
    together = (sample.T @ sample).compute()
    print(together.trace(), together.sum())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
