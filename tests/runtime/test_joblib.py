"""joblib on a cluster, as scikit-learn uses it: who waits in `Parallel` waits for the cluster."""

from __future__ import annotations

import time
from typing import Any

import pytest
from distributed import Client

import stageprof
from stageprof_runtime.lines import inherited
from stageprof_runtime.underway import calls

joblib: Any = pytest.importorskip("joblib", reason="needs the extra `samples`")
pytestmark = pytest.mark.cluster


def slow(number: int) -> int:
    time.sleep(0.2)
    return number + 1


def failing(number: int) -> int:
    raise ValueError(f"{number} is too many")


def parallel(function: Any = slow, number: int = 8, ahead: str | int = "2 * n_jobs") -> Any:
    with joblib.parallel_config(backend="dask"):
        calls = joblib.Parallel(pre_dispatch=ahead)
        return calls(joblib.delayed(function)(i) for i in range(number))


def test_its_wait_is_that_of_its_tasks_and_they_have_its_line(client: Client) -> None:
    """It was `outside`, all of it; and their line was unknown."""
    expected = parallel()
    with stageprof.profile(gil=False) as region:
        assert parallel() == expected
    recording = region.recording
    wall = recording.stages()["wall_s"]
    assert wall["execution"] > 0.6 * recording.wall
    assert wall["outside"] < 0.2 * recording.wall

    layer = recording.layers().iloc[0]
    assert (layer["layer"], layer["tasks"]) == ("batch_of_slow_1_calls", 8)
    assert (layer["file"], layer["line"]) == (__file__, parallel.__code__.co_firstlineno + 3)
    assert not calls
    assert inherited.get() == ("", 0)


@pytest.mark.usefixtures("client")
def test_tasks_that_are_handed_over_as_others_end_are_waited_for_too() -> None:
    """By a callback on another thread: all but the last were `result.gather`."""
    with stageprof.profile(gil=False) as region:
        parallel(ahead=1)
    wall = region.recording.stages()["wall_s"]
    assert wall["execution"] > 0.6 * region.recording.wall


@pytest.mark.usefixtures("client")
def test_errors_are_the_same_and_nothing_is_left() -> None:
    before = joblib.Parallel.__call__
    with stageprof.profile(gil=False) as region, pytest.raises(ValueError, match="is too many"):
        parallel(failing, 1)
    assert joblib.Parallel.__call__ is before
    assert not calls
    assert inherited.get() == ("", 0)
    assert region.recording.wall > 0


def test_other_backends_wait_for_no_cluster() -> None:
    with stageprof.profile(gil=False) as region:
        assert joblib.Parallel(1)(joblib.delayed(slow)(i) for i in range(2)) == [1, 2]
    assert region.recording.stages()["wall_s"]["outside"] > 0.9 * region.recording.wall
