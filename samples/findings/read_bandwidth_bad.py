"""Finding: read-bandwidth.

Reads many small records from a store far away: each request takes its time, and each worker waits
for one at a time.
"""

from __future__ import annotations

import time
import zlib

from dask import delayed
from distributed import Client, LocalCluster

RECORDS, LATENCY_S = 120, 0.08


def fetched(number: int) -> bytes:
    """A record from the store, which answers after a while."""
    time.sleep(LATENCY_S)
    return bytes(number % 251 for _ in range(2_000))


def checked(record: bytes) -> int:
    """A checksum of a record."""
    return zlib.crc32(record)


def main() -> None:
    """The largest checksum."""
    records = [delayed(fetched)(number) for number in range(RECORDS)]
    print(delayed(max)([delayed(checked)(record) for record in records]).compute())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
