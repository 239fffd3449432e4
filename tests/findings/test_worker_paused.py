"""The rule worker-paused: waiting for workers that take no tasks."""

from __future__ import annotations

import pytest

from findings.workers import Workers, chain
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.worker_paused import RULE


def ask(recording: Recording) -> list[Finding]:
    return list(RULE.find(recording, {n: limit.default for n, limit in RULE.limits.items()}))


def test_waiting_for_a_paused_worker_is_its_cost_and_its_saving() -> None:
    """C12: at 80 % a worker takes no more work."""
    made = Workers()
    end = chain(made, gap=500)
    for i in range(4):
        start = 1000 + i * 1500
        made.paused(0, start - 300, start + 500)
        made.took(0, start - 200, 900)
    (found,) = ask(made.recording(end))
    assert found.evidence["pauses"] == 4
    assert found.evidence["paused_s"] == pytest.approx(3.2)
    assert found.cost_s == pytest.approx(2.0, abs=0.01)
    assert found.saving_s == pytest.approx((2.0, 2.0), abs=0.05)
    assert found.severity == Severity.SERIOUS
    assert "80 %" in found.headline
    assert "4 times" in found.headline


def test_a_pause_during_the_only_task_is_a_note() -> None:
    """B24: the thread was busy anyhow."""
    made = Workers()
    end = chain(made)
    made.paused(0, 100, 900)
    (found,) = ask(made.recording(end))
    assert found.cost_s == 0
    assert found.severity == Severity.NOTE


def test_a_worker_that_stays_paused_is_paused_to_the_end_of_the_region() -> None:
    made = Workers()
    end = chain(made)
    made.paused(0, end - 1000)
    (found,) = ask(made.recording(end))
    assert found.evidence["longest_s"] == pytest.approx(1.0)


def test_no_pause_no_finding() -> None:
    made = Workers()
    assert ask(made.recording(chain(made, gap=500))) == []


def test_pauses_of_a_worker_that_was_not_observed_are_not_charged_to_another() -> None:
    made = Workers()
    end = chain(made, gap=500)
    made._befell("worker paused", 1000, "tcp://elsewhere:1")
    assert ask(made.recording(end)) == []
