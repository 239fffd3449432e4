"""Finding: gil-contention.

Counts slow requests in web logs: regular expressions hold the GIL, and the worker has four threads.
"""

from __future__ import annotations

import re

from dask import delayed
from distributed import Client, LocalCluster

DAYS, HOURS, LINES = 48, 240, 3_000
SLOW = re.compile(r"took=(\d{4,})ms (?=.*status=200)")


def hour_of(day: int) -> str:
    """The log of an hour, as a web server would write it."""
    lines = [
        f"GET /shop/{i} took={i * day % 3000}ms host=web{i % 7} status=200\n" for i in range(50)
    ]
    return "".join(lines) * (LINES // 50)


def slow_requests(day: int) -> int:
    """How many requests took a second or longer."""
    return sum(len(SLOW.findall(hour_of(day))) for _ in range(HOURS))


def main() -> None:
    """How many in all."""
    print(delayed(sum)([delayed(slow_requests)(day) for day in range(DAYS)]).compute())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=1, threads_per_worker=4, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
