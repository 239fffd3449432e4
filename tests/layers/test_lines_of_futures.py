"""Tasks that `client.map` and `client.submit` make are of the lines that call them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from distributed import Client

from planted import identity, ignore
from stageprof_collectors.storage.store import Store
from stageprof_collectors.tables.lines import Lines
from stageprof_runtime import made
from stageprof_runtime.batch import Row, pack
from stageprof_runtime.event import LINE, Place
from stageprof_runtime.ring import Ring
from truth import record

Program = Callable[[Client], Any]


def by_line(program: Program, client: Client) -> dict[int, int]:
    """Tasks by the line of this file, counted from the program's first."""
    recording = record(lambda: client.gather(program(client)))
    table, first = recording.layers(), program.__code__.co_firstlineno
    assert not table["layer"].str.contains("expr").any()
    table = table[(table["tasks"] > 0) & (table["file"] == __file__)]
    counts: Counter[int] = Counter()
    for line, tasks in zip(table["line"].tolist(), table["tasks"].tolist(), strict=True):
        counts[line - first] += tasks
    return dict(counts)


def map_then_submit(client: Client) -> Any:
    mapped = client.map(identity, range(30))
    return mapped, [client.submit(identity, 100 + i) for i in range(20)]


def submit_then_map(client: Client) -> Any:
    first = [client.submit(identity, 200 + i) for i in range(20)]
    return first, client.map(identity, range(300, 330))


def impure(client: Client) -> Any:
    first = client.map(identity, range(30), pure=False)
    return first, client.map(identity, range(20), pure=False)


def several_iterables(client: Client) -> Any:
    first = client.map(ignore, range(30), range(30))
    return first, client.map(ignore, range(30, 50), range(20), range(20))


def in_batches(client: Client) -> Any:
    first = client.map(ignore, range(400, 430), batch_size=7)
    return first, client.map(ignore, range(500, 520), batch_size=7)


def with_a_key(client: Client) -> Any:
    first = client.map(identity, range(30), key="mine")
    return first, client.map(identity, range(600, 620), key="mine")


def with_keys(client: Client) -> Any:
    first = client.map(identity, range(30), key=[f"job-{i}" for i in range(30)])
    return first, client.map(identity, range(20), key=[("part", i) for i in range(20)])


@pytest.mark.cluster
def test_what_handing_over_takes_is_of_the_line_that_does_it(client: Client) -> None:
    """Twenty calls, one by one: no step of building them is of nobody."""
    recording = record(lambda: client.gather(map_then_submit(client)))
    table, first = recording.lines(), map_then_submit.__code__.co_firstlineno
    building = table.groupby(["file", "line"])["construction_s"].sum()
    assert building[__file__, first + 2] > 0.5 * building.sum()
    assert building.get(("", 0), 0.0) == 0.0


@pytest.mark.cluster
@pytest.mark.parametrize(
    "program",
    [impure, several_iterables, in_batches, with_a_key, with_keys, map_then_submit],
)
def test_tasks_of_map_are_of_its_line_and_no_others(program: Program, client: Client) -> None:
    """Two lines, which may use the same function: 30 tasks of the first, 20 of the second."""
    assert by_line(program, client) == {1: 30, 2: 20}


@pytest.mark.cluster
def test_tasks_of_map_are_not_those_of_a_line_that_submitted_before(client: Client) -> None:
    assert by_line(submit_then_map, client) == {1: 20, 2: 30}


class Noted:
    """Takes what a probe emits."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def row(self, _role: str, row: Row) -> None:
        self.rows.append(row)

    span = share = stack = flame = row_of = row


def test_keys_that_one_call_made_are_one_row_however_many_they_are() -> None:
    noted: Any = Noted()
    lines = made.Lines(noted)
    token = "3f2b8f1e-0c1d-4c8e-9a55-0123456789ab"

    lines.together((f"inc-{i:032x}" for i in range(100_000)), ("etl.py", 5))
    lines.together((f"inc-{i:032x}" for i in range(100_000)), ("etl.py", 5))
    assert noted.rows == [(LINE, "inc", "etl.py", 5, 1)]
    lines.together((f"inc-{token}-{i}" for i in range(100_000)), ("etl.py", 6))
    assert noted.rows[1:] == [(LINE, f"inc-{token}", "etl.py", 6, 0)]


def test_names_without_a_token_take_no_more_memory_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is a prefix of its own; those that are known go on being known."""
    monkeypatch.setattr(made, "MOST", 10)
    noted: Any = Noted()
    lines = made.Lines(noted)

    for i in range(100):
        lines.made(f"name{i}", ("etl.py", i))
    lines.made("name3-0123456789abcdef0123456789abcdef", ("etl.py", 3))
    assert [row[1] for row in noted.rows] == [f"name{i}" for i in range(10)]
    assert lines.of("name3") == ("etl.py", 3)
    assert lines.of("name50") == ("", 0)


def test_a_recording_that_begins_later_is_told_of_no_more_lines_than_there_is_room_for() -> None:
    noted: Any = Noted()
    lines = made.Lines(noted)
    for i in range(80):
        lines.made(f"name{i}", ("etl.py", i))
    ring = Ring(100)
    lines.tell(ring)

    assert ring.dropped == 0
    assert [row[1] for row in ring.take()] == [f"name{i}" for i in range(30, 80)]


def test_an_expression_of_dasks_own_does_not_stand_for_a_line_that_maps() -> None:
    """A line whose tasks have not run is called what its tasks are called."""
    store = Store()
    rows: list[Row] = [(LINE, "_mapexpr", "etl.py", 5, 1), (LINE, "inc", "etl.py", 5, 1)]
    store.add(pack(Place("client", "host", 1, "Client-1", 1), 0, 1, rows))

    assert Lines(store).first_names() == {"etl.py:5": "inc"}
