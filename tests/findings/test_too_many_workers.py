"""The rule too-many-workers: B27, C18, C20."""

from __future__ import annotations

import pytest

from findings.asking import asked, one, run
from findings.crews import Crewed, side_by_side
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay import replay
from stageprof_collectors.replay.change import Change
from stageprof_collectors.rules.too_many_workers import RULE


def crew(workers: int, lengths: list[tuple[int, float]], managed: float = 0) -> Recording:
    made = Crewed(workers)
    end = side_by_side(made, lengths)
    for worker in range(workers if managed else 0):
        made.limit(worker, 1000, managed)
    return made.recording(end)


def test_two_chains_need_two_of_eight_workers() -> None:
    """B27: far fewer resources, the same time."""
    found = one(RULE, crew(8, [(0, 900), (1, 900)]))

    assert found.evidence["workers_enough"] == 2
    assert found.severity == Severity.NOTE
    assert found.evidence["wall_then_s"] == pytest.approx(0.9)
    assert "2 workers would have been enough instead of 8" in found.headline


def test_workers_that_all_work_are_needed() -> None:
    assert asked(RULE, crew(4, [(worker, 500) for worker in range(4)])) == []


def test_one_of_two_is_no_waste() -> None:
    assert asked(RULE, crew(2, [(0, 900)])) == []


def test_workers_that_hold_data_are_needed_for_their_memory() -> None:
    """C18: eight workers of 1 GB with 500 MB each do not fit into two."""
    assert asked(RULE, crew(8, [(0, 900), (1, 900)], managed=500)) == []


def test_its_limit_can_be_set() -> None:
    assert asked(RULE, crew(8, [(0, 900), (1, 900)]), spare=0.9) == []


def test_the_fix_scales_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    scaled: list[int] = []

    class Cluster:
        def scale(self, number: int) -> None:
            scaled.append(number)

    class Current:
        cluster = Cluster()

    monkeypatch.setattr("distributed.Client.current", Current)
    run(one(RULE, crew(8, [(0, 900), (1, 900)])))

    assert scaled == [2]


@pytest.mark.parametrize("reason", ["too large", "far off"])
def test_what_a_replay_cannot_tell_is_not_said(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one worker would be enough, and take no longer "at most"."""
    if reason == "too large":
        monkeypatch.setattr(replay, "LARGEST", 1)
    else:
        monkeypatch.setattr(replay.Replay, "errors", (0.6, 0.6))
    recording = crew(8, [(0, 900), (1, 900)])
    assert recording.replay.wall(Change(workers=2))[1] == float("inf")
    assert asked(RULE, recording) == []
