"""Which step of construction a stack is in, as its functions say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from distributed import Client, Future, LocalCluster, as_completed

from stageprof_runtime.seen import AFFAIR, DASKS, own_step


@pytest.mark.parametrize(
    ("function", "step"),
    [
        (Client.__init__, AFFAIR),
        (Client.close, AFFAIR),
        (LocalCluster.__init__, AFFAIR),
        (Future.__init__, DASKS),
        (as_completed.__init__, DASKS),
    ],
)
def test_to_start_a_client_is_the_users_affair_and_to_make_futures_is_not(
    function: Callable[..., Any], step: int
) -> None:
    assert own_step(function.__code__) == step
