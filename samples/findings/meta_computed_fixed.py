"""Finding: meta-computed, after the fix.

Makes a data frame of readings, and says which columns they have.
"""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

FILES = 4
ROWS = 4_000_000


@dask.delayed
def readings(number: int) -> pd.DataFrame:
    """What a file would give: the readings of a day, in order."""
    rng = np.random.default_rng(number)
    frame = pd.DataFrame({"sensor": rng.integers(0, 1_000, ROWS), "value": rng.random(ROWS)})
    return frame.sort_values("value")


def main() -> None:
    """The mean of each sensor's largest reading."""
    types = {"sensor": "int64", "value": "float64"}
    meta = pd.DataFrame({name: pd.Series(dtype=type_) for name, type_ in types.items()})
    frame = dd.from_delayed([readings(i) for i in range(FILES)], meta=meta, verify_meta=False)
    print(f"{frame.groupby('sensor').value.max().mean().compute():.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
