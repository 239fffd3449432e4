"""The rule worker-restarted: workers lost with what they held and ran."""

from __future__ import annotations

import pytest

from findings.workers import Workers, chain
from replay.handmade import CLIENT, LANE, SCHEDULER, ns
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.absence import Absence
from stageprof_collectors.rules.worker_restarted import RULE, wasted
from stageprof_runtime.ending import RAISED
from stageprof_runtime.event import BLOCK, FINISH, LOCK, MARK, STATUS
from stageprof_runtime.probes.failure import UNLOADED

LOST = STATUS.index("lost")


def ask(recording: Recording) -> list[Finding]:
    return list(RULE.find(recording, {}))


def missed(recording: Recording) -> float:
    ended = {kill.worker for kill in recording.incidents.kills}
    return Absence(recording, wasted(recording), ended).seconds


def killed(**more: int) -> Recording:
    """A run of 2 s is cut off with its worker; a second later another does it, in 3 s."""
    made = Workers(2)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 2000, cause=-1 - graph, status=LOST, key="model")
    made.killed(0, 2000, 970, **more)
    again = made.run(1, 3000, 6000, cause=first, lead=(3000, 3000), key="model", wanted=True)
    made.wait(0, 6000, again, 6000)
    return made.recording(6000)


def test_what_was_done_in_vain_is_its_cost() -> None:
    """C13: over 95 % a worker is ended and started again."""
    (found,) = ask(killed(results=3))
    assert found.evidence["ended_for_memory"] == 1
    assert found.evidence["results_lost"] == 3
    assert found.evidence["tasks_cut_off"] == 1
    assert found.evidence["done_again_s"] == pytest.approx(2.0)
    assert found.saving_s[0] <= found.cost_s <= found.saving_s[1] <= 6
    assert found.cost_s >= 2.0
    assert "970 MB" in found.headline
    assert "95 % of 1.0 GB" in found.headline
    assert found.evidence["needed_bytes"] == 1_700_000_000
    assert 'memory_limit="1.7GB"' in found.fix.code


def test_what_waited_in_its_queue_was_not_done() -> None:
    """Eight more tasks that the worker had with the one that it ran, for 2 s each."""
    made = Workers(2)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 2000, cause=-1 - graph, status=LOST, key="model")
    for _ in range(8):
        run = made.goes_on(0, 0, cause=-1 - graph)
        made.rows_of(SCHEDULER).append((FINISH, run, ns(2000), LOST, 0, ""))
    made.killed(0, 2000, 970)
    again = made.run(1, 3000, 6000, cause=first, lead=(3000, 3000), key="model", wanted=True)
    made.wait(0, 6000, again, 6000)

    (found,) = ask(made.recording(6000))

    assert found.evidence["tasks_done_again"] == 1
    assert found.evidence["done_again_s"] == pytest.approx(2.0)


def replaced(*, queued: bool = True) -> Recording:
    """Of two workers with a queue one is ended after 2 s; two seconds later another is there.

    The task that it ran is done again.
    """
    made = Workers(3)
    rows, new = made._rows[SCHEDULER], made._workers[2]
    rows[:] = [row for row in rows if not str(row[3]).startswith(new.name)]
    rows.append((MARK, ns(4000), "worker seen", f"{new.name} 1 0 {new.pid}"))
    graph = made.graph(0, 0, 0)
    first = -1 - graph
    made.run(1, 0, 1000, cause=first)
    lost = made.run(1, 1000, 2000, cause=first, status=LOST, key="model")
    made.killed(1, 2000, 970)
    last = made.run(0, 0, 1000, cause=first)
    for start in range(1000, 6000, 1000):
        there = 0 if queued else start
        lead = (there, there)
        last = made.run(0, start, start + 1000, cause=last, lead=lead, wanted=start == 5000)
    lead = (2000, 2000) if queued else (4000, 4000)
    made.run(2, 4000, 6000, cause=lost, lead=lead, key="model")
    made.wait(0, 6000, last, 6000)
    return made.recording(6000)


def test_threads_that_were_missing_are_a_part_of_what_is_saved() -> None:
    """One of two threads for two seconds, and a second of work in vain on one: 1.5 s for both."""
    recording = replaced()
    assert missed(recording) == pytest.approx(1.5)
    (found,) = ask(recording)
    assert found.saving_s[0] == pytest.approx(1.5)


def test_what_could_be_saved_is_what_it_cost() -> None:
    """The other worker did the tasks meanwhile: nothing on the critical path waited."""
    (found,) = ask(replaced())
    assert found.cost_s == pytest.approx(found.saving_s[1])
    assert found.headline.endswith("1.75 s of 6.00 s")


def test_threads_that_nothing_waited_for_are_not_missed() -> None:
    recording = replaced(queued=False)
    assert missed(recording) == pytest.approx(0.5)


def test_a_run_without_any_worker_is_missed_whatever_waited() -> None:
    """For two seconds nobody is there, beside the second that one thread of one worked in vain."""
    recording = alone()
    assert missed(recording) == pytest.approx(3.0)


def alone() -> Recording:
    """The only worker is ended after a second; two seconds later another is there."""
    made = Workers(2)
    rows, new = made._rows[SCHEDULER], made._workers[1]
    rows[:] = [row for row in rows if not str(row[3]).startswith(new.name)]
    rows.append((MARK, ns(3000), "worker seen", f"{new.name} 1 0 {new.pid}"))
    graph = made.graph(0, 0, 0)
    lost = made.run(0, 0, 1000, cause=-1 - graph, status=LOST, key="model")
    made.killed(0, 1000, 970)
    last = made.run(1, 3000, 4000, cause=lost, lead=(3000, 3000), key="model", wanted=True)
    made.wait(0, 4000, last, 4000)
    return made.recording(4000)


def test_it_is_never_a_note() -> None:
    """Being lucky once is no reason to do nothing."""
    made = Workers(2)
    end = chain(made)
    made.killed(1, 100, 960)
    (found,) = ask(made.recording(end))
    assert found.saving_s[0] == 0
    assert found.severity == Severity.MODERATE


def test_workers_that_went_by_themselves_have_another_fix_and_cause() -> None:
    made = Workers(2)
    end = chain(made)
    made.lost(1, 100, results=2, running=0)
    (found,) = ask(made.recording(end))
    assert found.fix.code == ""
    assert "dmesg" in found.fix.text
    assert found.cause != "memory"


def unloadable(*said: str) -> Recording:
    """Of two workers each goes as it gets its first task; for 20 s nobody is there."""
    made = Workers(2)
    graph = made.graph(0, 0, 0)
    for worker, label in enumerate(said):
        run = made.run(worker, 50, 60, cause=-1 - graph, status=LOST, key="clip-1", wanted=True)
        mark = (MARK, ns(55), UNLOADED, label)
        made._rows[made._workers[worker]].append(mark)
        made.lost(worker, 60, results=0, running=1)
    made.wait(0, 20_000, run, 20_000)
    return made.recording(20_000)


def test_what_workers_that_went_could_not_load_is_told_with_what_to_do() -> None:
    """A module that only the client has: Dask closes each worker, and the run waits for ever."""
    said = "ModuleNotFoundError\tgeo.tiles\t"
    (found,) = ask(unloadable(said, said))
    assert found.headline.startswith(
        "2 workers could not load their tasks (`geo.tiles` is not there)"
    )
    assert 'client.upload_file("geo.py")' in found.fix.code
    assert 'PipInstall(["geo"])' in found.fix.code
    assert found.where.prefix == "clip"
    assert found.severity == Severity.CRITICAL
    assert found.saving_s[0] > 19
    assert found.cost_s > 19


def test_what_is_not_a_missing_module_is_told_by_its_exception_and_line() -> None:
    (found,) = ask(unloadable("AttributeError\t\t/home/me/tiles.py:12", "OSError\t\t"))
    assert "1 worker could not load their tasks (AttributeError at tiles.py:12)" in found.headline
    assert "get_versions" in found.fix.text
    assert found.fix.code == ""


def test_a_module_with_a_hostile_name_is_not_printed_as_code() -> None:
    (found,) = ask(unloadable('ModuleNotFoundError\t"); boom(\t', "no\ttabs"))
    assert "boom" not in found.fix.code


def test_a_worker_that_could_not_load_something_and_went_on_is_no_finding() -> None:
    made = Workers(2)
    end = chain(made)
    mark = (MARK, ns(55), UNLOADED, "ModuleNotFoundError\tgeo\t")
    made._rows[made._workers[0]].append(mark)
    assert ask(made.recording(end)) == []


def test_a_worker_that_went_long_after_that_went_for_another_reason() -> None:
    made = Workers(2)
    end = chain(made, runs=20)
    mark = (MARK, ns(55), UNLOADED, "ModuleNotFoundError\tgeo\t")
    made._rows[made._workers[1]].append(mark)
    made.lost(1, 15_000, results=2, running=0)
    (found,) = ask(made.recording(end))
    assert "could_not_load" not in found.evidence
    assert "dmesg" in found.fix.text


def test_that_nobody_is_there_is_told_with_why() -> None:
    """`late-workers` would say to keep an adaptive cluster's workers."""
    found = unloadable("ModuleNotFoundError\tgeo\t", "ModuleNotFoundError\tgeo\t").findings()
    assert [one.rule for one in found] == ["worker-restarted"]


@pytest.mark.parametrize(("results", "running", "well"), [(0, 0, False), (4, 2, True)])
def test_workers_that_went_with_nothing_or_in_good_order_are_no_finding(
    results: int, running: int, *, well: bool
) -> None:
    """C7: `client.restart()` and scaling down are the user's own will."""
    made = Workers(2)
    end = chain(made)
    made.lost(1, 100, results, running, well=well)
    assert ask(made.recording(end)) == []


@pytest.mark.parametrize(("ended", "expected"), [(5000, True), (1000, False)])
def test_workers_that_went_with_the_programs_ctrl_c_are_no_finding(
    ended: float, *, expected: bool
) -> None:
    """A terminal interrupts them as well; the caller closes the cluster, and waits for threads."""
    made = Workers(2)
    end = chain(made)
    made.lost(0, 5100, results=2, running=0)
    made.lost(1, 5100, results=2, running=1)
    rows = made._rows[CLIENT]
    raised = (MARK, ns(end + 3000), RAISED, "program\tKeyboardInterrupt\t")
    lock = (BLOCK, ns(5200), ns(8000), LANE, LOCK, 0, 0, 0, "")
    rows[:] = [row for row in rows if row[0] != BLOCK] + [raised, lock]
    rows.append((BLOCK, ns(100), ns(ended), LANE, "_gather", 0, 0, 0, "task-1"))
    assert (not ask(made.recording(8000))) is expected


def test_runs_in_vain_are_those_lost_and_those_whose_results_were() -> None:
    made = Workers(2)
    graph = made.graph(0, 0, 0)
    made.run(0, 0, 100, cause=-1 - graph, key="a")
    made.run(0, 100, 200, cause=0, key="b", status=LOST)
    made.lost(0, 200, results=1, running=1)
    made.run(1, 300, 400, cause=1, key="a")
    made.run(1, 400, 500, cause=2, key="b")
    assert wasted(made.recording(500)).tolist() == [0, 1]


def test_what_is_computed_again_for_another_reason_is_not_the_workers_fault() -> None:
    """The same keys in each of five computes, and a worker that goes in the last but one."""
    made = Workers(2)
    rows = []
    for i in range(5):
        graph = made.graph(i * 1000, i * 1000, i * 1000)
        start = i * 1000.0
        rows.append(made.run(0, start, start + 900, cause=-1 - graph, key="sum", wanted=True))
        made.wait(start, start + 900, rows[-1], start + 900)
    cut = made.run(1, 3000, 3500, cause=-4, status=LOST, key="other")
    made.killed(1, 3500, 970)
    made.run(0, 3900, 3990, cause=cut, key="other")
    recording = made.recording(5000)
    assert [recording.timeline.runs["run"][row] for row in wasted(recording)] == [cut]


def test_an_address_that_is_lost_twice_is_two_workers() -> None:
    """What the second had made was not lost with the first."""
    made = Workers(2)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 1000, cause=-1 - graph, key="model")
    made.killed(0, 1500, 970, results=1)
    second = made.run(0, 2000, 3000, cause=first, key="model")
    kept = made.run(0, 3000, 3500, cause=second, key="other")
    made.run(0, 3600, 3700, cause=kept, key="other")
    made.killed(0, 4000, 970, results=1)
    third = made.run(1, 4000, 5000, cause=second, key="model", wanted=True)
    made.wait(0, 5000, third, 5000)
    recording = made.recording(5000)
    runs = recording.timeline.runs["run"]
    assert [runs[row] for row in wasted(recording)] == [first, second]


def test_results_that_went_with_their_worker_and_were_made_again_are_in_vain() -> None:
    made = Workers(2)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 1000, cause=-1 - graph, key="model")
    made.killed(0, 2000, 970, results=1)
    again = made.run(1, 2000, 3000, cause=first, key="model", wanted=True)
    made.wait(0, 3000, again, 3000)
    recording = made.recording(3000)
    assert [recording.timeline.runs["run"][row] for row in wasted(recording)] == [first]
