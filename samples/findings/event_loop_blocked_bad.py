"""Finding: event-loop-blocked.

Every day one worker reads a long list of numbers, in one call that holds the GIL, while the other
should fit the day's tables: it waits for them, for the first worker cannot answer.
"""

from __future__ import annotations

import dask
import numpy as np
from dask import delayed
from dask.distributed import wait
from distributed import Client, LocalCluster

DAYS, LINES, TABLE, FITS = 6, 24_000, 50_000, 3


@delayed
def journal(day: int) -> list[str]:
    """The numbers of a day, as lines of text."""
    return [" ".join(str(1_000_000 + day + n) for n in range(500))] * LINES


@delayed
def table(number: int) -> np.ndarray:
    """One of the tables of a day."""
    return np.random.default_rng(number).random(TABLE)


@delayed
def entries(lines: list[str], _before: float) -> int:
    """How many numbers there are."""
    return sum(map(len, map(str.split, lines)))


@delayed
def fitted(values: np.ndarray, before: float) -> float:
    """A fit of a table that goes on from the one before."""
    for _ in range(44):
        values = np.sort(np.sin(values * 7), kind="stable")
    return float(values.mean()) + before / 10


@delayed
def summed(number: int, fit: float) -> float:
    """What a day comes to."""
    return number * fit / 10_000_000


def main(client: Client) -> None:
    """The days one after another: each begins with what the last came to."""
    one, other = client.scheduler_info(n_workers=-1)["workers"]
    with dask.annotate(workers=[one]):
        texts = client.persist([journal(day) for day in range(DAYS)])
        tables = client.persist([table(number) for number in range(DAYS * FITS)])
        wait([*texts, *tables])
    total = delayed(0.0)
    for day in range(DAYS):
        with dask.annotate(workers=[one]):
            number = entries(texts[day], total)
        with dask.annotate(workers=[other]):
            for fit in range(FITS):
                total = fitted(tables[day * FITS + fit], total)
            total = summed(number, total)
    print(f"{client.compute(total, optimize_graph=False).result():.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
