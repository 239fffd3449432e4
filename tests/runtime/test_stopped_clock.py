"""A test that stops the clock of every module, as freezegun does, doesn't stop the account's."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest
from dask.delayed import delayed

import stageprof

NAP_S = 0.1


def stopped(read: Callable[[], float]) -> Callable[[], float]:
    """A clock that stands where `read` was."""
    now = read()
    return lambda: now


def stop_clocks(patch: pytest.MonkeyPatch) -> None:
    """Replace the clocks of `time` wherever a module holds one."""
    real = [time.time, time.monotonic, time.monotonic_ns, time.perf_counter, time.perf_counter_ns]
    fakes = {id(read): stopped(read) for read in real}
    for module in list(sys.modules.values()):
        if not getattr(module, "__name__", "").startswith(("time", "stageprof", "dask")):
            continue
        for name, value in list(vars(module).items()):
            if id(value) in fakes:
                patch.setattr(module, name, fakes[id(value)])


@pytest.mark.parametrize("within", [False, True])
def test_the_account_is_right_while_clocks_are_stopped(within: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not within:
            stop_clocks(patch)
        with stageprof.profile(gil=False) as prof:
            if within:
                stop_clocks(patch)
            delayed(time.sleep)(NAP_S).compute(scheduler="threads")
    stages = prof.recording.stages()["wall_s"]
    assert stages["execution"] > NAP_S / 2
    assert stages.sum() == pytest.approx(prof.recording.wall)
