"""Workers that go and come back, to the address that they had."""

from __future__ import annotations

from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.event import FINISH, MARK, STATUS

HERE = "tcp://host:10"


def recording(*, back: bool, again: bool = False) -> Recording:
    """A worker with two threads goes at 300 ms, comes back at 310 and may go again at 700."""
    made = HandMade(workers=1, threads=2)
    graph = made.graph(0, 0, 0)
    run = made.run(0, 400, 900, cause=-1 - graph, wanted=True)
    made.wait(0, 900, run, 900)
    rows = made.rows_of(SCHEDULER)
    rows.append((MARK, ns(300), "worker left", HERE))
    if back:
        rows.append((MARK, ns(310), "worker seen", f"{HERE} 2 0 again"))
    if again:
        rows.append((MARK, ns(700), "worker left", HERE))
    return made.recording(1000)


def stays(recording: Recording) -> list[tuple[float, float]]:
    start = recording.timeline.region.start
    members = Crew(recording).members
    return [((m.since - start) / 1e6, (m.until - start) / 1e6) for m in members]


def test_one_that_came_back_has_not_left() -> None:
    assert recording(back=False).workers()["left"].tolist() == [True]
    assert recording(back=True).workers()["left"].tolist() == [False]
    assert recording(back=True, again=True).workers()["left"].tolist() == [True]


def test_each_stay_is_a_members() -> None:
    assert stays(recording(back=False)) == [(0, 300)]
    assert stays(recording(back=True)) == [(0, 300), (310, 1000)]
    assert stays(recording(back=True, again=True)) == [(0, 300), (310, 700)]


def test_one_that_is_named_twice_while_it_is_there_is_one() -> None:
    made = HandMade(workers=2, threads=2)
    made.rows_of(SCHEDULER).append((MARK, ns(200), "worker seen", f"{HERE} 2 0 again"))
    crew = Crew(made.recording(1000))
    assert len(crew.members) == len(crew.fullest) == 2
    assert crew.threads == 4


def test_who_was_there_at_once_is_known_of_workers_that_take_turns() -> None:
    made = HandMade(workers=3)
    rows = made.rows_of(SCHEDULER)
    rows.append((MARK, ns(500), "worker left", HERE))
    rows.append((MARK, ns(500), "worker seen", "tcp://host:99 1 0 new"))
    crew = Crew(made.recording(1000))
    assert len(crew.members) == 4
    assert len(crew.fullest) == 3


def test_what_a_killed_worker_had_in_its_queue_was_no_work() -> None:
    """Nobody knows when such tasks began: it was busy for 45 s of one second."""
    made = HandMade(workers=1)
    graph = made.graph(0, 0, 0)
    done = made.run(0, 0, 100, cause=-1 - graph, wanted=True)
    for _ in range(50):
        made.goes_on(0, 0, cause=-1 - graph)
    lost = STATUS.index("lost")
    rows = made.rows_of(SCHEDULER)
    rows += [(FINISH, run, ns(900), lost, 0, "") for run in range(done + 1, done + 51)]
    assert made.recording(1000).workers()["busy_s"].tolist() == [0.1]
