"""Finding: gil-contention, after the fix.

Sums up events from JSON documents: each worker process has one thread, and a GIL of its own.
"""

from __future__ import annotations

import json

from dask import delayed
from distributed import Client, LocalCluster

FILES, EVENTS = 24, 90_000


def file_of(day: int) -> str:
    """The document of a day, as a web service would give it."""
    event = json.dumps({"user": f"u{day}", "tags": ["a", "b"], "cost": 3 + day, "ok": True})
    return "[" + ",".join([event] * EVENTS) + "]"


def cost_of(document: str) -> int:
    """What its events cost together."""
    events = json.loads(document)
    return sum(map(len, events)) + events[0]["cost"]


def main() -> None:
    """What all cost."""
    print(delayed(sum)([delayed(cost_of)(delayed(file_of)(day)) for day in range(FILES)]).compute())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
