"""Finding: failed-retried.

Fetches pages from a service that turns away every third caller, late, and tries again.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from dask import compute, delayed
from distributed import Client, LocalCluster

PAGES = 24


class Busy(Exception):
    """The service is busy."""


@delayed
def fetched(page: int, folder: str) -> int:
    """The length of a page; the first call for every third page fails after its work is done."""
    time.sleep(0.2)  # the service answers
    called = Path(folder) / str(page)
    if page % 3 == 0 and not called.exists():
        called.touch()
        raise Busy(f"page {page}: try again")
    return page * 37 % 101


def main() -> None:
    """The length of all pages."""
    with TemporaryDirectory() as folder:
        print(sum(compute(*[fetched(page, folder) for page in range(PAGES)], retries=2)))


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
