"""Finding: sizeof-wrong.

Cuts series into overlapping windows, which share the series' memory, and compares them with a
pattern. `Windows` tells Dask the sum of its windows, eight times what it takes: Dask believes that
the workers are full, and writes their results to disk window by window.
"""

from __future__ import annotations

import numpy as np
from distributed import Client, LocalCluster, wait

SERIES, LENGTH, WIDTH = 16, 1_250_000, 10_000


class Windows:
    """Overlapping windows over one series."""

    def __init__(self, series: np.ndarray) -> None:
        starts = range(0, len(series) - WIDTH, WIDTH // 8)
        self.windows = [series[start : start + WIDTH] for start in starts]

    def __sizeof__(self) -> int:
        return sum(window.nbytes for window in self.windows)


def cut(number: int) -> Windows:
    """The windows of one series."""
    return Windows(np.random.default_rng(number).normal(size=LENGTH).cumsum())


def closest(windows: Windows, pattern: np.ndarray) -> float:
    """How near the nearest window is to a pattern."""
    return min(float(np.abs(w - w[0] - pattern).mean()) for w in windows.windows)


def main() -> None:
    """The nearest of all, for two patterns."""
    series = [client.submit(cut, number) for number in range(SERIES)]
    wait(series)
    for pattern in (np.zeros(WIDTH), np.sqrt(np.arange(WIDTH))):
        nearest = client.map(closest, series, pattern=client.scatter(pattern, broadcast=True))
        print(f"{min(client.gather(nearest)):.3f}")


if __name__ == "__main__":
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="500MB",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        main()
