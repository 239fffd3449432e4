"""Finding: gc-pressure.

Builds indexes of millions of small objects that live on: the garbage collector goes through all
of them again and again.
"""

from __future__ import annotations

from dask import compute, delayed
from distributed import Client, LocalCluster

PARTS, ENTRIES = 6, 400_000


@delayed
def indexed(part: int) -> list[dict[str, list[int]]]:
    """An entry for each number."""
    return [
        {"of": [part, number], "to": [(part + number) * 7 % 1_009]} for number in range(ENTRIES)
    ]


@delayed
def counted(index: list[dict[str, list[int]]]) -> int:
    """How many entries point to a small number."""
    return sum(entry["to"][0] < 100 for entry in index)


def main() -> None:
    """The sum over all parts."""
    print(sum(compute(*[counted(indexed(part)) for part in range(PARTS)])))


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
