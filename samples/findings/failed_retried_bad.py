"""Finding: failed-retried.

Scores molecules and notes each score in a register that turns away every third caller at first:
the task is run again, with all that it had done before.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

MOLECULES = 30


class Busy(Exception):
    """The register is busy."""


def register(molecule: int, score: float, folder: str) -> None:
    """Note a score; the first call for every third molecule is refused."""
    called = Path(folder) / str(molecule)
    if molecule % 3 == 0 and not called.exists():
        called.touch()
        raise Busy(f"molecule {molecule}: try again")
    called.write_text(str(score))


@delayed
def scored(molecule: int, folder: str) -> float:
    """The score of a molecule."""
    random = np.random.default_rng(molecule)
    score = round(float(np.sort(random.random(2_500_000), kind="stable")[1_000_000]), 6)
    register(molecule, score, folder)
    return score


def main() -> None:
    """The sum of all scores."""
    with TemporaryDirectory() as folder:
        scores = compute(*[scored(number, folder) for number in range(MOLECULES)], retries=2)
        print(f"{sum(scores):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
