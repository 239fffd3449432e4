"""Finding: spilling.

Keeps a year of hourly readings in the memory of two workers and passes over them twice: first for
each station's mean and spread, then for the readings that stand out. The readings take twice as
much as Dask lets the workers hold, so each pass goes to disk and back.
"""

from __future__ import annotations

import dask
import dask.array as da
from distributed import Client, LocalCluster, wait

HOURS, STATIONS = 8_760, 10_000


def main() -> None:
    """How many readings stand out by more than four spreads."""
    readings = da.random.default_rng(7).normal(size=(STATIONS, HOURS), chunks=(500, HOURS))
    readings = readings.persist()
    wait(readings)
    mean, spread = dask.compute(readings.mean(axis=1), readings.std(axis=1))
    far = abs(readings - mean[:, None]) > 4 * spread[:, None]
    print(int(far.sum().compute()))


if __name__ == "__main__":
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="600MB",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster),
    ):
        main()
