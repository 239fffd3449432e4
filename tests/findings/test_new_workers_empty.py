"""The rule new-workers-empty: C22, C23, C24, C35."""

from __future__ import annotations

import dask.array as da
import pytest
from distributed import Client, LocalCluster, wait

from findings.trained import TRAINING, Trained, after, findings
from stageprof_collectors.rules import pieces_per_thread
from stageprof_collectors.rules.new_workers_empty import RULE


def grown(pieces: int = 10) -> Trained:
    """The second worker joins after the first training, whose data stays where it is."""
    made = Trained(held=1, pieces=pieces)
    made.training([0], [0])
    made.joins(1)
    made.training([0], [0], keys="other-3c4d")
    return made


def test_a_worker_that_joined_after_the_pieces_were_placed_is_found_empty() -> None:
    """C22, C23: the new worker has no data, and does not train."""
    (found,) = findings(RULE, grown().end())

    assert found.evidence["workers"] == 2
    assert found.evidence["workers_empty"] == 1
    assert found.cost_s == pytest.approx(TRAINING / 1000)
    assert list(found.saving_s) == pytest.approx([TRAINING / 1000 / 5, TRAINING / 1000 / 2])
    assert "1 of 2 workers joined after the pieces of `x` were placed" in found.headline
    assert "trained without it (train.py:12)" in found.headline


def test_a_worker_that_was_there_when_the_pieces_were_placed_is_not_new() -> None:
    made = Trained(held=1)
    made.training([0, 1], [0, 1])

    assert not findings(RULE, made.end())


def test_too_few_pieces_for_the_workers_are_the_other_rules_to_tell() -> None:
    recording = grown(pieces=1).end()

    assert not findings(RULE, recording)
    assert findings(pieces_per_thread.RULE, recording)


@pytest.mark.cluster
def test_the_fix_gives_a_new_worker_pieces_where_rebalancing_does_not() -> None:
    """C22, C24, C35: after a real `cluster.scale`."""
    (found,) = findings(RULE, grown().end())
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        x = da.random.default_rng(2).random((1000, 15), chunks=(100, 15)).persist()
        y = x.sum(axis=1).persist()
        wait([x, y])
        total = float(y.sum().compute())
        cluster.scale(2)
        client.wait_for_workers(2)
        client.rebalance()
        assert sorted(len(keys) for keys in client.has_what().values()) == [0, 20]

        names = after(found.fix.code, x=x, y=y)

        for name in ("x", "y"):
            holders = [w for who in client.who_has(names[name]).values() for w in who]
            assert sorted(holders.count(w) for w in client.nthreads()) == [5, 5]
        assert float(names["y"].sum().compute()) == pytest.approx(total)
        del names, x, y
