"""Small calls of a library in a loop on a real cluster: what is said of them, and its worth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import stageprof
from clusters import local
from findings.asking import asked, one
from findings.pairs import Ran
from stageprof_collectors.rules.python_bound import RULE

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

POINTS = 15_000


def points(seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).random((POINTS, 3))


def turns_one_by_one(seed: int) -> float:
    x, total = points(seed), np.zeros(3)
    for i in range(POINTS - 1):
        total += np.cross(x[i], x[i + 1])
    return float(total.sum())


def turns_at_once(seed: int) -> float:
    x = points(seed)
    return float(np.cross(x[:-1], x[1:]).sum())


def test_a_loop_of_small_calls_is_named_and_one_call_for_all_saves_what_was_foretold() -> None:
    with local(1, threads=2) as client:
        client.gather(client.map(points, range(2)))
        with stageprof.profile() as slow:
            loops = client.gather(client.map(turns_one_by_one, range(6)))
        with stageprof.profile() as fast:
            at_once = client.gather(client.map(turns_at_once, range(6)))
    np.testing.assert_allclose(loops, at_once)

    found = one(RULE, slow.recording)
    assert "makes small calls in a loop" in found.headline
    line = turns_one_by_one.__code__.co_firstlineno + 3
    assert (Path(found.where.file).name, found.where.line) == ("test_small_calls.py", line)
    assert asked(RULE, fast.recording) == []
    saved = Ran(slow.recording, "").seconds(RULE.id) - Ran(fast.recording, "").seconds(RULE.id)
    low, high = found.saving_s
    assert 0.8 * low <= saved <= 1.25 * high, found.saving_s
