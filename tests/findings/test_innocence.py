"""What is said of the GIL where it is not to blame: whose seconds are meant, in words."""

from __future__ import annotations

import re
from dataclasses import replace

from stageprof_collectors.findings.innocence import Verdict, gil_verdict
from stageprof_collectors.findings.settings import DEFAULTS
from ui.observed import Observed


def working(cpu: float) -> Observed:
    """One task for two seconds, for which the caller waited."""
    made = Observed(1)
    run = made.run(0, 0, 2000, cause=-1 - made.graph(0, 0, 0), key="heavy-1", wanted=True)
    made.used(run, cpu)
    made.wait(0, 2000, run, 2000)
    made.held(0, 0, 2000)
    return made


def verdict(made: Observed) -> Verdict:
    found = gil_verdict(made.recording(2000))
    assert found is not None
    return found


def test_bound_of_all_tasks_is_told_from_that_of_the_run() -> None:
    """Both lines are shown of one run, and tasks wait beside one another."""
    made = working(cpu=1990)
    assert verdict(made).said == "not to blame: tasks waited at most 10 ms in sum"
    [gil, *_] = made.recording(2000).innocence()
    assert gil == "Waiting for the GIL in tasks costs at most 10 ms (1 %) of the wall time"


def test_much_waiting_that_cost_the_run_little_is_a_sentence() -> None:
    made = working(cpu=1990)
    made.run(0, 0, 1900, cause=-1 - made.graph(0, 0, 0), key="spare-1", thread=1)
    made.waited(0, 0, 1900, thread=1)
    said = "not to blame: tasks waited 1.90 s in sum, which cost the run at most 10 ms"
    assert verdict(made).said == said


def test_a_bound_that_has_what_was_not_seen_is_not_held_against_what_was() -> None:
    """That it waited 100 ms, which cost at most 165 ms, would be no sentence."""
    made = working(cpu=1000)
    made.run(0, 0, 100, cause=-1 - made.graph(0, 0, 0), key="spare-1", thread=1)
    made.waited(0, 0, 100, thread=1)
    strict = replace(DEFAULTS, serious=0.02, moderate=0.01)
    found = gil_verdict(made.recording(2000), strict)
    assert found is not None
    assert re.fullmatch(r"not to blame: tasks waited at most \d+ ms in sum", found.said)
