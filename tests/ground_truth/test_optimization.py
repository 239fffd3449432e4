"""Delays planted in optimizers are read back as optimization, with the process they ran in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
import pytest
from dask._expr import Expr
from distributed import Client

import planted
from truth import appears_in, read_back, step_seconds

DELAY = 0.7


def slow_optimizer(log: str, delay: float) -> None:
    """A custom collection with a slow __dask_optimize__."""
    dask.compute(planted.SlowGraph(log, delay))


@pytest.mark.smoke
def test_a_slow_low_level_optimizer_runs_on_the_scheduler(cluster: Client, tmp_path: Path) -> None:
    """It is optimization, step lowlevel, and its role says where it ran."""
    reading = read_back(slow_optimizer, DELAY, tmp_path)
    seconds = reading.seconds("optimize")
    scheduler = cluster.run_on_scheduler(os.getpid)
    assert {t["pid"] for t in reading.truth} == {scheduler}
    appears_in(reading, {"optimization": seconds})
    found = step_seconds(reading.recording, "lowlevel", "scheduler")
    assert found == pytest.approx(seconds, rel=0.05, abs=0.05)


def test_a_slow_low_level_optimizer_runs_on_the_client_locally(
    local_scheduler: str, tmp_path: Path
) -> None:
    """On a local scheduler the same delay is the client's."""
    reading = read_back(slow_optimizer, DELAY, tmp_path)
    seconds = reading.seconds("optimize")
    appears_in(reading, {"optimization": seconds})
    found = step_seconds(reading.recording, "lowlevel", "client")
    assert found == pytest.approx(seconds, rel=0.05, abs=0.05)


def test_optimizing_alone_is_optimization(tmp_path: Path) -> None:
    """`dask.optimize` computes nothing, whatever scheduler there is."""
    reading = read_back(
        lambda log, delay: dask.optimize(planted.SlowGraph(log, delay)), 0.7, tmp_path
    )
    seconds = reading.seconds("optimize")
    appears_in(reading, {"optimization": seconds})
    assert step_seconds(reading.recording, "lowlevel", "client") >= seconds


@pytest.fixture
def slow_rewrite(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Makes the first simplification of an expression slow."""
    plan: dict[str, Any] = {"log": "", "seconds": 0.0}
    simplify = Expr.simplify

    def slowly(self: Any, *args: Any, **kwargs: Any) -> Any:
        if plan["log"]:
            log, plan["log"] = plan["log"], ""
            planted.timed_sleep(log, "rewrite", plan["seconds"])
        return simplify(self, *args, **kwargs)

    monkeypatch.setattr(Expr, "simplify", slowly)
    return plan


def test_a_slow_rewrite_of_an_expression_runs_on_the_client(
    cluster: Client, slow_rewrite: dict[str, Any], tmp_path: Path
) -> None:
    """It is optimization, step expr, at the client."""
    frame = pd.DataFrame({"x": range(10), "y": range(10)})

    def program(log: str, delay: float) -> None:
        ddf = dd.from_pandas(frame, npartitions=2)
        slow_rewrite.update(log=log, seconds=delay)
        ddf.x.sum().compute()

    reading = read_back(program, DELAY, tmp_path)
    seconds = reading.seconds("rewrite")
    assert seconds >= DELAY
    appears_in(reading, {"optimization": seconds})
    found = step_seconds(reading.recording, "expr", "client")
    assert found == pytest.approx(seconds, rel=0.05, abs=0.06)
