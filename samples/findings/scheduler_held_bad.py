"""Finding: scheduler-held.

Reports how far it is while it computes: a function that the scheduler runs writes the report.
"""

from __future__ import annotations

import threading
import time

import numpy as np
from distributed import Client, LocalCluster, Scheduler

TASKS, EVERY_S = 150, 0.2


def worked(number: int) -> int:
    """A task: how many of so many numbers are in the upper half once they are in order."""
    values = np.sort(np.random.default_rng(number).random(250_000), kind="stable")
    return len(values) - int(np.searchsorted(values, 0.5))


def reported(dask_scheduler: Scheduler) -> None:
    """Say how many tasks there are to a service that takes its time."""
    sent(len(dask_scheduler.tasks))


def sent(_: int) -> None:
    """A number goes to the service."""
    time.sleep(0.4)


def main(client: Client) -> None:
    """The sum of all results."""
    done = threading.Event()

    def report() -> None:
        while not done.wait(EVERY_S):
            client.run_on_scheduler(reported)

    thread = threading.Thread(target=report)
    thread.start()
    try:
        print(sum(client.gather(client.map(worked, range(TASKS)))))
    finally:
        done.set()
        thread.join()


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
