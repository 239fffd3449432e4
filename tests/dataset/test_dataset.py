"""A dataset has the tables of its recordings as they are in pandas, is whole or is not there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dask
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import stageprof
from benchmarks.generate import generate
from replay.handmade import SCHEDULER, HandMade, ns
from stageprof.cli import main
from stageprof.dataset import _FACTS, NotADataset
from stageprof.export import parquet
from stageprof.schema import COLUMNS, MANIFEST, schema
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.frames import read_frames
from stageprof_collectors.storage.sliced import Sliced
from stageprof_runtime.batch import pack
from stageprof_runtime.event import FINISH, MARK, ONGOING, WANT, Place

#: What the files are called: digits only, what a path or a query would be confused by.
NAMES = ("001", "a=b;'<x>", "..b ")
#: What the list of a dataset says, but for the numbers of rows.
WHOLE = json.dumps(
    {
        "schema": "stageprof.dataset/1",
        "recordings": [
            {
                **dict.fromkeys(_FACTS, "x"),
                "complete": True,
                "wall_s": 1.0,
                "left_out": [],
                "rows": "ROWS",
            }
        ],
    }
).replace('"ROWS"', "ROWS")
#: What they are called in the dataset.
CALLED = ("001", "a_b_x", "b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three recordings, and `out`, a dataset of them."""
    found = tmp_path_factory.mktemp("dataset")
    for seed, name in enumerate(NAMES):
        generate(found / f"{name}.stageprof", tasks=60 + seed, workers=2, seed=seed)
    files = [str(found / f"{name}.stageprof") for name in NAMES]
    with dask.config.set(scheduler="synchronous"):
        assert main(["export", *files, "--to", "parquet", "-o", str(found / "out")]) == 0
    return found


@pytest.fixture(autouse=True)
def here() -> Iterator[None]:
    """Dask computes in this thread: there is nothing to wait for."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("table", COLUMNS)
def test_each_table_is_that_of_pandas(table: str, folder: Path) -> None:
    """The same names, types and values, and the recording's name behind."""
    frame = getattr(stageprof.dataset(folder / "out"), table)()
    found = frame.compute()

    assert found.dtypes.to_dict() == frame.dtypes.to_dict()
    for file, name in zip(NAMES, CALLED, strict=True):
        expected = _table(stageprof.open(folder / f"{file}.stageprof"), table)
        mine = found[found["recording"] == name].drop(columns="recording")
        assert list(mine.columns) == list(expected.columns)
        if len(expected):  # pandas cannot know of which type nothing is
            assert_frame_equal(mine.reset_index(drop=True), expected)


def _table(recording: stageprof.Recording, name: str) -> pd.DataFrame:
    made: pd.DataFrame = getattr(recording, "findings_frame" if name == "findings" else name)()
    return made.reset_index() if made.index.name else made


def test_only_what_is_asked_for_is_read(folder: Path) -> None:
    """Columns and conditions go down to the files."""
    tasks = stageprof.dataset(folder / "out").tasks()
    asked = tasks[(tasks["recording"] == "001") & (tasks["duration_s"] > 0.01)][["nbytes"]]
    read = asked.simplify().expr

    assert read.operand("columns") == ["nbytes"]
    wanted = {("recording", "==", "001"), ("duration_s", ">", 0.01)}
    assert set(read.operand("filters")[0]) == wanted
    known = tasks.compute()
    mine = known[(known["recording"] == "001") & (known["duration_s"] > 0.01)]
    assert asked.compute()["nbytes"].tolist() == mine["nbytes"].tolist()


def test_conditions_may_be_given(folder: Path) -> None:
    ds = stageprof.dataset(folder / "out")
    found = ds.stages(filters=[("stage", "==", "execution")]).compute()

    assert found["stage"].tolist() == ["execution"] * 3
    assert sorted(found["recording"]) == sorted(CALLED)


def test_recordings_are_listed_with_their_files(folder: Path) -> None:
    listed = stageprof.dataset(folder / "out").recordings()

    assert tuple(listed["name"]) == CALLED
    assert tuple(listed["file"]) == tuple(f"{name}.stageprof" for name in NAMES)
    assert listed["complete"].all()
    walls = [stageprof.open(folder / f"{name}.stageprof").wall for name in NAMES]
    assert listed["wall_s"].tolist() == walls


def test_names_are_of_folders_and_differ() -> None:
    """Also where the file system takes A for a, and for what is no name at all."""
    given = ["x/run.stageprof", "y/run.stageprof", "RUN.stageprof", "../..", "\x00", "ü" * 300]
    found = parquet.names([*given, "n" * 300])

    assert len({name.casefold() for name in found}) == len(found)
    assert all(name == Path(name).name and 0 < len(name) < 100 for name in found)
    assert all(name.isascii() and not name.startswith((".", "_")) for name in found)


def test_only_the_owner_may_read_it(folder: Path) -> None:
    modes = {p: p.stat().st_mode & 0o777 for p in [folder / "out", *(folder / "out").rglob("*")]}

    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


def test_a_recording_that_cannot_be_read_leaves_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not the part that was written before it either."""
    (tmp_path / "bad.stageprof").write_bytes(b"no recording")
    words = [str(folder / "001.stageprof"), str(tmp_path / "bad.stageprof")]

    assert main(["export", *words, "--to", "parquet", "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad.stageprof"]


def test_what_was_not_finished_is_no_dataset(folder: Path, tmp_path: Path) -> None:
    """A process that is killed leaves no list of recordings, which is written last."""
    shutil.copytree(folder / "out", tmp_path / "out")
    (tmp_path / "out" / MANIFEST).unlink()

    with pytest.raises(NotADataset, match="no whole dataset"):
        stageprof.dataset(tmp_path / "out")


@pytest.mark.parametrize(
    "said",
    [
        "", "[]", "{}", "null", "[" * 100_000, '{"schema": "stageprof.dataset/1"}',
        '{"schema": "stageprof.dataset/1", "recordings": [1]}',
        '{"schema": "stageprof.dataset/1", "recordings": [{"name": "x"}]}',
        '{"schema": "stageprof.dataset/9", "recordings": []}',
        WHOLE.replace("ROWS", "[]"), WHOLE.replace("ROWS", '{"tasks": 1e999}'),
    ],
)  # fmt: skip
def test_a_list_that_makes_no_sense_is_said_to_be_none(said: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(said)

    with pytest.raises(NotADataset):
        stageprof.dataset(tmp_path)


def test_a_dataset_is_replaced_only_if_it_is_one(folder: Path, tmp_path: Path) -> None:
    source, out = str(folder / "001.stageprof"), tmp_path / "out"
    words = ["export", source, "--to", "parquet", "-o", str(out)]

    assert main(words) == 0
    assert main(words) == 2
    assert main([*words, "--force"]) == 0
    (out / "thesis.tex").write_text("years of work")
    assert main([*words, "--force"]) == 2
    assert (out / "thesis.tex").exists()


def test_other_formats_take_one_recording(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(folder / f"{name}.stageprof") for name in NAMES[:2]]

    assert main(["export", *words, "--to", "csv", "-o", str(folder / "csv")]) == 2
    assert "only parquet takes several" in capsys.readouterr().err


def test_any_text_is_a_cell() -> None:
    """Also one that UTF-8 cannot carry, and one that is missing."""
    frame = pd.DataFrame({"key": pd.Series(["\ud800<", None, "\x1b[31m"], dtype=object)})
    made = parquet._column(frame["key"], schema("tasks").field("key").type)

    assert made.to_pylist() == ["\\ud800<", None, "\x1b[31m"]


@pytest.mark.parametrize("nbytes", [2**63 - 1, -(2**63)])
def test_sums_of_a_forged_recording_are_the_largest_numbers_that_there_are(
    nbytes: int, tmp_path: Path
) -> None:
    made = HandMade()
    runs = [made.run(0, i, i + 1, cause=-1 - made.graph(0, 0, 0), key="x") for i in range(3)]
    rows = made.rows_of(SCHEDULER)
    rows[:] = [(*r[:4], nbytes, *r[5:]) if r[0] == FINISH else r for r in rows]
    made.wait(0, 3, runs[-1], 3)
    parquet.write(stageprof.Recording(made.recording(3).store), tmp_path / "out")
    found = stageprof.dataset(tmp_path / "out").layers().compute()

    assert max(abs(found["bytes"])) == 2**63 - 1


@pytest.mark.parametrize(("runs", "slices"), [(1, 7), (300, 3), (10_000, 1)])
def test_tasks_in_slices_are_those_of_the_whole(runs: int, slices: int, tmp_path: Path) -> None:
    """Clocks that are off and drift are aligned as where all is in memory."""
    file = tmp_path / "longer.stageprof"
    generate(file, tasks=1_000, workers=2, seed=7)
    sliced = Sliced(file, runs=runs)
    parts = list(sliced.tasks())

    assert len(parts) == len(sliced.slices) == slices
    assert all(len(part) for part in parts)
    assert_frame_equal(pd.concat(parts, ignore_index=True), stageprof.open(file).tasks())


def test_what_is_written_meanwhile_is_in_no_slice(tmp_path: Path) -> None:
    """A recording that went on while it was exported ended the export with a traceback."""
    generate(tmp_path / "whole.stageprof", tasks=1_000, workers=2, seed=7)
    written = (tmp_path / "whole.stageprof").read_bytes()
    half = [found.offset for found in read_frames(tmp_path / "whole.stageprof")][-1] // 2
    file = tmp_path / "growing.stageprof"
    file.write_bytes(written[:half])
    before, growing = list(Sliced(file, runs=100).tasks()), Sliced(file, runs=100)
    file.write_bytes(written)
    parts = list(growing.tasks())

    assert not growing.complete
    assert_frame_equal(pd.concat(parts), pd.concat(before))


def test_tasks_in_slices_are_those_that_go_on_and_that_had_begun_as_well(tmp_path: Path) -> None:
    """They were left out, or took no time: what tells of them was not read."""
    file = tmp_path / "attached.stageprof"
    made = HandMade()
    cause = -1 - made.graph(1, 2, 3)
    for i in range(6):
        made.run(i % 2, 10 * i + 5, 10 * i + 14, cause=cause)
    going_on = made.goes_on(0, 70, cause=cause)
    worker = Place("worker", "host", 10, "tcp://host:10", 1)
    seen = (ONGOING, going_on, ns(71), ns(71), ns(72), ns(90), 1, 0, worker.name)
    made.rows_of(worker).append(seen)
    made.rows_of(SCHEDULER).append((WANT, -5, ns(40), "begun before"))
    collector = Collector(file, "test")
    for place, rows in made._rows.items():
        for seq, part in enumerate(rows[i : i + 4] for i in range(0, len(rows), 4)):
            collector.take(pack(place, seq, ns(100), part))
    collector.close()
    whole = stageprof.open(file).tasks()
    parts = list(Sliced(file, runs=2).tasks())

    assert (whole["duration_s"] > 0).all()
    assert_frame_equal(pd.concat(parts, ignore_index=True), whole)


def test_a_worker_that_told_nothing_is_in_a_dataset(tmp_path: Path) -> None:
    """One recording with one kept all others from being exported."""
    made = HandMade()
    made.rows_of(SCHEDULER).append((MARK, ns(1), "worker seen", "tcp://silent:1 4 0 silent"))
    cause = -1 - made.graph(1, 2, 3)
    made.run(0, 5, 14, cause=cause)
    collector = Collector(tmp_path / "a.stageprof", "test")
    for place, rows in made._rows.items():
        collector.take(pack(place, 0, ns(100), rows))
    collector.close()
    words = ["export", str(tmp_path / "a.stageprof"), "--to", "parquet", "-o", str(tmp_path / "d")]

    assert main(words) == 0
    workers = stageprof.dataset(tmp_path / "d").workers().compute().set_index("worker")
    told = workers.loc["tcp://silent:1"]
    assert (told["host"], told["pid"], told["cpus"], told["threads"]) == ("", 0, 0, 4)
    assert told["reason"] == "sent nothing"


def test_what_is_too_large_has_its_tasks(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And says which tables it has not."""
    monkeypatch.setattr(parquet, "_too_large", lambda _: True)
    file, out = folder / "001.stageprof", tmp_path / "out"

    assert main(["export", str(file), "--to", "parquet", "-o", str(out)]) == 0
    assert "is too large for memory" in capsys.readouterr().err
    ds = stageprof.dataset(out)
    tasks = ds.tasks().compute().drop(columns="recording")
    assert_frame_equal(tasks.reset_index(drop=True), stageprof.open(file).tasks())
    assert ds.stages().compute().empty
    assert "stages" in ds.recordings()["left_out"][0]


def test_nothing_heavy_is_imported_for_it() -> None:
    code = (
        "import sys, stageprof; stageprof.dataset;"
        "print([m for m in ('pyarrow.parquet', 'dask.dataframe') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout.replace("'", '"')) == []
