"""Finding: memory-growth, after the fix.

Fits a model round after round on data that stays on the workers. The function that does it keeps
some of what it made on its worker, but no more than of the last round or so.
"""

from __future__ import annotations

from collections import deque

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, get_worker, wait

ROUNDS, ROWS, COLUMNS = 12, 18, 2_500_000


def score(block: np.ndarray, turn: int, centre: float) -> np.ndarray:
    """How well the block's readings fit this round."""
    residuals = np.abs(block - centre)
    worker = get_worker()
    if not hasattr(worker, "residuals"):
        worker.residuals = deque(maxlen=10)
    worker.residuals.append((turn, residuals[0, ::5].copy()))
    return residuals.mean(axis=1, keepdims=True)


def load() -> da.Array:
    """The data, on the workers."""
    data = da.random.default_rng(5).normal(size=(ROWS, COLUMNS), chunks=(1, COLUMNS)).persist()
    wait(data)
    return data


def main() -> None:
    """The score of the last round; each begins where the one before ended."""
    data, scores = load(), [0.0]
    for turn in range(ROUNDS):
        fitted = data.map_blocks(score, turn, scores[-1], chunks=(1, 1), dtype=float)
        scores.append(float(fitted.mean().compute()))
    print(f"{scores[-1]:.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="950MB",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        main()
