"""The rule pieces-per-thread: C28, C29, C30, C31, C33, C35."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

from findings.trained import DATA, TRAINING, Trained, after, findings
from stageprof_collectors.findings.spreading import code, enough
from stageprof_collectors.findings.training import Given
from stageprof_collectors.rules.pieces_per_thread import RULE


def given(**data: object) -> Given:
    call = {"start": 0, "stop": 1, "call": "", "number": 0, "file": "", "line": 0, "failed": 0}
    return Given(**(call | DATA | data))  # type: ignore[arg-type]


def trained(pieces: int, workers: int = 2, threads: int = 1) -> Trained:
    made = Trained(workers, threads, pieces=pieces, held=1)
    some = list(range(min(pieces, workers)))
    made.training(some, some)
    return made


def test_one_piece_for_two_workers_is_found_with_what_the_other_would_save() -> None:
    """C28, C29: pieces are counted against threads, with the gain."""
    (found,) = findings(RULE, trained(1).end())

    assert found.evidence["pieces"] == 1
    assert found.evidence["threads"] == 2
    assert found.evidence["pieces_advised"] == 2
    assert found.cost_s == pytest.approx(TRAINING / 1000)
    # at worst the second thread is worth half of the first, at best as much
    assert list(found.saving_s) == pytest.approx([TRAINING / 1000 / 5, TRAINING / 1000 / 2])
    assert "`x` has 1 piece for 2 threads" in found.headline
    assert "1 of 2 workers" in found.headline
    assert "train.py:12" in found.headline


@pytest.mark.parametrize(("pieces", "fires"), [(1, True), (3, True), (4, False), (10, False)])
def test_it_fires_below_one_piece_for_each_thread(pieces: int, fires: bool) -> None:
    assert bool(findings(RULE, trained(pieces, workers=2, threads=2).end())) is fires


def test_workers_that_all_have_pieces_save_nothing() -> None:
    """A framework gives each worker's threads to whatever pieces it has."""
    (found,) = findings(RULE, trained(3, workers=2, threads=2).end())

    assert found.saving_s == (0, 0)


def test_its_limit_can_be_set() -> None:
    assert findings(RULE, trained(3).end(), pieces=2)


def test_the_example_of_the_catalogue_is_cut_to_ten_thousand_rows() -> None:
    """C33: 10 pieces of 100,000 rows x 150 columns, 100 threads: 100 of 10,000."""
    pieces = enough(10, 100)

    assert pieces == 100
    assert "x = spread(x.rechunk({0: 10000}).persist())" in code(given(), pieces)


def test_the_fix_gives_every_worker_pieces_of_an_array(client: Client) -> None:
    """C30, C33, C35: the snippet is executed on the example, a tenth of its rows."""
    x = da.ones((100_000, 150), chunks=(10_000, 150), dtype="f4")
    fix = code(given(rows=100_000), 100)

    names = after(fix, x=x, y=x.sum(axis=1))

    assert names["x"].chunks == ((1_000,) * 100, (150,))
    assert names["y"].chunks == ((1_000,) * 100,)
    assert float(names["y"].sum().compute()) == 15_000_000
    for name in ("x", "y"):
        assert spread_over(client, names[name]) == [50, 50]


def test_the_fix_gives_every_worker_pieces_of_a_frame(client: Client) -> None:
    """C31, C35."""
    table = pd.DataFrame({"a": np.arange(1000), "b": np.arange(1000) % 7})
    frame = dd.from_pandas(table, npartitions=1)

    names = after(code(given(type="DataFrame", pieces=1), 4), x=frame[["a"]], y=frame["b"])

    assert names["x"].npartitions == names["y"].npartitions == 4
    assert names["x"]["a"].compute().tolist() == list(range(1000))
    assert names["y"].compute().tolist() == table["b"].tolist()
    for name in ("x", "y"):
        assert spread_over(client, names[name]) == [2, 2]


def spread_over(client: Client, data: object) -> list[int]:
    """How many pieces each worker holds."""
    holders = [worker for who in client.who_has(data).values() for worker in who]
    return sorted(holders.count(worker) for worker in set(holders))


def test_the_fix_cuts_arrays_whose_rows_are_not_known(client: Client) -> None:
    """C35: as they come from frames."""
    table = pd.DataFrame({"a": np.arange(1000.0), "b": np.arange(1000) % 7})
    frame = dd.from_pandas(table, npartitions=1)
    x, y = frame[["a"]].to_dask_array(), frame["b"].to_dask_array()

    names = after(code(given(rows=-1, pieces=1), 4), x=x, y=y)

    assert names["x"].chunks == ((250,) * 4, (1,))
    assert names["y"].compute().tolist() == table["b"].tolist()
    assert spread_over(client, names["x"]) == [2, 2]
