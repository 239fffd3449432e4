"""Finding: scheduler-saturated.

Forty-eight threads ask for thousands of short tasks: the scheduler cannot hand them out as fast as
they are done, and the threads wait for it.
"""

from __future__ import annotations

import time

from distributed import Client, LocalCluster

TASKS, BATCH = 6_000, 1


def watched(numbers: list[int]) -> int:
    """What sensors say; each answers after 8 ms."""
    time.sleep(0.008 * len(numbers))
    return sum(numbers)


def main() -> None:
    """The sum of what all say."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=24, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        batches = [list(range(start, start + BATCH)) for start in range(0, TASKS, BATCH)]
        print(sum(client.gather(client.map(watched, batches))))


if __name__ == "__main__":
    main()
