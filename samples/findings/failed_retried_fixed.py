"""Finding: failed-retried, after the fix.

Fetches pages from a service and waits inside the task when it is busy, so that no work is thrown
away.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from dask import compute, delayed
from distributed import Client, LocalCluster

PAGES = 24


@delayed
def fetched(page: int, folder: str) -> int:
    """The length of a page; the task asks whether the service is free before it begins."""
    called = Path(folder) / str(page)
    if page % 3 == 0 and not called.exists():
        called.touch()  # it says so at once when asked
    time.sleep(0.2)  # the service answers
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
