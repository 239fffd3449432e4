"""Programs without a cluster: local schedulers tell neither the types nor the bytes of results."""

from __future__ import annotations

from collections.abc import Callable

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import stageprof
from findings.asking import asked, one
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import large_graph, read_bandwidth, repeated_compute

LOCAL = ("synchronous", "threads")


def chunks() -> object:
    return (da.ones((30, 30), chunks=(1, 1)) + 1).sum().compute()


def of_unknown_length() -> object:
    column = dd.from_pandas(pd.DataFrame({"a": np.arange(600) % 7}), npartitions=600).a
    return (column.to_dask_array() + 1).sum().compute()


def partitions() -> object:
    frame = dd.from_pandas(pd.DataFrame({"a": np.arange(600) % 7}), npartitions=600)
    return frame.a.sum().compute(), (frame.a + 1).max().compute()


def bag() -> object:
    return db.from_sequence(range(600), npartitions=600).map(abs).frequencies().compute()


def loop() -> object:
    return [da.ones((10,), chunks=5).sum().compute() for _ in range(6)]


def chain() -> object:
    link = dask.delayed(abs)(-1)
    for _ in range(20):
        link = dask.delayed(abs)(link)
    return link.compute()


def nothing() -> object:
    return da.zeros((0,), chunks=1).sum().compute()


def failing() -> None:
    with pytest.raises(TypeError):
        dask.delayed(abs)("x").compute()


def reads() -> object:
    return dask.compute(*[dask.delayed(abs, name=f"read-{i}")(i) for i in range(30)])


def again() -> object:
    frame = dd.from_pandas(pd.DataFrame({"a": [3, 1, 2, 0]}), npartitions=2)
    shuffled = frame.shuffle("a", shuffle_method="tasks")
    return shuffled.a.sum().compute(), shuffled.a.min().compute()


PROGRAMS = (chunks, partitions, bag, loop, chain, nothing, failing, reads, again)


def recorded(program: Callable[[], object], scheduler: str = "synchronous") -> Recording:
    with dask.config.set(scheduler=scheduler), stageprof.profile() as prof:
        program()
    return prof.recording


@pytest.mark.parametrize("scheduler", LOCAL)
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_rule_fails_on_a_local_scheduler(program: Callable[[], object], scheduler: str) -> None:
    recording = recorded(program, scheduler)
    recording.findings()
    assert not recording.coverage()["rules_failed"]


@pytest.mark.parametrize("program", [of_unknown_length, partitions, bag])
def test_many_pieces_of_unknown_size_are_told_by_their_number(
    program: Callable[[], object],
) -> None:
    found = one(large_graph.RULE, recorded(program), share=0.0)
    assert "tasks on pieces of a collection" in found.headline
    assert not {"piece_bytes", "target_bytes"} & set(found.evidence)
    assert "0 B" not in found.headline + found.fix.text
    assert found.fix.code == ""
    assert found.evidence["times_fewer"] in (2, 5, 10)


def test_reads_of_unknown_size_are_not_taken_for_small_ones() -> None:
    limits = {"least_s": 0.0, "share": 0.0, "cpu": 2.0}
    assert asked(read_bandwidth.RULE, recorded(reads), **limits) == []


def test_bytes_that_nobody_told_are_left_out_of_what_was_done_again() -> None:
    found = one(repeated_compute.RULE, recorded(again), share=0.0)
    assert "0 B" not in found.headline + found.fix.text
    assert "kept_bytes" not in found.evidence
