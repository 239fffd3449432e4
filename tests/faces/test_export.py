"""Exports open in other tools, and never replace what is there unasked."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stageprof
from findings.crowded import SCHEDULER, WORKER, Program, calls, ns
from replay.handmade import HandMade
from stageprof.cli import main
from stageprof.export.perfetto import events
from stageprof.export.perfetto import write as perfetto
from stageprof.export.rows import nested
from stageprof.export.tables import TABLES
from stageprof_runtime.event import MARK, Place

Event = dict[str, Any]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trace(recorded: Path, tmp_path: Path) -> list[Event]:
    perfetto(stageprof.open(recorded), tmp_path / "t.json")
    found: list[Event] = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    return found


def test_tables_come_back_as_they_were(recorded: Path, here: Path) -> None:
    """In CSV; those of a dataset are compared in tests/dataset."""
    assert main(["export", str(recorded), "--to", "csv"]) == 0
    recording = stageprof.open(recorded)

    folder = here / "run-csv"
    assert sorted(file.stem for file in folder.iterdir()) == sorted(TABLES)
    for name in TABLES:
        frame: pd.DataFrame = getattr(recording, name)()
        expected = frame.reset_index() if frame.index.name else frame
        found = pd.read_csv(folder / f"{name}.csv")
        assert list(found.columns) == list(expected.columns)
        assert len(found) == len(expected)
        for column in expected.select_dtypes("number"):
            assert found[column].tolist() == pytest.approx(expected[column].tolist(), nan_ok=True)


def test_parquet_keeps_numbers_exactly(recorded: Path, here: Path) -> None:
    """And whatever reads Parquet reads a folder of it."""
    main(["export", str(recorded), "--to", "parquet", "-o", "out"])
    found = pd.read_parquet(here / "out" / "stages").set_index("stage")
    assert found["wall_s"].tolist() == stageprof.open(recorded).stages()["wall_s"].tolist()


def test_what_was_written_is_said_last(
    recorded: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["export", str(recorded), "--to", "perfetto"])
    assert capsys.readouterr().out == "Wrote run.perfetto.json\n"
    assert [path.name for path in here.iterdir()] == ["run.perfetto.json"]


@pytest.mark.parametrize("form", ["csv", "parquet", "perfetto"])
def test_nothing_is_overwritten_without_force(
    form: str, recorded: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["export", str(recorded), "--to", form, "-o", "out"]
    assert main(args) == 0
    assert main(args) == 2
    assert "out exists" in capsys.readouterr().err
    assert main([*args, "--force"]) == 0
    assert [path.name for path in here.iterdir()] == ["out"]


def test_force_does_not_empty_a_folder_of_other_things(recorded: Path, here: Path) -> None:
    (here / "out").mkdir()
    (here / "out" / "thesis.tex").write_text("years of work")
    assert main(["export", str(recorded), "--to", "csv", "-o", "out", "--force"]) == 2
    assert (here / "out" / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("command", ["export", "report"])
@pytest.mark.parametrize("out", ["pipe", "link"])
def test_force_does_not_replace_what_is_neither_a_file_nor_a_folder(
    command: str, out: str, recorded: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As root it would take `/dev/null` away from everybody; a pipe stands for it here."""
    os.mkfifo(here / "pipe")
    (here / "link").symlink_to("pipe")
    form = ["--to", "perfetto"] if command == "export" else []

    assert main([command, str(recorded), *form, "-o", out, "--force"]) == 2

    assert "is neither a file nor a folder" in capsys.readouterr().err
    assert stat.S_ISFIFO((here / "pipe").lstat().st_mode)
    assert (here / "link").is_symlink()


def test_force_does_not_replace_the_recording_itself(recorded: Path, here: Path) -> None:
    before = recorded.read_bytes()
    args = ["export", str(recorded), "--to", "perfetto", "-o", str(recorded), "--force"]
    assert main(args) == 2
    assert recorded.read_bytes() == before


def test_folder_that_is_not_there_gives_one_line(
    recorded: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(recorded), "--to", "csv", "-o", "no/such/place"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_events_have_the_fields_and_types_of_the_trace_event_format(trace: list[Event]) -> None:
    fields = {"X": {"cat", "dur", "ts"}, "M": set(), "C": {"ts"}}
    for event in trace:
        assert set(event) == {"ph", "pid", "tid", "name", "args"} | fields[event["ph"]]
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int
        assert 0 < event["pid"] < 2**31 > event["tid"] >= 0
        assert isinstance(event["name"], str)
        assert isinstance(event["args"], dict)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0


def test_events_are_in_order_after_the_names(trace: list[Event]) -> None:
    kinds = "".join("M" if event["ph"] == "M" else "." for event in trace)
    assert kinds.lstrip("M").count("M") == 0
    times = [event["ts"] for event in trace if event["ph"] != "M"]
    assert times == sorted(times)
    assert times[0] == 0


def test_every_process_and_row_has_one_name(trace: list[Event]) -> None:
    metadata = [e for e in trace if e["ph"] == "M"]
    processes = [e["pid"] for e in metadata if e["name"] == "process_name"]
    rows = [(e["pid"], e["tid"]) for e in metadata if e["name"] == "thread_name"]

    assert len(processes) == len(set(processes))
    assert len(rows) == len(set(rows))
    assert {e["pid"] for e in trace} == set(processes)
    assert {(e["pid"], e["tid"]) for e in trace if e["ph"] == "X"} == set(rows)
    assert {e["name"] for e in metadata} == {"process_name", "thread_name"}


@pytest.mark.parametrize(
    ("others", "called"), [([], "worker 10"), (["10"], f"worker 10 {WORKER.name}")]
)
def test_a_process_is_called_as_in_the_app(others: list[str], called: str) -> None:
    made = Program()
    for name in others:
        made.rows[SCHEDULER].append((MARK, ns(0), "worker seen", f"tcp://host:20 1 0 {name}"))
        made.rows[Place("worker", "host", 20, "tcp://host:20", 1)] = []
    made.tasks(calls(2), work=5)
    names = [
        e["args"]["name"]
        for e in events(stageprof.Recording(made.recording().store))
        if e["name"] == "process_name"
    ]
    assert {"client", "scheduler", called} < set(names)
    assert len(names) == len(set(names))


def test_tasks_carry_key_layer_line_and_gil_share(trace: list[Event], recorded: Path) -> None:
    tasks = [e for e in trace if "key" in e["args"]]
    assert {e["args"]["key"] for e in tasks} == set(stageprof.open(recorded).tasks()["key"])
    assert all({"layer", "line", "gil_share"} <= set(e["args"]) for e in tasks)
    assert all(e["name"] == e["cat"] for e in tasks)


def test_critical_path_covers_the_region(trace: list[Event], recorded: Path) -> None:
    path = [e for e in trace if e["pid"] == 1 and e["ph"] == "X"]
    wall = stageprof.open(recorded).wall
    assert sum(e["dur"] for e in path) / 1e6 == pytest.approx(wall, rel=1e-6)


def test_no_slices_of_a_row_cross_however_many_coroutines_overlap() -> None:
    made = HandMade()
    for i in range(150):
        made.span("result.gather", i, 300 + i)
    recording = stageprof.Recording(made.recording(500).store)
    found = [e for e in events(recording) if e["name"] == "result.gather"]

    assert len({(e["pid"], e["tid"]) for e in found}) == len(found) == 150


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50))))
def test_slices_of_a_row_lie_apart_or_in_one_another(pairs: list[tuple[int, int]]) -> None:
    slices = [(min(pair), max(pair), number) for number, pair in enumerate(pairs)]
    placed = list(nested(slices))

    assert sorted((a, b, what) for _, a, b, what in placed) == sorted(slices)
    for i, (row, start, stop, _) in enumerate(placed):
        for other, begin, end, _ in placed[i + 1 :]:
            crossing = start < begin < stop < end
            assert not (row == other and crossing)
