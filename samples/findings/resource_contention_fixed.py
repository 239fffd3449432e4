"""Finding: resource-contention, after the fix.

Sixty orders are checked by a service, which can answer eight at once and is asked so many.
"""

from __future__ import annotations

import time

from distributed import Client, LocalCluster, Semaphore

ORDERS = 60
#: Seconds that the service takes for an answer; it can give eight at once.
ANSWER = 0.05
LEASES = 8


def check(order: int) -> int:
    """What an order costs, which the service knows."""
    with Semaphore(max_leases=LEASES, name="several-service"):
        time.sleep(ANSWER)  # in place of a request
    return order % 7


def main(client: Client) -> None:
    """What they cost together."""
    costs = client.gather(client.map(check, range(ORDERS)))
    print(sum(costs))


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=4, dashboard_address=":0") as cluster,
        Client(cluster) as connected,
    ):
        main(connected)
