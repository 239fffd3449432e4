"""Search the best smoothing width with futures: the data are loaded once, on a worker."""

from __future__ import annotations

import numpy as np
from distributed import Client, LocalCluster, as_completed, get_client


def loaded(rows: int) -> np.ndarray:
    """A noisy signal."""
    random = np.random.default_rng(7)
    return np.sin(np.linspace(0, 60, rows)) + random.normal(0, 0.5, rows)


def error_of(signal: np.ndarray, width: int) -> tuple[float, int]:
    """How far the smoothed signal is from the true one."""
    smooth = np.convolve(signal, np.ones(width) / width, mode="same")
    truth = np.sin(np.linspace(0, 60, len(signal)))
    return float(((smooth - truth) ** 2).mean()), width


def main(size: float = 1.0) -> None:
    """The best width."""
    client = get_client()
    signal = client.submit(loaded, 500_000)
    widths = range(20, 20 + int(128 * size) * 20, 20)
    tried = client.map(lambda width, data: error_of(data, width), widths, data=signal)
    best = min(result for _, result in as_completed(tried, with_results=True))
    print(f"width {best[1]}: {best[0]:.4f}")


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        main()
