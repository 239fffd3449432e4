"""Columns that get longer: nothing is lost, and no second copy of them is made."""

from __future__ import annotations

import pickle
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import EXAMPLES
from stageprof_collectors.storage import growing, table
from stageprof_collectors.storage.growing import ROOM, Growing
from stageprof_collectors.storage.scratch import Scratch
from stageprof_collectors.storage.shipment import decode
from stageprof_collectors.storage.table import Table
from stageprof_collectors.storage.words import Words
from stageprof_runtime.batch import pack
from stageprof_runtime.event import FINISH, Place

HERE = Place("scheduler", "h", 1, "tcp://h:1", 0)
LOTS = st.lists(st.integers(0, 40), min_size=1, max_size=30)


def numbers(first: int, rows: int) -> dict[str, np.ndarray]:
    values = np.arange(first, first + rows)
    return {"whole": values, "half": values / 2}


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(lots=LOTS)
def test_rows_come_out_in_the_order_in_which_they_went_in(lots: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "ROOM", 8 + lots[0])
        grown, rows = Growing(numbers(0, lots[0])), lots[0]
        for lot in lots[1:]:
            grown.add(numbers(rows, lot))
            rows += lot
    taken = grown.taken()
    assert taken["whole"].tolist() == list(range(rows))
    assert taken["half"].tolist() == [n / 2 for n in range(rows)]


def test_a_large_column_is_not_there_twice() -> None:
    lot, lots = ROOM // 2, 12
    tracemalloc.start()
    grown = Growing(numbers(0, lot))
    for n in range(1, lots):
        grown.add(numbers(n * lot, lot))
    taken = grown.taken()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1.5 * sum(values.nbytes for values in taken.values())


def test_a_table_is_asked_for_again_and_again_while_it_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lots that are large enough grow one array; what was handed out before stays what it was."""
    monkeypatch.setattr(table, "_PENDING_ROWS", 50)
    monkeypatch.setattr(growing, "ROOM", 60)
    finish, seen = Table("finish", Words()), []
    for n in range(40):
        rows = [(FINISH, 10 * n + i, 0, 0, 0, "") for i in range(10)]
        finish.add(decode(pack(HERE, n, 0, rows)).parts["finish"], 0, (0, 1), 0)
        if n % 9 == 8:
            seen.append(finish.arrays(Scratch())["run"])
            assert not seen[-1].flags.writeable
            assert finish.since(10 * n)["run"].tolist() == list(range(10 * n, 10 * n + 10))
    assert [values.tolist() for values in seen] == [list(range(90 * n)) for n in range(1, 5)]
    assert finish.arrays(Scratch())["run"].tolist() == list(range(400))


def test_threads_that_ask_at_once_get_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_PENDING_ROWS", 500)
    monkeypatch.setattr(growing, "ROOM", 600)
    for _ in range(20):
        finish = Table("finish", Words())
        for n in range(90):
            rows = [(FINISH, 10 * n + i, 0, 0, 0, "") for i in range(10)]
            finish.add(decode(pack(HERE, n, 0, rows)).parts["finish"], 0, (0, 1), 0)
        together = threading.Barrier(4)

        def ask(finish: Table = finish, together: threading.Barrier = together) -> list[int]:
            together.wait()
            found: list[int] = finish.arrays(Scratch())["run"].tolist()
            return found

        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask) for _ in range(4)]
        assert all(future.result() == list(range(900)) for future in asked)


def test_a_pickled_table_has_its_rows_and_takes_more() -> None:
    """A recording goes along with a function that closes over it."""
    finish = Table("finish", Words())
    for n in range(2):
        rows = [(FINISH, n, 0, 0, 0, "")]
        finish.add(decode(pack(HERE, n, 0, rows)).parts["finish"], 0, (0, 1), 0)
        finish = pickle.loads(pickle.dumps(finish))
    assert finish.arrays(Scratch())["run"].tolist() == [0, 1]
