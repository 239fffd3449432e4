"""Finding: blocking-coroutine.

Asks a service that takes its time from coroutines, by a call that is not for asyncio.
"""

from __future__ import annotations

import time

from distributed import Client, LocalCluster

QUESTIONS = 40


async def answered(question: int) -> int:
    """What a web service, far away, says: a quarter of a second later."""
    time.sleep(0.25)  # noqa: ASYNC251 (this is what is wrong)
    return question % 7


def main(client: Client) -> None:
    """The sum of all answers."""
    print(sum(client.gather(client.map(answered, range(QUESTIONS)))))


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=16, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
