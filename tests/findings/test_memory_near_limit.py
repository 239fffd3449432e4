"""The rule memory-near-limit: how close to which threshold."""

from __future__ import annotations

import pytest

from findings.workers import Workers, chain
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.memory_near_limit import RULE, nearest


def ask(recording: Recording) -> list[Finding]:
    return list(RULE.find(recording, {n: limit.default for n, limit in RULE.limits.items()}))


def took(process: float, managed: float = 0, **thresholds: float) -> Recording:
    made = Workers(1, 1000, 1, **thresholds)
    end = chain(made)
    made.took(0, 500, process, managed)
    return made.recording(end)


@pytest.mark.parametrize(
    ("process", "managed", "fires"),
    [(600, 0, False), (670, 0, True), (300, 500, False), (300, 580, True), (790, 0, True)],
)
def test_it_fires_within_a_twentieth_of_a_threshold(
    process: float, managed: float, *, fires: bool
) -> None:
    """C11, C15: near 60 % of managed memory, or 70 % of the process, is close."""
    found = ask(took(process, managed))
    assert bool(found) == fires
    assert all(f.severity == Severity.NOTE for f in found)


def test_thresholds_are_those_in_force_and_those_that_are_off_are_none() -> None:
    """C13: read from the cluster, never assumed."""
    assert ask(took(790, 0, spill=0.9, pause=0.95, target=0.85)) == []
    assert ask(took(2000, 2000, spill=0, pause=0, target=0, terminate=0)) == []


def test_the_gravest_threshold_that_was_reached_is_named() -> None:
    recording = took(960, 700)
    near = nearest(recording.memory.limits[2], recording.memory.of(2))
    assert near is not None
    assert (near.what, near.fraction) == ("ends the worker", 0.95)
    (found,) = ask(recording)
    assert "960 MB of the 1.0 GB" in found.headline
    assert "95 %" in found.headline


def test_workers_that_spilled_and_were_paused_have_the_saving_of_both() -> None:
    made = Workers()
    end = chain(made, gap=500)
    for i in range(4):
        start = 1000 + i * 1500
        made.paused(0, start, start + 300)
        made.spilled(0, start + 300, start + 500)
        made.took(0, start, 850, 500)
    (found,) = ask(made.recording(end))
    assert found.cost_s == pytest.approx(2.0, abs=0.01)
    assert found.saving_s == pytest.approx((2.0, 2.0), abs=0.05)
    assert found.severity == Severity.SERIOUS


def test_workers_without_a_limit_have_no_finding() -> None:
    made = Workers(1, 0)
    end = chain(made)
    made.took(0, 500, 5000)
    assert ask(made.recording(end)) == []
