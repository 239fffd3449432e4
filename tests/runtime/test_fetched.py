"""Fetched results are known by identity as long as they are there, and not kept alive."""

from __future__ import annotations

import gc
import re
import sys
import weakref
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stageprof_runtime.fetched import LEAST, MOST, Fetched


class Model:
    """Anything of the user's."""


@pytest.mark.parametrize(
    "value",
    [
        np.arange(5),
        pd.DataFrame({"a": [1]}),
        Model(),
        [Model(), 2],
        {"a": 1},
        "long text",
        b"bytes",
    ],
)
def test_a_result_is_known_by_its_key(value: Any) -> None:
    fetched = Fetched()
    fetched.note({"load-1": value})
    assert fetched.key_of(value) == "load-1"


def test_views_and_containers_of_results_are_known() -> None:
    fetched, x = Fetched(), np.arange(100)
    fetched.note({"load-1": x})
    assert fetched.key_of(x[10:20]) == "load-1"
    assert fetched.key_of([x[:5], 1]) == "load-1"
    assert fetched.key_of({"a": x}) == "load-1"


def test_equal_values_that_were_made_here_are_not() -> None:
    fetched, x = Fetched(), np.arange(100)
    fetched.note({"load-1": x})
    assert fetched.key_of(x.copy()) is None
    assert fetched.key_of([np.arange(100)]) is None


def test_numbers_and_functions_are_no_results_that_one_could_know() -> None:
    fetched = Fetched()
    fetched.note({"a": 1, "b": None, "c": len})
    assert not fetched


def test_nothing_is_kept_alive() -> None:
    fetched, model = Fetched(), Model()
    there = weakref.ref(model)
    fetched.note({"a": model, "b": [model]})
    del model
    gc.collect()
    assert there() is None


def test_a_later_object_at_the_same_address_is_another() -> None:
    """What takes no weak reference is told by what is in it."""
    fetched = Fetched()
    there = [Model(), Model()]
    fetched.note({"a": there})
    there[0] = Model()  # as a list that was made there later
    assert fetched.key_of(there) is None


def test_the_latest_are_remembered() -> None:
    fetched = Fetched()
    values = [np.zeros(1) for _ in range(MOST + 10)]
    for i, value in enumerate(values):
        fetched.note({i: value})
    assert fetched.key_of(values[0]) is None
    assert fetched.key_of(values[-1]) == MOST + 9
    fetched.clear()
    assert not fetched


def test_lines_that_fetch_again_and_again_are_told_with_how_often() -> None:
    fetched = Fetched()
    for _ in range(LEAST):
        fetched.call(sys._getframe())
    fetched.call(sys._getframe())
    (said,) = fetched.told()
    assert re.fullmatch(rf"{LEAST} .*test_fetched\.py:\d+", said)
    fetched.clear()
    assert list(fetched.told()) == []
