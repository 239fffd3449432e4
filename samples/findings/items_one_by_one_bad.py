"""Finding: items-one-by-one.

How much any two of some stations are alike: each task returns a list of readings, and half of the
lists go to another worker.
"""

from __future__ import annotations

import numpy as np
from distributed import Client, LocalCluster

STATIONS, HOURS = 12, 24 * 365 * 5
SHIFTS = 24 * 60


def readings(station: int) -> list[float]:
    """Five years of a station, hour by hour."""
    rng = np.random.default_rng(station)
    return [float(value) for value in rng.normal(12.0, 8.0, HOURS)]


def likeness(here: list[float], there: list[float]) -> float:
    """Of two stations, one of them shifted by up to two months."""
    return float(np.correlate(here, there[SHIFTS:], "valid").max()) / HOURS


def main(client: Client) -> None:
    """Each station is compared with each other."""
    years = client.map(readings, range(STATIONS))
    pairs = [(a, b) for a in range(STATIONS) for b in range(a)]
    alike = [client.submit(likeness, years[a], years[b]) for a, b in pairs]
    print(f"{max(client.gather(alike)):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
