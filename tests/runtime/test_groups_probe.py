"""The probe of groups: which reductions of xarray it notes, at which line, and why."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest

import stageprof
from stageprof_collectors.findings.grouped import Reduction, Reductions
from stageprof_runtime.probes import groups

xr = pytest.importorskip("xarray", reason="needs the extra `samples`")
pytest.importorskip("flox", reason="needs the extra `samples`")

DAYS = pd.date_range("2021-01-01", periods=730)


def rain(*, chunked: bool = True) -> Any:
    """Two years, in a chunk each."""
    data = da.ones((730, 3), chunks=(365, 3)) if chunked else np.ones((730, 3))
    return xr.DataArray(data, {"time": DAYS}, ("time", "gauge"), name="rain")


def noted(reduce: Callable[[], Any], *, use_flox: bool = False) -> list[Reduction]:
    """What a recording says of it."""
    with stageprof.profile() as prof, xr.set_options(use_flox=use_flox):
        reduce()
    return Reductions(prof.recording).all


def test_what_is_reduced_without_flox_is_noted_with_its_line() -> None:
    (found,) = noted(lambda: rain().groupby("time.month").mean())
    assert (found.groups, found.pieces, found.off) == (12, 2, True)
    code = test_what_is_reduced_without_flox_is_noted_with_its_line.__code__
    assert (found.file, found.line) == (__file__, code.co_firstlineno + 1)


def test_where_flox_is_not_installed_that_is_why(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(groups, "find_spec", lambda name: None if name == "flox" else find(name))
    (found,) = noted(lambda: rain().groupby("time.month").sum())
    assert not found.off


@pytest.mark.parametrize(
    ("reduce", "pieces"),
    [
        (lambda: rain().resample(time="QS").max(), 2),
        (lambda: xr.Dataset({"a": rain(), "b": rain()}).groupby("time.month").std(), 4),
        (lambda: rain().to_dataset().resample(time="QS").count(), 2),
    ],
)
def test_data_sets_and_resampling_too(reduce: Callable[[], Any], pieces: int) -> None:
    """Each for itself, of the chunks of all variables."""
    assert [found.pieces for found in noted(reduce)] == [pieces]


@pytest.mark.parametrize(
    "reduce",
    [
        lambda: rain(chunked=False).groupby("time.month").mean(),  # in memory
        lambda: rain().mean("time"),  # no groups
        lambda: rain().groupby("time.month").median(),  # flox would not do it
        lambda: rain().groupby("time.month").reduce(np.ptp),  # nor what the user wrote
        lambda: rain().groupby("time.month").map(lambda group: group - group[0]),
    ],
)
def test_what_flox_could_not_change_is_not_noted(reduce: Callable[[], Any]) -> None:
    assert not noted(reduce)


def test_with_flox_nothing_is_noted() -> None:
    assert not noted(lambda: rain().groupby("time.month").mean(), use_flox=True)


def test_results_and_errors_are_the_same() -> None:
    plain = rain().groupby("time.month").mean().compute()
    with stageprof.profile(), xr.set_options(use_flox=False):
        assert rain().groupby("time.month").mean().compute().equals(plain)
        with pytest.raises(ValueError, match="'altitude'"):
            rain().groupby("time.month").mean("altitude")
