"""Finding: gc-pressure, after the fix.

Loads journals of millions of small records that live on; the garbage collector of the workers was
told to look through them less often.
"""

from __future__ import annotations

import gc
import json

from dask import compute, delayed
from distributed import Client, LocalCluster, default_client

PARTS, RECORDS = 8, 250_000


@delayed
def journal(part: int) -> str:
    """A journal as text."""
    record = json.dumps({"of": [part, 1], "to": {"place": part * 7 % 11}})
    return "[" + ",".join([record] * RECORDS) + "]"


@delayed
def parsed(text: str) -> list[dict[str, object]]:
    """Its records."""
    records: list[dict[str, object]] = json.loads(text)
    return records


@delayed
def counted(records: list[dict[str, object]]) -> int:
    """How many records a journal has."""
    return len(records)


def main() -> None:
    """The number of all records."""
    print(sum(compute(*[counted(parsed(journal(part))) for part in range(PARTS)])))


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        default_client().run(gc.set_threshold, 100_000, 50, 100)
        main()
