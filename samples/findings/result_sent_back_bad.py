"""Finding: result-sent-back.

Gathers simulated scans to the client, only to hand them to the next step.
"""

from __future__ import annotations

import numpy as np
from distributed import Client, LocalCluster

SCANS = 40
SIDE = 1_400


def scan(seed: int) -> np.ndarray:
    """One scan."""
    return np.random.default_rng(seed).gamma(2.0, size=(SIDE, SIDE))


def contrast(image: np.ndarray) -> float:
    """How far the scan's points differ, its rows at one level."""
    return float((image - image.mean(axis=1, keepdims=True)).std())


def main(client: Client) -> None:
    """The mean contrast of all scans."""
    scans = client.gather(client.map(scan, range(SCANS)))
    print(f"{np.mean(client.gather(client.map(contrast, scans))):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
