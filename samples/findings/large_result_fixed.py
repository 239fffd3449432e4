"""Finding: large-result, after the fix.

Averages a simulated field on the workers and fetches one number.
"""

from __future__ import annotations

import dask.array as da
from distributed import Client, LocalCluster

ROWS = 24 * 1_000


def main() -> None:
    """The mean of the field's absolute values."""
    field = da.random.default_rng(3).normal(size=(ROWS, 6_000), chunks=(1_000, 6_000))
    print(f"{abs(field.astype('f4')).mean(dtype='f8').compute():.4f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
