"""The probe of trainings: what it notes of a call, and that the call is none the worse."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import stageprof
from stageprof_collectors.findings.training import Given, Trainings
from stageprof_runtime.collection import Facts, facts_of
from stageprof_runtime.probes import training
from stageprof_runtime.probes.training import Argument, Entry

SOURCE = """
class Model:
    def fit(self, X, y=None):
        if X is None:
            raise KeyError("no data")
        return [self, X, y]

    def all(self, X):
        return self.fit(X)
"""

Load = Callable[[], Any]


@pytest.fixture
def framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Imports a framework that the probe knows."""
    folder = tmp_path / "xgboost"  # a library's name: its frames are not the user's
    folder.mkdir()
    (folder / "__init__.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    known = {
        name: sys.modules.pop(name) for name in [*sys.modules] if name.split(".")[0] == "xgboost"
    }
    data, labels = Argument(1, "X"), Argument(2, "y")
    entries = tuple(Entry("Model", name, data, labels) for name in ("fit", "all"))
    monkeypatch.setattr(training, "ENTRIES", {"xgboost": entries})

    def load() -> Any:
        import xgboost

        return xgboost

    yield load
    sys.modules.pop("xgboost", None)
    sys.modules.update(known)


def calls(prof: Any) -> list[Given]:
    return Trainings(prof.recording).calls


def test_a_framework_that_is_imported_later_is_noted(framework: Load) -> None:
    x = da.ones((100, 4), chunks=(25, 2))
    with stageprof.profile() as prof:
        model = framework().Model()
        assert model.fit(x, y=3)[1] is x

    (call,) = calls(prof)
    assert (call.call, call.variable, call.failed) == ("xgboost.Model.fit", "x", 0)
    assert (call.pieces, call.column_pieces, call.rows, call.width) == (4, 2, 100, 4)
    assert Path(call.file).name == Path(__file__).name


def test_a_framework_that_is_there_already_is_noted_and_left_as_it_was(framework: Load) -> None:
    module = framework()
    before = dict(vars(module.Model))
    with stageprof.profile() as prof:
        module.Model().fit(da.ones(4))
    module.Model().fit(da.ones(4))

    assert len(calls(prof)) == 1
    assert dict(vars(module.Model)) == before


def test_what_a_framework_calls_itself_is_noted_once(framework: Load) -> None:
    with stageprof.profile() as prof:
        framework().Model().all(da.ones(4))

    assert [call.call for call in calls(prof)] == ["xgboost.Model.all"]


def test_an_error_is_the_users_and_the_call_is_noted_as_failed(framework: Load) -> None:
    with stageprof.profile() as prof, pytest.raises(KeyError, match="no data"):
        framework().Model().fit(None)

    assert [call.failed for call in calls(prof)] == [1]


def test_data_that_raises_at_every_look_changes_nothing(framework: Load) -> None:
    class Angry:
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit(name)

        def __eq__(self, other: object) -> bool:
            raise SystemExit

        __hash__ = None  # type: ignore[assignment]

    angry = Angry()
    with stageprof.profile() as prof:
        assert framework().Model().fit(angry)[1] is angry

    assert [call.type for call in calls(prof)] == [""]


def test_a_wrong_call_fails_as_it_would_without_the_probe(framework: Load) -> None:
    with stageprof.profile(), pytest.raises(TypeError, match="unexpected keyword"):
        framework().Model().fit(da.ones(4), depth=3)


def test_an_array_is_known_by_its_chunks() -> None:
    x = da.ones((1000, 150), chunks=(100, 50), dtype="f4")

    assert facts_of(x) == Facts(x.name, "Array", 10, 3, 0, 1000, 150, 600_000, -1, 0)


def test_unknown_rows_are_unknown() -> None:
    x = da.ones((1000, 4), chunks=(100, 4))
    facts = facts_of(x[x[:, 0] > 0])

    assert (facts.pieces, facts.rows, facts.width, facts.nbytes) == (10, -1, 4, -1)


def test_columns_that_a_graph_puts_together_are_counted() -> None:
    x = da.concatenate([da.ones((100, 5), chunks=(10, 5))] * 3, axis=1)

    assert facts_of(x.rechunk({1: -1})).merged == 3
    assert facts_of(x.rechunk({1: -1}) + 1).merged == 3
    assert facts_of(x.rechunk((20, 5))).merged == 0


def test_a_frame_is_known_by_its_partitions() -> None:
    frame = dd.from_pandas(pd.DataFrame({"a": range(10), "b": 1}), npartitions=2)

    facts = facts_of(frame)
    assert (facts.type, facts.pieces, facts.width, facts.rows) == ("DataFrame", 2, 2, -1)
    assert facts_of(frame["a"]).width == 1


@pytest.mark.parametrize("data", [None, 3, np.ones(3), da, da.Array, "dask.array", object()])
def test_what_is_no_collection_has_no_facts(data: object) -> None:
    assert facts_of(data) == Facts()


def test_what_the_user_deletes_after_a_training_is_freed() -> None:
    """Before Python 3.13 a dict of the caller's variables stayed in its frame."""

    def program() -> Any:
        data = np.ones(3)
        known = weakref.ref(data)
        assert training._variable(sys._getframe(), data) == "data"
        del data
        return known()

    assert program() is None
