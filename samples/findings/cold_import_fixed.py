"""Finding: cold-import, after the fix.

Fits small trees. The workers import scikit-learn when they start.
"""

from __future__ import annotations

from dask import compute, delayed
from distributed import Client, LocalCluster


@delayed
def depth_of(seed: int) -> int:
    """The depth of a tree that was fitted to random data."""
    import numpy as np
    from sklearn.ensemble import RandomForestRegressor

    random = np.random.default_rng(seed)
    forest = RandomForestRegressor(n_estimators=5, random_state=seed)
    forest.fit(random.random((800, 5)), random.random(800))
    return max(tree.get_depth() for tree in forest.estimators_)


def main() -> None:
    """The depths of all trees."""
    print(sum(compute(*[depth_of(seed) for seed in range(24)])))


if __name__ == "__main__":
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            preload=["sklearn.ensemble"],
        ) as cluster,
        Client(cluster),
    ):
        main()
