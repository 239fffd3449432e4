"""Layers that Dask makes several of at once are of the line that asked for them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.bag as db
import numpy as np
import pytest

from stageprof_collectors.recording import Recording
from truth import record


class Stored:
    """What Dask reads piece by piece, as it does from Zarr, HDF5 and netCDF."""

    shape, dtype, ndim = (8, 8), np.dtype("f8"), 2

    def __getitem__(self, index: Any) -> Any:
        return np.ones(self.shape)[index]


def lines_of(recording: Recording) -> dict[str, int]:
    """The line of each prefix with tasks, in this file; 0: none."""
    table = recording.layers().query("tasks > 0")
    lines = table["line"].where(table["file"] == __file__, 0)
    return dict(zip(table["prefix"].tolist(), lines.tolist(), strict=True))


@pytest.mark.parametrize("inline", [False, True])
def test_what_is_read_piece_by_piece_is_of_the_line_that_opens_it(inline: bool) -> None:
    """It was of no line, for Dask makes two layers of it: the store, and its pieces."""

    def program() -> None:
        opened = da.from_array(Stored(), chunks=4, name="stored-" + "0" * 32, inline_array=inline)
        assert opened.sum().compute(scheduler="sync", optimize_graph=False) == 64

    lines = lines_of(record(program))
    assert lines["stored"] == program.__code__.co_firstlineno + 1
    assert lines["sum"] == program.__code__.co_firstlineno + 2


def test_a_decomposition_is_of_its_line_and_what_it_is_made_of_is_not() -> None:
    """Also where that was made before the recording began, and nobody knows at which line."""
    before = da.random.default_rng(1).normal(size=(40, 4), chunks=(10, 4))

    def program() -> None:
        q, _ = da.linalg.qr(before)
        q.sum().compute(scheduler="sync", optimize_graph=False)

    lines = lines_of(record(program))
    assert lines["normal"] == 0
    qr = {line for prefix, line in lines.items() if "qr" in prefix}
    assert qr == {program.__code__.co_firstlineno + 1}


def test_all_of_a_bags_groupby_is_of_its_line() -> None:
    """The barrier, whose key is a text, was of none."""

    def program() -> None:
        bag = db.from_sequence(range(8), npartitions=2)
        bag.groupby(bool, shuffle="disk").compute(scheduler="sync", optimize_graph=False)

    lines = lines_of(record(program))
    grouped = {line for prefix, line in lines.items() if "groupby" in prefix or prefix == "partd"}
    assert "groupby-barrier" in lines
    assert grouped == {program.__code__.co_firstlineno + 2}
