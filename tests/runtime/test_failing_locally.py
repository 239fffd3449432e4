"""A task that raises on the synchronous scheduler raises through everything of ours."""

from __future__ import annotations

import pytest
from dask import delayed

import stageprof
from stageprof_runtime.probes.stacks import running


def bad() -> None:
    raise ZeroDivisionError


def test_it_is_over_then_and_has_failed() -> None:
    with stageprof.profile(gil=False) as prof:
        with pytest.raises(ZeroDivisionError):
            delayed(bad)(dask_key_name="bad").compute(scheduler="sync")
        assert not running
    (task,) = prof.recording.tasks().to_dict("records")
    assert (task["key"], task["status"]) == ("bad", "erred")
    assert task["duration_s"] > 0


def stops() -> object:
    return next(iter([]))


def test_it_raises_what_the_task_raised_whatever_that_is() -> None:
    """Of StopIteration a generator around it made RuntimeError."""
    with stageprof.profile(gil=False), pytest.raises(StopIteration):
        delayed(stops)().compute(scheduler="sync")
