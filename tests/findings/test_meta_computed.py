"""The rule meta-computed: what Dask computes only to learn what a function returns."""

from __future__ import annotations

from typing import Any

import dask
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

import stageprof
from findings.asking import asked, one, run
from findings.crowded import Program, calls
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import compute_in_loop, repeated_compute
from stageprof_collectors.rules.meta_computed import RULE
from stageprof_collectors.rules.optimization_slow import RULE as OPTIMIZATION


def looked_at(times: int = 1, *, work: float = 300.0) -> Recording:
    """So often the first of eight readings is computed and looked at, then all are."""
    made = Program()
    made.made("reading", 12)
    keys = calls(8, "reading")
    for i in range(times):
        [look] = calls(1, "make_meta")
        made.tasks([keys[i], look], work=work / 2, chain=True)
    made.tasks(keys, work=100.0)
    return made.recording()


def test_the_function_its_line_and_what_it_costs_are_named() -> None:
    found = one(RULE, looked_at())

    assert found.headline.startswith(
        "Dask ran `reading` at etl.py:12 once only to learn what it returns: "
    )
    assert found.cost_s == pytest.approx(0.302, rel=0.01)  # two messages of a millisecond
    assert found.saving_s == pytest.approx((0.302, 0.302), rel=0.02)
    assert (found.where.line, found.where.prefix) == (12, "reading")


def test_many_looks_are_one_finding() -> None:
    found = one(RULE, looked_at(3))
    assert "3 times only to learn" in found.headline
    assert found.cost_s == pytest.approx(3 * 0.302, rel=0.01)


def test_a_short_look_is_nothing() -> None:
    assert not asked(RULE, looked_at(work=10.0))


def test_the_first_partition_is_not_said_to_be_computed_again() -> None:
    assert not asked(repeated_compute.RULE, looked_at())


def test_programs_that_ask_nothing_cost_nothing() -> None:
    made = Program()
    made.tasks(calls(4), work=10.0)
    assert not asked(RULE, made.recording())


# -- on a cluster ----------------------------------------------------------------------------------


def reading(number: int) -> pd.DataFrame:
    """A partition that takes a while."""
    return pd.DataFrame({"id": np.arange(1000) + number, "value": np.full(1000, 1.0)})


@pytest.mark.smoke
@pytest.mark.cluster
def test_frames_of_delayed_calls_are_looked_at_once_and_not_if_meta_is_given(
    client: Client,
) -> None:
    """As the printed code does."""
    parts = [dask.delayed(reading)(i) for i in range(4)]
    with stageprof.profile() as region:
        total = dd.from_delayed(parts).value.sum().compute()

    found = one(RULE, region.recording, share=0.0)

    assert found.evidence["computes"] == 1
    assert found.where.prefix == "reading"
    meta = run(found)["meta"]
    with stageprof.profile() as after:
        assert dd.from_delayed(parts, meta=meta).value.sum().compute() == total
    assert not asked(RULE, after.recording, share=0.0)


@pytest.mark.cluster
def test_partitions_computed_one_after_another_are_a_loop_and_no_repeated_work(
    client: Client,
) -> None:
    with stageprof.profile() as region:
        ddf = dd.from_map(reading, list(range(6)))
        for i in range(6):
            ddf.get_partition(i).compute()

    recording = region.recording
    found = one(RULE, recording, share=0.0)
    computes: Any = found.evidence["computes"]
    assert computes >= 6  # each chooses another partition
    assert one(compute_in_loop.RULE, recording, share=0.0).evidence["computes"] == 6
    assert not asked(repeated_compute.RULE, recording, share=0.0)
    waited = asked(OPTIMIZATION, recording, share=0.0, seconds=0.0, operations=0.0)
    optimized: Any = recording.stages()["wall_s"]["optimization"]
    assert waited
    assert all(f.cost_s < optimized - 0.5 * found.cost_s for f in waited)


@pytest.mark.cluster
def test_the_item_that_a_bag_takes_to_become_a_frame_is_such_a_look(client: Client) -> None:
    """What the user takes is none."""
    bag = db.from_sequence([{"id": i} for i in range(100)], npartitions=4)
    with stageprof.profile() as region:
        bag.take(1)
        frame = bag.to_dataframe()
        frame.id.sum().compute()
    assert one(RULE, region.recording, share=0.0).evidence["computes"] == 1
