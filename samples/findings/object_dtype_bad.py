"""Finding: object-dtype.

Sums up time spent on pages of a shop. The reader leaves texts as Python objects.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from dask import delayed
from distributed import Client, LocalCluster

DAYS, ROWS = 28, 400_000


def views_of(day: int) -> pd.DataFrame:
    """The page views of a day."""
    random = np.random.default_rng(day)
    pages = np.array([f"/Shop/{i:04}/view" for i in range(3_000)], dtype=object)
    frame = pd.DataFrame({"seconds": random.integers(1, 90, ROWS)})
    frame["page"] = pd.Series(pages[random.integers(0, 3_000, ROWS)], dtype=object)
    return frame


def best_page(views: pd.DataFrame) -> tuple[int, str]:
    """The page of the shop on which most time was spent, and the seconds."""
    page = views["page"].str.lower()
    known = page.str.startswith("/shop/") & page.str.endswith("view") & (page.str.len() > 5)
    seconds = views["seconds"][known].groupby(page[known]).sum()
    return int(seconds.max()), str(seconds.idxmax())


def main() -> None:
    """The best of all days."""
    best = [delayed(best_page)(delayed(views_of)(day)) for day in range(DAYS)]
    print(delayed(max)(best).compute())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
