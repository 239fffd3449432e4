"""Weighing a value: about right, never long, and nothing of the user's is run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from stageprof_runtime import weight
from stageprof_runtime.kinds import CUSTOM, kind_of
from stageprof_runtime.weight import COLUMNS, LARGEST, weigh


def test_a_wide_frame_is_weighed_by_some_of_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = pd.DataFrame(np.zeros((1_000, 20 * COLUMNS)))
    asked: list[int] = []
    usage = pd.DataFrame.memory_usage

    def counted(frame: pd.DataFrame, **how: Any) -> Any:
        asked.append(frame.shape[1])
        return usage(frame, **how)

    monkeypatch.setattr(pd.DataFrame, "memory_usage", counted)
    assert weigh(wide) == pytest.approx(wide.to_numpy().nbytes, rel=0.01)
    assert asked == [COLUMNS]


def test_many_frames_are_weighed_by_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [pd.DataFrame({f"c{i}": np.zeros(10_000) for i in range(30)}) for _ in range(16)]
    whole, weighed = weigh(frames), list[object]()
    assert whole == pytest.approx(16 * 30 * 80_000, rel=0.01)

    class Model:
        def __init__(self) -> None:
            vars(self).update({f"frame{i}": frame for i, frame in enumerate(frames * 10)})

    buffers = weight.buffers

    def counted(value: object) -> int | None:
        weighed.append(value)
        return buffers(value)

    monkeypatch.setattr(weight, "buffers", counted)
    assert weigh(Model()) >= 2_400_000
    assert len(weighed) < 10


def test_a_class_that_equals_any_other_is_still_the_users() -> None:
    class Equal(type):
        def __eq__(cls, other: object) -> bool:
            return True

        __hash__ = type.__hash__

    class Model(metaclass=Equal):
        def __init__(self) -> None:
            self.table = b"1" * 1_000_000

    assert kind_of(Model()) == CUSTOM
    assert weigh(Model()) == pytest.approx(1_000_000, rel=0.01)


def test_a_weight_fits_into_64_bits() -> None:
    nested: Any = [0.0] * 10**6
    for _ in range(5):
        nested = [nested] * 10**6
    assert weigh(nested) == LARGEST


def test_arrays_of_the_users_own_are_not_asked() -> None:
    asked: list[str] = []

    class Slow(pd.arrays.IntegerArray):
        @property
        def nbytes(self) -> int:
            asked.append("nbytes")
            return 0

    class Kind(pd.Int64Dtype):
        pass

    values = Slow(np.zeros(1_000, np.int64), np.zeros(1_000, bool))
    Slow.dtype = Kind()  # type: ignore[assignment,method-assign]
    frame = pd.DataFrame({"x": pd.Series(values, copy=False)})
    asked.clear()
    assert weigh(frame) >= 8_000
    assert asked == []


def test_a_dict_that_is_made_when_asked_for_is_not_asked_for() -> None:
    """As a lazy proxy has it."""
    asked: list[object] = []

    class Proxy:
        @property
        def __dict__(self) -> dict[str, object]:  # type: ignore[override]
            asked.append(self)
            return {}

    assert weigh(Proxy()) > 0
    assert asked == []
