"""The rule failed-retried: A41, A43 (what ran in vain, and which line raised)."""

from __future__ import annotations

import pytest
from dask import compute, delayed
from distributed import Client, LocalCluster

import stageprof
from findings.asking import asked, one, run
from findings.crews import Crewed
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.failed_retried import RULE

ERRED, LOST = 1, 2


def failing(status: int = ERRED, work: float = 300, rest: float = 700) -> Recording:
    """A task that fails after its work, is run again, and another."""
    made = Crewed(1)
    made.raised(0, "OSError", "fetched", 9)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, work, cause=-1 - graph, key="fetched-1", status=status)
    again = made.run(0, work, 2 * work, cause=first, key="fetched-1", needs=[-1])
    made.run(0, 2 * work, 2 * work + rest, cause=again, key="kept-1", wanted=True)
    made.wait_for(0, 2 * work + rest, "kept-1")
    return made.recording(2 * work + rest)


def test_a_retried_task_is_found_with_its_exception_and_line() -> None:
    found = one(RULE, failing())

    assert found.evidence["runs_failed"] == 1
    assert found.evidence["exception"] == "OSError"
    assert found.cost_s == pytest.approx(0.3)
    assert found.saving_s == pytest.approx((0.3, 0.3), abs=0.01)
    assert "raised OSError at etl.py:9, and were retried" in found.headline


def test_a_line_that_is_no_number_is_none() -> None:
    """What a recording says of it is anybody's: `int` would raise on a digit such as this."""
    made = Crewed(1)
    made.raised(0, "OSError", "fetched", "\N{SUPERSCRIPT TWO}")  # type: ignore[arg-type]
    first = made.run(0, 0, 300, cause=-1 - made.graph(0, 0, 0), key="fetched-1", status=ERRED)
    made.run(0, 300, 600, cause=first, key="fetched-1", needs=[-1], wanted=True)
    made.wait_for(0, 600, "fetched-1")
    assert "raised OSError, and were retried" in one(RULE, made.recording(600)).headline


def test_what_healthy_tasks_waited_behind_a_failed_run_is_its_cost() -> None:
    """The other worker did four tasks meanwhile, and is what was waited for: "0 s of 1.2 s"."""
    made = Crewed(2)
    made.raised(0, "OSError", "fetched", 9)
    cause = -1 - made.graph(0, 0, 0, wanted=5)
    for start, status in ((0, ERRED), (300, ERRED), (600, 0)):
        needs = [-1] if start else []
        cause = made.run(
            0, start, start + 300, cause=cause, key="fetched-1", status=status, needs=needs,
            lead=(start, start), wanted=not status,
        )  # fmt: skip
    cause = -1
    for i in range(4):
        needs, t = [-1] if i else [], 300 * i
        key = f"fetched-{i + 2}"
        cause = made.run(1, t, t + 300, cause=cause, key=key, needs=needs, lead=(t, t), wanted=True)
    made.wait_for(0, 1200, "fetched-5")
    found = one(RULE, made.recording(1200))

    assert found.saving_s[1] == pytest.approx(0.3, abs=0.01)
    assert found.cost_s == pytest.approx(0.3, abs=0.01)
    assert found.headline.endswith("and were retried: 300 ms of 1.20 s")


def test_a_task_lost_with_its_worker_has_the_cause_that_its_loss_has() -> None:
    found = one(RULE, failing(LOST))

    assert found.evidence["why"] == "lost with a worker"
    assert found.cause == "workers lost"


def test_a_task_that_fails_at_once_costs_nothing_to_speak_of() -> None:
    assert asked(RULE, failing(work=5)) == []


def test_a_run_without_failures_costs_one_look() -> None:
    assert asked(RULE, failing(status=0)) == []


def test_the_fix_tries_the_one_call_again() -> None:
    names = run(one(RULE, failing()))
    calls = []

    def refused(number: int) -> int:
        calls.append(number)
        if len(calls) < 3:
            raise OSError
        return number

    assert names["patient"](refused, 7, wait=0) == 7
    assert calls == [7, 7, 7]


@delayed  # type: ignore[untyped-decorator]
def refusing(number: int, seen: str) -> int:
    """Works, and is refused the first time."""
    from pathlib import Path

    total = sum(range(3_000_000))
    if not Path(seen).exists():
        Path(seen).touch()
        raise ConnectionError(total)
    return number


@pytest.mark.filterwarnings("ignore")
def test_the_exception_of_a_real_task_is_named_with_the_users_line(
    tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """A43: which exception, where."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
        stageprof.profile() as prof,
    ):
        assert compute(refusing(7, f"{tmp_path}/seen"), retries=1) == (7,)

    found = one(RULE, prof.recording)
    assert found.evidence["exception"] == "ConnectionError"
    assert str(found.evidence["raised_at"]).startswith(__file__)
