"""Rule large-graph: A4, A8 (larger chunks, with the size), A39."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.utils import parse_bytes

import stageprof
from findings.asking import asked, one, run
from findings.crowded import FILE, Program, pieces
from findings.workers import Workers
from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.batch import rounded
from stageprof_collectors.findings.chunking import Chunking
from stageprof_collectors.findings.crowd import Kind
from stageprof_collectors.findings.larger import Pieces, larger
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.upstream import Upstream
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.large_graph import RULE

NBYTES = 320_000


def program(
    tasks: int = 600, work: float = 1.0, nbytes: int = NBYTES, type_: str = "numpy.ndarray"
) -> Recording:
    made = Program()
    made.made("sum", 17)
    made.tasks(pieces(tasks), work=work, type_=type_, nbytes=nbytes)
    return made.recording()


def test_many_small_chunks_are_named_with_a_size_that_is_worth_while() -> None:
    """A8: a warning with the target chunk size and the predicted effect."""
    found = one(RULE, program())

    assert "600 tasks on chunks of 320 kB, most of `sum` at etl.py:17" in found.headline
    assert (found.where.file, found.where.line) == (FILE, 17)
    # An overhead is a millisecond, and so is the work: twenty of these make a good task.
    assert found.evidence["times_fewer"] == 20
    assert found.evidence["target_bytes"] == 20 * NBYTES
    assert found.cost_s == pytest.approx(0.6)
    assert found.saving_s == pytest.approx((0.57, 0.57), rel=0.02)


@pytest.mark.parametrize(
    ("changed", "fires"),
    [
        ({"tasks": 499}, False),
        ({"work": 25.0}, False),  # overhead is 4 % of the run
        ({"nbytes": 100_000_000}, False),  # two of them would be too large
        ({"type_": "pandas.core.frame.DataFrame"}, True),
        ({"type_": "list"}, False),  # a bag's: another rule
    ],
)
def test_it_fires_for_many_small_pieces_only(changed: dict[str, object], fires: bool) -> None:
    assert bool(asked(RULE, program(**changed))) == fires  # type: ignore[arg-type]


def test_an_object_that_travels_with_the_tasks_is_no_cost_of_their_number() -> None:
    """Fewer tasks would not have it travel less; `embedded-object` tells what it costs."""
    made = Program()
    made.made("sum", 17)
    made.embedded(pieces(1)[0][0], dump=900.0, nbytes=1_000_000_000)
    made.client("serialization/graph.dump", 1000.0)
    made.tasks(pieces(600), work=1.0, type_="numpy.ndarray", nbytes=NBYTES)
    assert one(RULE, made.recording()).cost_s == pytest.approx(0.7)


def test_nor_is_the_way_of_its_bytes_in_their_messages() -> None:
    """Of 1.4 s messages with it take 0.4 s more than the others."""
    made = Program()
    made.embedded(f"scored-{'0' * 32}", nbytes=1_000_000)
    made.tasks(pieces(20, "scored"), work=1.0, lead=21.0, type_="numpy.ndarray", nbytes=NBYTES)
    made.tasks(pieces(980), work=1.0, type_="numpy.ndarray", nbytes=NBYTES)
    assert one(RULE, made.recording()).cost_s == pytest.approx(1.0, rel=0.02)


def test_where_they_are_made_no_more_become_one_than_leave_each_thread_some() -> None:
    """Ten thousand pieces are cut out of sixty: with three times as large ones there are twenty."""
    made = Program()
    made.tasks(pieces(60, "opened"), work=1.0, type_="numpy.ndarray", nbytes=NBYTES)
    recording = made.recording()
    crowd = recording.crowds.of(Kind.CHUNKS)
    assert crowd is not None
    chunking = Chunking(recording, crowd)
    assert (chunking.made.number, chunking.made.nbytes) == (60, NBYTES)
    threads = Overhead(recording, crowd).threads
    assert chunking.fewer(Overhead(recording, crowd)) <= 60 / (4 * threads)


@pytest.mark.usefixtures("client")
def test_what_from_map_calls_is_to_give_several() -> None:
    """It named a parameter of `from_pandas` only."""
    with stageprof.profile(gil=False) as prof:
        ddf = dd.from_map(_partition, range(600))
        assert ddf.x.sum().compute() == 600 * 599 / 2
    found = one(RULE, prof.recording)
    assert f"made, at test_large_graph.py:{_line_of('from_map(_partition, range(600))')}" in (
        found.fix.text
    )
    assert "of from_map, " in found.fix.code


def _partition(i: int) -> pd.DataFrame:
    return pd.DataFrame({"x": [i]})


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(("prefix", "block"), [("read_parquet", None), ("read-csv", 0)])
def test_of_files_whose_size_is_not_told_nothing_is_said_of_it(
    prefix: str, block: int | None
) -> None:
    """It was "each file of some size"."""
    made = Upstream(Row(prefix, prefix, FILE, 6))
    told, untold = (
        larger(0.001, Pieces(32, nbytes, True), 2, made, block=block).text for nbytes in (1e5, 0.0)
    )

    assert "of 100 kB" in told
    assert " of 100 kB" not in untold
    assert "some size" not in untold


def test_what_reads_a_partition_of_a_database_has_a_parameter_of_its_own() -> None:
    """It is a `delayed` of Dask's, of which nobody can have one do more."""
    made = Program()
    made.tasks([f"read_sql_chunk-{i:032x}" for i in range(600)], work=1.0, type_="DataFrame")
    row = Row("read_sql_chunk", "read_sql_chunk", FILE, 9)
    fix = larger(0.001, Pieces(600, 1e5, True), 5, Upstream(row, called=True, nbytes=1e5))
    assert "read_sql_table(..., npartitions=npartitions)" in fix.code
    assert "npartitions = 120" in fix.code


def room(recording: Recording) -> float:
    crowd = recording.crowds.of(Kind.CHUNKS) or recording.crowds.of(Kind.CALLS)
    assert crowd is not None
    return Chunking(recording, crowd)._room


def test_where_memory_is_short_pieces_grow_no_further_than_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that spilled was told to use chunks of 64 MB and not of 32."""
    made = Workers(1, 1000)
    last = made.run(0, 10, 500, cause=-1 - made.graph(0, 0, 0), wanted=True)
    made.spilled(0, 100, 200)
    made.wait(0, 510, last, 505)
    short = made.recording(510)
    assert room(short) == pytest.approx(50e6)  # of 1 GB for a thread
    assert room(program()) == math.inf

    monkeypatch.setattr(Chunking, "_room", 3.0 * NBYTES)
    assert one(RULE, program()).evidence["times_fewer"] == 2  # as people write 3
    monkeypatch.setattr(Chunking, "_room", 1.5 * NBYTES)
    assert asked(RULE, program()) == []


def test_few_large_inputs_do_not_hide_the_small_pieces_made_of_them() -> None:
    made = Program()
    made.tasks(pieces(6, "open"), work=1.0, type_="numpy.ndarray", nbytes=60_000_000)
    made.tasks(pieces(600), work=1.0, type_="numpy.ndarray", nbytes=NBYTES)
    assert one(RULE, made.recording()).evidence["piece_bytes"] == NBYTES


def test_what_is_left_of_a_reduction_may_not_grow_if_what_was_reduced_has_no_room_to() -> None:
    """The tiny pieces are most of them, but they are tiny because large ones were reduced."""
    made = Program()
    made.tasks(pieces(200, "read"), work=1.0, type_="numpy.ndarray", nbytes=96_000_000)
    made.tasks(pieces(600), work=1.0, type_="numpy.ndarray", nbytes=528)
    assert not asked(RULE, made.recording())


def test_printed_setting_makes_chunks_of_the_size() -> None:
    with dask.config.set({"array.chunk-size": "1MB"}):
        run(one(RULE, program()))
        chunk = da.ones((8_000, 8_000), chunks="auto").blocks[0, 0]
    assert 20 * NBYTES / 4 < chunk.nbytes <= 20 * NBYTES


def test_printed_code_is_of_use_where_the_program_says_how_large_chunks_are() -> None:
    """A setting alone changes nothing of `chunks=(200, 200)`."""
    printed: dict[str, Any] = {}
    with dask.config.set({"array.chunk-size": "1MB"}):
        exec(one(RULE, program()).fix.code, printed)
        chunk = da.ones((8_000, 8_000), chunks=printed["chunks"]).blocks[0, 0]
    assert 20 * NBYTES / 4 < chunk.nbytes <= 20 * NBYTES


def test_what_a_loop_computes_has_no_more_pieces_than_one_round_of_it() -> None:
    """Nine rounds of 80 partitions are not 720: four are left for the only thread, not half."""
    made = Program()
    for _ in range(9):
        made.tasks(pieces(80), work=0.2, type_="pandas.core.frame.DataFrame", nbytes=NBYTES)
    found = one(RULE, made.recording())
    assert found.evidence["times_fewer"] == 20
    assert run(found)["npartitions"] == 4


def test_printed_code_for_data_frames_makes_fewer_partitions() -> None:
    found = one(RULE, program(type_="pandas.core.frame.DataFrame"))
    assert "partitions of 320 kB" in found.headline
    names = run(found)
    frame = pd.DataFrame({"x": range(1000)})
    assert dd.from_pandas(frame, npartitions=names["npartitions"]).npartitions == 30
    assert "ddf" not in found.fix.code  # nobody knows what the user calls it
    assert "repartition" not in found.fix.code  # "changing it later adds tasks", says the text


def reading(block: int = 0) -> Recording:
    """Tasks that read a CSV file in pieces, and twice as many on what was read."""
    made = Program()
    made.made("read-csv", 12)
    made.made("sum", 17)
    frame = "pandas.core.frame.DataFrame"
    for i in range(3 if block else 0):
        made.made(f"read-block-{i * block}", 12)
    made.tasks(pieces(400, "read-csv"), work=1.0, type_=frame, nbytes=NBYTES)
    for name in ("sum", "mean"):
        made.tasks(pieces(400, name), work=1.0, type_=frame, nbytes=NBYTES)
    return made.recording()


def test_a_reader_of_few_partitions_is_not_what_makes_thousands() -> None:
    """`read_parquet` of twenty files, cut by days; or the other side of a join."""
    made = Program()
    made.made("read-parquet", 12)
    made.made("repartition-merge", 17)
    frame = "pandas.core.frame.DataFrame"
    made.tasks(pieces(20, "read-parquet"), work=1.0, type_=frame, nbytes=10 * NBYTES)
    made.tasks(pieces(1800, "repartition-merge"), work=1.0, type_=frame, nbytes=NBYTES)
    found = one(RULE, made.recording())
    assert "1,8" in found.headline
    assert "etl.py:17" in found.fix.text


def test_a_frame_that_is_read_is_to_be_read_in_larger_blocks(tmp_path: Path) -> None:
    """The value is in the code, and that of the file if it is known, not that in memory."""
    found = one(RULE, reading(block=400_000))
    blocksize = run(found)["blocksize"]
    assert parse_bytes(blocksize) == 400_000 * found.evidence["times_fewer"]
    assert "read_csv(..., blocksize=blocksize)" in found.fix.code
    assert "where the data are read or made, at etl.py:12" in found.fix.text

    file = tmp_path / "x.csv"
    file.write_text("x,y\n" + "1,2\n" * 2_000_000)
    assert dd.read_csv(file, blocksize=blocksize).npartitions == 2  # of 8 MB


def test_of_a_block_that_is_not_known_the_size_in_memory_is_taken() -> None:
    found = one(RULE, reading())
    blocksize = parse_bytes(run(found)["blocksize"])
    assert blocksize == pytest.approx(found.evidence["target_bytes"], rel=0.1)


def test_files_that_are_read_whole_are_to_be_read_together(tmp_path: Path) -> None:
    """No `blocksize` makes fewer partitions of small files."""
    made = Program()
    made.made("read-csv", 12)
    made.made("read-block-0", 12)
    made.tasks(pieces(600, "read-csv"), work=1.0, type_="pandas.DataFrame", nbytes=NBYTES)
    found = one(RULE, made.recording())
    k = found.evidence["times_fewer"]
    assert "whatever `blocksize` says" in found.fix.text
    assert f"About {k} together" in found.fix.text

    files = [tmp_path / f"{i}.csv" for i in range(30)]
    for i, file in enumerate(files):
        file.write_text(f"x\n{i}\n")
    frame = run(found)["read_together"](files)
    assert frame.npartitions == 2
    assert frame.x.compute().tolist() == list(range(30))


def test_chunks_of_many_files_are_to_be_those_of_one_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As xarray names what it opens; larger `chunks` would change nothing, for files have ends."""
    xarray = pytest.importorskip("xarray")
    written = []
    monkeypatch.setattr(xarray.Dataset, "to_zarr", lambda data, _: written.append(data.chunks))
    for i in range(4):
        times = {"time": range(10 * i, 10 * i + 10)}
        data = xarray.Dataset({"t": (("time", "x"), np.ones((10, 100)))}, times)
        data.to_netcdf(tmp_path / f"{i}.nc", engine="scipy")
    made = Program()
    made.made("open_dataset-t-original-concatenate", 17)
    keys = pieces(600, "open_dataset-t-original-concatenate")
    made.tasks(keys, work=1.0, type_="numpy.ndarray", nbytes=8_000)
    found = one(RULE, made.recording())

    assert "one store with chunks of about 160 kB instead of 8.0 kB" in found.fix.text
    as_one_store = run(found)["as_one_store"]
    as_one_store([tmp_path / f"{i}.nc" for i in range(4)], "store", engine="scipy", chunks={})
    assert [dict(chunks) for chunks in written] == [{"time": (40,), "x": (100,)}]


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask's `partition_on`
@pytest.mark.parametrize("prefix", ["read_parquet-fused", "read-parquet", "readparquetfsspec"])
def test_files_of_parquet_are_to_be_fewer_or_read_together(tmp_path: Path, prefix: str) -> None:
    """`from_pandas` of which the code was makes none of their partitions."""
    made = Program()
    made.made(prefix, 12)
    made.tasks(pieces(600, prefix), work=1.0, type_="pandas.DataFrame", nbytes=NBYTES)
    found = one(RULE, made.recording())
    assert "`partition_on`" in found.fix.text
    frame = pd.DataFrame({"day": [n % 10 for n in range(1000)], "x": range(1000)})
    dd.from_pandas(frame, npartitions=5).to_parquet(tmp_path, partition_on=["day"])
    read = run(found)["read_larger"](tmp_path, columns=["x"])
    assert (dd.read_parquet(tmp_path).npartitions, read.npartitions) == (50, 1)
    assert sorted(read.x.compute()) == list(range(1000))


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask's `read_parquet`
def test_files_that_are_read_by_arrows_own_file_systems_are_to_be_read_otherwise(
    tmp_path: Path,
) -> None:
    """No setting makes Dask read more of them in one task than the root of their number."""
    made = Program()
    made.made("readparquetpyarrowfs", 12)
    keys = pieces(600, "readparquetpyarrowfs")
    made.tasks(keys, work=1.0, type_="pandas.DataFrame", nbytes=NBYTES)
    found = one(RULE, made.recording())
    assert 'without `filesystem="arrow"`' in found.fix.text
    frame = pd.DataFrame({"x": range(100), "y": range(100)})
    dd.from_pandas(frame, npartitions=25).to_parquet(tmp_path / "all")
    with dask.config.set({"scheduler": "sync", "dataframe.parquet.minimum-partition-size": "1GB"}):
        one_column = dd.read_parquet(tmp_path / "all", filesystem="pyarrow")[["x"]]
        assert (one_column + 1).optimize().npartitions == 5
        read = run(found)["read_larger"](tmp_path / "all")
        assert read.npartitions == 1
        assert read.x.sum().compute() == 4950


def test_most_tasks_are_of_a_layer_only_if_they_are_most() -> None:
    """Of 1,865 tasks 240 read, and these were called most of them."""
    assert "1,200 tasks on partitions of 320 kB, 400 of `" in one(RULE, reading()).headline


@pytest.mark.parametrize(
    ("value", "shown"), [(0.3, 1), (1.9, 1), (4.9, 2), (7.0, 5), (10, 10), (750, 500), (1e6, 10**6)]
)
def test_numbers_are_rounded_as_people_write_them(value: float, shown: int) -> None:
    assert rounded(value) == shown
