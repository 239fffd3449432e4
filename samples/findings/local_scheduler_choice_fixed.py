"""Finding: local-scheduler-choice, after the fix.

Looks for repeated letters with regular expressions on the processes scheduler: each process has a
GIL of its own. There are few texts, so they are handed out one by one and not six at a time.
"""

from __future__ import annotations

import os
import re

import dask
from dask import compute, delayed

TEXTS = 2 * (os.cpu_count() or 2)
PATTERN = re.compile(r"\b\w*(\w)\w*\1\w*\b")


@delayed
def counted(seed: int) -> int:
    """How many words of a made-up text have a letter twice."""
    words = [chr(97 + (seed + n * n) % 26) * 3 + chr(97 + n % 26) * 9 for n in range(1_000)]
    line = " ".join(words * 20)
    return sum(len(PATTERN.findall(line)) for _ in range(250))


def main(scheduler: str = "processes") -> None:
    """The sum over all texts."""
    with dask.config.set(chunksize=1):
        print(sum(compute(*[counted(seed) for seed in range(TEXTS)], scheduler=scheduler)))


if __name__ == "__main__":
    main()
