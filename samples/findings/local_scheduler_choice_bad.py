"""Finding: local-scheduler-choice.

Counts letters in pure Python on the threads scheduler: only one thread at a time may run.
"""

from __future__ import annotations

import os

from dask import compute, delayed

TEXTS = 2 * (os.cpu_count() or 2)


@delayed
def counted(seed: int) -> int:
    """How often one letter follows another in a made-up text."""
    state, found = seed + 1, 0
    for _ in range(6_000_000):
        state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
        found += state % 29 == 0
    return found


def main(scheduler: str = "threads") -> None:
    """The sum over all texts."""
    print(sum(compute(*[counted(seed) for seed in range(TEXTS)], scheduler=scheduler)))


if __name__ == "__main__":
    main()
