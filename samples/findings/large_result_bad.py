"""Finding: large-result.

Fetches a whole simulated field to the client, only to average it there.
"""

from __future__ import annotations

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

ROWS = 24 * 1_000


def main() -> None:
    """The mean of the field's absolute values."""
    field = da.random.default_rng(3).normal(size=(ROWS, 6_000), chunks=(1_000, 6_000))
    whole = field.astype("f4").compute()
    print(f"{np.abs(whole).mean(dtype='f8'):.4f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
