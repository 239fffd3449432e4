"""Rule misaligned-chunks: chunks that cut across those of a compressed file."""

from __future__ import annotations

import math
import sys
import threading
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


def test_arrays_of_one_layer_share_its_time() -> None:
    """One that is aligned takes as much of it as it has elements."""
    busy = Busy()
    busy.tasks("array", 10, 500, layer=LOADED)
    busy.unused(LOADED, "stored", LABEL, LOADED, 1_000, 8_000)
    busy.unused(LOADED, "stored", LABEL, "array-other", 8_000, 8_000)

    assert one(RULE, busy.recording()).cost_s == pytest.approx(5 * 7 / 16, rel=0.01)


def test_what_one_line_asks_for_in_several_computations_is_one_finding() -> None:
    busy = Busy()
    busy.line(LOADED, 12)
    for i, ran in enumerate((f"sum-{LAST}", f"max-{LAST}")):
        busy.tasks("array", 10, 500, layer=ran)
        for name in (LOADED, ran):
            busy.unused(name, "stored", LABEL, LOADED, 1_000, 8_000, t=i)

    found = one(RULE, busy.recording())
    assert found.evidence["tasks"] == 20
    assert found.evidence["arrays"] == 1


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
    """An array of 1.28 MB in a file: 400 x 400 in compressed chunks of 40 x 400; none is kept."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w", rdcc_nbytes=0) as file:
        data = np.arange(160_000.0).reshape(400, 400)
        file.create_dataset("plain", data=data, chunks=(40, 400))
        file.create_dataset("small", data=data[:100, :100], chunks=(10, 100), compression="gzip")
        yield file.create_dataset("packed", data=data, chunks=(40, 400), compression="gzip")


def told(array: Any) -> set[tuple[str, str, int]]:
    """What is told of an array's source: kind, shapes, and how often each chunk is unpacked."""
    return {(row.how, row.label, row.total // row.used) for row in rows(array)}


CUT = ("stored", "400x400 40x400 400x40", 10)


@pytest.mark.parametrize("inline", [False, True])
def test_chunks_that_cut_across_are_seen_with_what_may_be_fused(dataset: Any, inline: bool) -> None:
    array = da.from_array(dataset, chunks=(400, 40), inline_array=inline)

    found = rows((array + 1).sum(axis=0))

    assert told((array + 1).sum(axis=0)) == {CUT}
    assert [row.name.partition("-")[0] for row in found[:3]] == ["array", "add", "sum"]
    assert {row.variable for row in found} == {array.name}


@pytest.mark.parametrize("chunks", [(40, 400), (80, 400), (400, 400), "auto"])
def test_of_whole_chunks_none_is_unpacked_twice(dataset: Any, chunks: Any) -> None:
    """They are told of, for they take some of the time of a layer that loads others too."""
    assert {often for _, _, often in told(da.from_array(dataset, chunks=chunks) + 1)} == {1}


def test_only_what_is_cut_is_unpacked_twice(dataset: Any) -> None:
    """Pieces of 60 rows over chunks of 40: each second chunk is cut."""
    [row, *_] = rows(da.from_array(dataset, chunks=(60, 400)) + 1)

    assert row.total == (40 * (2 + 2 + 2 + 2 + 2 + 2) + 40) * 400


def test_a_chunk_that_is_kept_until_its_next_part_is_read_is_unpacked_once(dataset: Any) -> None:
    """HDF5 keeps some MB of each array: a row of chunks here, but not all of them."""
    path = dataset.file.filename
    dataset.file.close()
    with pytest.importorskip("h5py").File(path, rdcc_nbytes=200_000) as file:
        by_rows = da.from_array(file["packed"], chunks=(60, 400))
        by_columns = da.from_array(file["packed"], chunks=(400, 40))
        assert {often for _, _, often in told(by_rows + 1)} == {1}
        assert told(by_columns + 1) == {CUT}


@pytest.mark.parametrize("name", ["plain", "small"])
def test_what_is_not_compressed_or_small_is_nothing_to_tell(dataset: Any, name: str) -> None:
    array = dataset.file[name]
    assert rows(da.from_array(array, chunks=(array.shape[0], 10)) + 1) == []


def test_a_file_that_is_closed_harms_nobody(dataset: Any) -> None:
    array = da.from_array(dataset, chunks=(400, 40))
    dataset.file.close()

    assert rows(array + 1) == []


def test_while_a_thread_reads_nobody_waits_for_h5py(dataset: Any) -> None:
    phil = pytest.importorskip("h5py._objects").phil
    array = da.from_array(dataset, chunks=(400, 40)) + 1
    reading, over = threading.Event(), threading.Event()

    def read() -> None:
        with phil:
            reading.set()
            over.wait(30)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert reading.wait(30)
        assert rows(array) == []
    finally:
        over.set()
        thread.join()
    assert told(array) == {CUT}


def test_of_a_slice_that_needs_some_pieces_nothing_is_told(dataset: Any) -> None:
    """Each chunk may be unpacked for one of them only."""
    array = da.from_array(dataset, chunks=(400, 40))
    assert rows(array[:, 3]) == []
    assert rows((array + 1)[:, 3].sum()) == []
    assert rows(array.blocks[0, 0].sum()) == []
    assert told((array + 1)[::2].sum()) == {CUT}


def test_what_is_put_together_of_several_files_is_told_of_each(dataset: Any) -> None:
    array = da.from_array(dataset, chunks=(400, 40))
    other = da.from_array(dataset, chunks=(400, 40), name="array-other")
    for whole in (da.stack([array, other]), da.concatenate([array, other])):
        last = {row.variable: row.name for row in rows(whole.sum())}
        assert set(last) == {array.name, other.name}
        assert len(set(last.values())) == 1


class Zarr:
    """An array as zarr has them: its plugin of pytest keeps it out of where the tests run."""

    shape, chunks, dtype, ndim = (400, 400), (40, 400), np.dtype("f8"), 2
    compressors: tuple[str, ...] = ("zstd",)

    def __getitem__(self, index: Any) -> Any:
        return np.ones(self.shape)[index]


def test_arrays_of_zarr_are_asked_for_their_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zarr", SimpleNamespace(Array=Zarr))
    array = da.from_array(Zarr(), chunks=(400, 40), name="zarr-array")

    assert told(array + 1) == {CUT}
    monkeypatch.setattr(Zarr, "compressors", ())
    assert rows(array + 1) == []


def test_arrays_of_zarr_are_seen_within_those_of_xarray_too(tmp_path: Path) -> None:
    zarr, xarray = pytest.importorskip("zarr"), pytest.importorskip("xarray")
    values = np.arange(160_000.0).reshape(400, 400)
    made = xarray.Dataset({"x": (("a", "b"), values)})
    encoding = {"x": {"chunks": (40, 400), "scale_factor": 0.5, "dtype": "i8", "_FillValue": -1}}
    path = tmp_path / "x.zarr"
    made.to_zarr(path, encoding=encoding, consolidated=False)

    plain = da.from_array(zarr.open_array(path / "x", mode="r"), chunks=(400, 40))
    with pytest.warns(UserWarning, match="separate the stored chunks"):
        opened = xarray.open_zarr(path, chunks={"a": 400, "b": 40}, consolidated=False)
    turned = xarray.open_zarr(path, chunks=None, consolidated=False)["x"].transpose("b", "a")

    for array in (plain, opened["x"].data):
        assert told(array + 1) == {CUT}
    assert rows(turned.chunk({"a": 40, "b": 400}).data + 1) == []


def test_arrays_in_memory_are_no_files() -> None:
    assert rows(da.from_array(np.ones((40, 40)), chunks=(40, 4)) + 1) == []
