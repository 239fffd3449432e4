"""Training advice on real frameworks: XGBoost and LightGBM (and dask-ml where it is installed).

Models are trained for real, on digits and on made houses, small enough for seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, wait

import stageprof
from clusters import local
from findings.trained import findings
from stageprof_collectors.findings.training import Trainings
from stageprof_collectors.rules import (
    column_chunks_for_training,
    new_workers_empty,
    pieces_per_thread,
    unpersisted_training_data,
)

dxgb = pytest.importorskip("xgboost.dask", reason="needs the extra `samples`")
lightgbm = pytest.importorskip("lightgbm", reason="needs the extra `samples`")
datasets = pytest.importorskip("sklearn.datasets", reason="needs the extra `samples`")

pytestmark = [
    pytest.mark.nightly,  # real trainings: some take a minute on two cores
    pytest.mark.cluster,
    # LightGBM reads an attribute of its parent that scikit-learn will remove.
    pytest.mark.filterwarnings("ignore"),
]

PARAMETERS: Final = {"objective": "multi:softprob", "num_class": 10, "max_depth": 2, "verbosity": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with local() as client:
        yield client


def digits(pieces: int) -> tuple[Any, Any]:
    """Images and what they show, in so many pieces."""
    images, shown = datasets.load_digits(return_X_y=True)
    rows = -(-len(images) // pieces)
    return da.from_array(images, (rows, -1)), da.from_array(shown.astype("f4"), rows)


def houses(pieces: int) -> Any:
    """A table like that of the houses of California."""
    random = np.random.default_rng(3)
    names = ["income", "age", "rooms", "people", "latitude", "longitude"]
    table = pd.DataFrame(random.random((600, 6)), columns=names)
    table["value"] = table["income"] * 4 + table["rooms"]
    return dd.from_pandas(table, npartitions=pieces)


def trained_by_xgboost(client: Client, x: Any, y: Any) -> Any:
    data = dxgb.DaskDMatrix(client, x, y)
    return dxgb.train(client, PARAMETERS, data, num_boost_round=2)["booster"]


def test_each_training_of_xgboost_is_noted_with_its_line_and_data(client: Client) -> None:
    """C28: pieces are counted, with their sizes."""
    x, y = digits(4)
    with stageprof.profile() as prof:
        data = dxgb.DaskDMatrix(client, x, y)
        dxgb.train(client, PARAMETERS, data, num_boost_round=2)

    (training,) = Trainings(prof.recording).all
    given = training.given
    assert (given.variable, given.label, given.type, given.framework) == (
        "x",
        "y",
        "Array",
        "XGBoost",
    )
    assert (given.pieces, given.column_pieces, given.rows, given.width) == (4, 1, 1797, 64)
    assert (given.nbytes, given.held) == (x.nbytes, 0)
    assert Path(given.file).name == Path(__file__).name
    assert training.call.line == given.line + 1
    assert len(training.trainers) == len(client.nthreads())


def test_lightgbm_is_noted_with_what_was_persisted_before(client: Client) -> None:
    frame = houses(4).persist()
    wait(frame)
    x, y = frame.drop(columns="value"), frame["value"]
    with stageprof.profile() as prof:
        model = lightgbm.DaskLGBMRegressor(client=client, n_estimators=2, verbose=-1)
        model.fit(x, y)

    (training,) = Trainings(prof.recording).all
    given = training.given
    assert (given.variable, given.label, given.type, given.framework) == (
        "x",
        "y",
        "DataFrame",
        "LightGBM",
    )
    assert (given.pieces, given.width, given.held, given.pending) == (4, 6, 1, 0)
    assert len(training.trainers) >= 1


def test_xgboost_reading_its_data_twice_is_found(client: Client) -> None:
    """C34."""
    x, y = digits(4)
    x = x.map_blocks(slowly)
    with stageprof.profile() as prof:
        for _ in range(2):
            trained_by_xgboost(client, x, y)

    (found,) = findings(unpersisted_training_data.RULE, prof.recording)

    assert found.evidence["times_made"] == 2
    assert found.where.variable == "x"
    low, high = found.saving_s
    assert 0 < low <= high < prof.recording.wall


def test_xgboost_on_persisted_data_gives_no_finding(client: Client) -> None:
    """C34: after `persist` and `wait`."""
    x, y = dask.persist(*digits(4))
    wait([x, y])
    with stageprof.profile() as prof:
        for _ in range(2):
            trained_by_xgboost(client, x, y)

    for rule in (unpersisted_training_data, pieces_per_thread, new_workers_empty):
        assert not findings(rule.RULE, prof.recording)


def slowly(block: Any) -> Any:
    """Sorts some numbers, so that making a piece takes a while."""
    np.sort(np.random.default_rng(1).random(2_000_000))
    return block


def test_columns_that_xgboost_refuses_are_found_and_the_error_is_the_users(client: Client) -> None:
    """C32, C33: the example, a tenth of its rows, cut across its columns."""
    x = da.ones((100_000, 150), chunks=(10_000, 50))
    y = da.ones(100_000, chunks=10_000)
    with stageprof.profile() as prof, pytest.raises(ValueError, match="partitioned by row"):
        trained_by_xgboost(client, x, y)

    (found,) = findings(column_chunks_for_training.RULE, prof.recording)

    assert found.evidence["column_pieces"] == 3
    assert "100,000 rows x 150 columns" in found.headline
    assert "XGBoost did not train on it" in found.headline
    assert "10 pieces of 10,000 rows x 150 columns, 12.0 MB each" in found.fix.code


def test_columns_that_lightgbm_refuses_without_a_word_are_found(client: Client) -> None:
    """C32."""
    x, y = digits(2)
    x = x.rechunk((-1, 32))
    with stageprof.profile() as prof, pytest.raises(AssertionError):
        lightgbm.DaskLGBMRegressor(client=client, verbose=-1).fit(x, y)

    (found,) = findings(column_chunks_for_training.RULE, prof.recording)

    assert "LightGBM did not train on it" in found.headline


def test_columns_that_are_merged_for_each_training_are_found(client: Client) -> None:
    """C32."""
    x, y = dask.persist(digits(4)[0].rechunk((-1, 16)), digits(4)[1])
    wait([x, y])
    rows = x.rechunk({0: 450, 1: -1}).map_blocks(slowly)
    with stageprof.profile() as prof:
        for _ in range(2):
            trained_by_xgboost(client, rows, y)

    (found,) = findings(column_chunks_for_training.RULE, prof.recording)

    assert found.evidence["column_pieces"] == 4
    assert "The columns of `x`" in found.headline


def test_dask_ml_sees_the_first_columns_only_and_that_is_found(client: Client) -> None:
    """C32: no error, and a model of a part of the columns."""
    wrappers = pytest.importorskip("dask_ml.wrappers", reason="dask-ml is not installed")
    from sklearn.linear_model import SGDClassifier

    x, y = digits(4)
    x = x.rechunk({1: 16})
    with stageprof.profile() as prof:
        model = wrappers.Incremental(SGDClassifier(random_state=0)).fit(x, y, classes=range(10))

    (found,) = findings(column_chunks_for_training.RULE, prof.recording)

    assert model.coef_.shape == (10, 16)
    assert "dask-ml saw only the first of them" in found.headline


def test_one_piece_trains_on_one_worker_of_two(client: Client) -> None:
    """C23, C29: pieces against threads."""
    x, y = digits(1)
    with stageprof.profile() as prof:
        lightgbm.DaskLGBMClassifier(client=client, n_estimators=2, verbose=-1).fit(x, y)

    (found,) = findings(pieces_per_thread.RULE, prof.recording)

    assert (found.evidence["pieces"], found.evidence["workers_training"]) == (1, 1)
    assert "LightGBM trained on 1 of 2 workers" in found.headline


def test_a_worker_that_joins_by_scaling_has_no_data_and_is_found() -> None:
    """C22, C23: after a real `cluster.scale`."""
    with (
        warnings.catch_warnings(),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        x, y = dask.persist(*digits(4))
        wait([x, y])
        with stageprof.profile() as prof:
            cluster.scale(2)
            client.wait_for_workers(2)
            trained_by_xgboost(client, x, y)
        del x, y

    (found,) = findings(new_workers_empty.RULE, prof.recording)

    assert (found.evidence["workers"], found.evidence["workers_empty"]) == (2, 1)
    assert "1 of 2 workers joined after the pieces of `x` were placed" in found.headline
