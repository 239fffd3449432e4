"""Rule misaligned-chunks: chunks that cut across those of a compressed file."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findings.asking import asked, one, run
from findings.busy import FILE, Busy
from replay.handmade import ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.misaligned_chunks import RULE, Shapes, aligned
from stageprof_runtime.event import FLAME, NODE
from stageprof_runtime.loaded import Unused
from stageprof_runtime.plan import plan_of, unused
from stageprof_runtime.stage import STEP

TOKEN, LAST = "1a" * 16, "2b" * 16
LOADED = f"array-{TOKEN}"
LABEL = "4800x4800 200x4800 4800x200"


def program(
    times: float = 8.0, *, label: str = LABEL, ran: str = LOADED, looks: tuple[int, int] = (0, 0)
) -> Recording:
    """Ten tasks of 500 ms; of looks at them some saw the library that reads, and others not."""
    busy = Busy()
    busy.tasks("array", 10, 500, layer=ran)
    for name in (LOADED, f"sum-{LAST}"):
        busy.unused(name, "stored", label, LOADED, 1_000, round(1_000 * times))
    busy.line(LOADED, 12)
    step, files = STEP["compute"], ("site-packages/h5py/_hl/dataset.py", FILE)
    for node, (count, file) in enumerate(zip(looks, files, strict=True)):
        busy.worker(NODE, node, -1, "read", file, 1)
        busy.worker(FLAME, ns(1), step, "array", "library", node, count, count * 50_000_000)
    return busy.recording()


def test_it_names_both_shapes_the_line_and_what_unpacking_again_costs() -> None:
    found = one(RULE, program())

    assert found.headline.startswith(
        "Chunks of 4,800 x 200 at etl.py:12 cut across the file's of 200 x 4,800, each of which "
        "is unpacked 8.0 times: 4.38 s"
    )
    assert (found.where.file, found.where.line) == (FILE, 12)
    assert found.cost_s == pytest.approx(5 * 7 / 8, rel=0.01)
    assert found.saving_s[1] == pytest.approx(5 * 7 / 8, rel=0.02)


def test_only_the_time_in_the_library_that_unpacks_counts() -> None:
    found = one(RULE, program(looks=(30, 70)))

    assert found.evidence["reading_share"] == pytest.approx(0.3)
    assert found.cost_s == pytest.approx(0.3 * 5 * 7 / 8, rel=0.02)
    assert found.saving_s[0] < found.cost_s < found.saving_s[1]


@pytest.mark.parametrize(("times", "fires"), [(1.5, True), (1.45, False), (0.0, False)])
def test_it_takes_half_as_much_again(times: float, fires: bool) -> None:
    assert bool(asked(RULE, program(times))) == fires


def test_each_task_unpacks_a_chunk_once_at_most() -> None:
    """Of a hundred pieces ten were needed."""
    assert one(RULE, program(100.0)).evidence["times_unpacked"] == 10


@pytest.mark.parametrize("ran", [LOADED, f"sum-{LAST}", f"array-add-sum-{LAST}"])
def test_the_layer_is_the_one_with_which_dask_fused_what_loads(ran: str) -> None:
    assert one(RULE, program(ran=ran)).where.layer == ran


def test_the_task_that_is_the_file_is_not_what_loads() -> None:
    assert asked(RULE, program(ran=f"original-{LOADED}")) == []


def test_two_layers_that_may_have_loaded_are_one_finding() -> None:
    """Where Dask does not fuse, the one above loads nothing."""
    busy = Busy()
    for name in (f"sum-{LAST}", LOADED):
        busy.tasks("array", 10, 500, layer=name)
    for name in (LOADED, f"sum-{LAST}"):
        busy.unused(name, "stored", LABEL, LOADED, 1_000, 8_000)

    assert one(RULE, busy.recording()).where.layer == LOADED


@pytest.mark.parametrize(
    "label", ["", "removed 1a2b", "4x4 2x2", "0x4 2x2 1x4", "4x4x4 2x2 4x2", "٤x4 2x2 1x4"]
)
def test_shapes_that_are_left_out_or_make_no_sense_are_not_named(label: str) -> None:
    found = one(RULE, program(label=label))

    assert found.headline.startswith("The chunks at etl.py:12 cut across those of the file")
    assert "chunks=source.chunks" in found.fix.code


# -- the fix ------------------------------------------------------------------------------------


def test_the_code_asks_for_whole_chunks_of_the_file() -> None:
    x = run(one(RULE, program()), source=np.ones((4800, 4800), "i1"))["x"]

    assert x.chunksize == (200, 4800)


@pytest.mark.parametrize(
    ("shapes", "chunks"),
    [
        (((4000, 4000), (400, 4000), (4000, 400)), (400, 4000)),
        (((4000, 4000), (100, 100), (1050, 1050)), (600, 1100)),
        (((4000, 4000), (1000, 1000), (100, 100)), (1000, 1000)),
        (((950, 10), (100, 10), (150, 10)), (100, 10)),
    ],
)
def test_pieces_are_whole_chunks_and_about_as_large(shapes: Any, chunks: tuple[int, ...]) -> None:
    assert aligned(Shapes(*shapes)) == chunks


_SIZE = st.integers(1, 10**17)


@given(st.lists(st.tuples(_SIZE, _SIZE, _SIZE), min_size=1, max_size=6))
def test_whatever_the_shapes_no_piece_cuts_a_chunk(dims: list[tuple[int, int, int]]) -> None:
    whole, stored, wanted = zip(*dims, strict=True)
    found = aligned(Shapes(whole, stored, wanted))

    for piece, size, end in zip(found, stored, whole, strict=True):
        assert piece == end or piece % size == 0
    assert math.prod(found) <= max(math.prod(stored), math.prod(wanted))


# -- what the graph says ------------------------------------------------------------------------


def rows(array: Any) -> list[Unused]:
    from dask.base import collections_to_expr

    return list(unused(plan_of(collections_to_expr([array]).optimize())))


@pytest.fixture(name="dataset")
def _dataset(tmp_path: Path) -> Any:
    """An array in a file: 40 x 40 in compressed chunks of 4 x 40."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        data = np.arange(1600.0).reshape(40, 40)
        file.create_dataset("plain", data=data, chunks=(4, 40))
        yield file.create_dataset("packed", data=data, chunks=(4, 40), compression="gzip")


@pytest.mark.parametrize("inline", [False, True])
def test_chunks_that_cut_across_are_seen_with_what_may_be_fused(dataset: Any, inline: bool) -> None:
    array = da.from_array(dataset, chunks=(40, 4), inline_array=inline)

    found = rows((array + 1).sum(axis=0))

    assert {(row.how, row.label, row.used, row.total) for row in found} == {
        ("stored", "40x40 4x40 40x4", 1600, 16_000)
    }
    assert [row.name.partition("-")[0] for row in found[:3]] == ["array", "add", "sum"]
    assert {row.variable for row in found} == {array.name}


class Zarr:
    """An array as zarr has them: its plugin of pytest keeps it out of where the tests run."""

    shape, chunks, dtype, ndim = (40, 40), (4, 40), np.dtype("f8"), 2

    def __getitem__(self, index: Any) -> Any:
        return np.ones(self.shape)[index]


def test_arrays_of_zarr_are_asked_for_their_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zarr", SimpleNamespace(Array=Zarr))
    array = da.from_array(Zarr(), chunks=(40, 4), name="zarr-array")

    assert {row.label for row in rows(array + 1)} == {"40x40 4x40 40x4"}


def test_arrays_of_zarr_are_seen_within_those_of_xarray_too(tmp_path: Path) -> None:
    zarr, xarray = pytest.importorskip("zarr"), pytest.importorskip("xarray")
    made = xarray.Dataset({"x": (("a", "b"), np.arange(1600.0).reshape(40, 40))})
    encoding = {"x": {"chunks": (4, 40), "scale_factor": 0.5, "dtype": "i4", "_FillValue": -1}}
    made.to_zarr(tmp_path / "x.zarr", encoding=encoding, consolidated=False)

    path = tmp_path / "x.zarr"
    plain = da.from_array(zarr.open_array(path / "x", mode="r"), chunks=(40, 4))
    with pytest.warns(UserWarning, match="separate the stored chunks"):
        opened = xarray.open_zarr(path, chunks={"a": 40, "b": 4}, consolidated=False)

    for array in (plain, opened["x"].data):
        assert {row.label for row in rows(array + 1)} == {"40x40 4x40 40x4"}


@pytest.mark.parametrize("chunks", [(4, 40), (8, 40), (40, 40), "auto"])
def test_whole_chunks_are_nothing_to_tell(dataset: Any, chunks: Any) -> None:
    assert rows(da.from_array(dataset, chunks=chunks) + 1) == []


def test_only_what_is_cut_is_unpacked_twice(dataset: Any) -> None:
    """Pieces of 6 rows over chunks of 4: each second chunk is cut."""
    [row, *_] = rows(da.from_array(dataset, chunks=(6, 40)) + 1)

    assert row.total == (4 * (2 + 2 + 2 + 2 + 2 + 2) + 4) * 40


def test_chunks_that_are_not_compressed_are_read_in_part(dataset: Any) -> None:
    assert rows(da.from_array(dataset.file["plain"], chunks=(40, 4)) + 1) == []


def test_a_file_that_is_closed_harms_nobody(dataset: Any) -> None:
    array = da.from_array(dataset, chunks=(40, 4))
    dataset.file.close()

    assert rows(array + 1) == []


def test_a_slice_that_needs_one_piece_unpacks_nothing_twice(dataset: Any) -> None:
    array = da.from_array(dataset, chunks=(40, 4))
    assert rows(array[:, 3]) == []
    assert rows((array + 1)[:, 3].sum()) == []
    assert {(row.used, row.total) for row in rows((array + 1)[:, :8])} == {(1600, 3200)}


def test_arrays_in_memory_are_no_files() -> None:
    assert rows(da.from_array(np.ones((40, 40)), chunks=(40, 4)) + 1) == []
