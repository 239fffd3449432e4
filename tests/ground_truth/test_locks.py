"""Who waits for other threads until keys of their own arrive waits for Dask.

That what others compute is no part of the account is in `test_futures`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import as_completed
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from distributed import Client, Future, progress

import planted
import stageprof
from replay.handmade import CLIENT, LANE, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import ARRIVE, BLOCK, LOCK, SUBMIT
from stageprof_runtime.ring import Ring
from stageprof_runtime.sampler import Sampler
from stageprof_runtime.seen import LOCKED

#: Tasks, and seconds that each sleeps; there are two threads for them.
TASKS, DELAY = 6, 0.2


def slow(number: int) -> int:
    time.sleep(DELAY)
    return number


def by_progress(client: Client) -> None:
    with redirect_stdout(StringIO()):
        progress(client.map(slow, range(TASKS), pure=False), notebook=False)


def by_executor(client: Client) -> None:
    with client.get_executor(pure=False) as pool:
        futures = [pool.submit(slow, i) for i in range(TASKS)]
        assert [future.result() for future in futures] == [*range(TASKS)]


def by_completion(client: Client) -> None:
    with client.get_executor(pure=False) as pool:
        assert len([*as_completed(pool.submit(slow, i) for i in range(TASKS))]) == TASKS


def by_callback(client: Client) -> None:
    ended = threading.Semaphore(0)

    def called(_: Future[int]) -> None:
        ended.release()

    futures = client.map(slow, range(TASKS), pure=False)
    for future in futures:
        future.add_done_callback(called)
    for _ in futures:
        ended.acquire()


@pytest.mark.parametrize(
    "wait",
    [by_progress, by_executor, by_callback, pytest.param(by_completion, marks=pytest.mark.nightly)],
)
def test_waiting_for_those_who_wait_for_dask_is_no_code_of_the_users(
    client: Client, wait: Callable[[Client], None]
) -> None:
    """All of these were `outside`."""
    wait(client)  # `progress` imports much the first time
    with stageprof.profile(gil=False) as region:
        wait(client)
    wall = region.recording.stages()["wall_s"]
    assert wall["execution"] > 0.85 * TASKS * DELAY / 2
    assert wall["outside"] < 0.25 * region.recording.wall


def test_waiting_for_threads_that_have_nothing_to_do_with_dask_is(
    client: Client, tmp_path: Path
) -> None:
    """Whatever tasks do beside it, if none of them ends meanwhile."""
    log = str(tmp_path / "log")
    with stageprof.profile(gil=False) as region:
        late = client.submit(time.sleep, 1.0, pure=False)
        thread = threading.Thread(target=planted.timed_sleep, args=(log, "own", 0.5))
        thread.start()
        thread.join()
        late.result()
    (noted,) = planted.truths(log)
    outside = region.recording.stages()["wall_s"]["outside"]
    assert outside == pytest.approx(noted["seconds"], abs=0.1)


# -- by hand: times are in ms ----------------------------------------------------------------------


def locked(
    *arrivals: float, exact: tuple[float, float] | None = None, other: bool = False
) -> Recording:
    """1,000 ms behind a lock, in which tasks of 100 ms end and their keys arrive.

    With `exact`, a call of which is known from when to when it was is beside it; the graphs were
    handed over by the thread that waits, or by `other`.
    """
    made = HandMade(1)
    rows = made.rows_of(CLIENT)
    for t in arrivals:
        graph = made.graph(t - 110, t - 105, t - 102)
        run = made.run(0, t - 100, t - 1, cause=-1 - graph, wanted=True, finished=t - 1)
        rows.append((ARRIVE, ns(t), f"task-{run}"))
        if other:
            rows[:] = [(*row[:5], LANE + 1, *row[6:]) if row[0] == SUBMIT else row for row in rows]
    rows.append((BLOCK, ns(0), ns(1000), LANE, LOCK, 0, 0, 0, ""))
    if exact:
        start, stop = map(ns, exact)
        rows.append((BLOCK, start, stop, LANE, "_gather", 0, start, stop, ""))
    return made.recording(1000)


def test_what_threads_do_before_a_hand_over_and_after_an_arrival_is_the_users() -> None:
    wall = locked(300, 700).stages()["wall_s"]
    assert wall["execution"] == pytest.approx(0.198)
    assert wall["outside"] == pytest.approx(1 - 2 * 0.110)


def test_what_arrives_just_after_the_last_look_was_waited_for_as_well() -> None:
    wall = locked(1030).stages()["wall_s"]
    assert wall["execution"] == pytest.approx(0.070)
    assert locked(1150).stages()["wall_s"]["outside"] == pytest.approx(1.0)


def test_what_another_thread_handed_over_is_no_part_of_the_account() -> None:
    assert locked(300, 700, other=True).stages()["wall_s"]["outside"] == pytest.approx(1.0)


def test_where_nothing_arrives_all_of_it_is_the_users() -> None:
    assert locked().stages()["wall_s"]["outside"] == pytest.approx(1.0)


def test_calls_whose_times_are_known_go_before_what_was_only_seen() -> None:
    """What arrives in the call was waited for there, and not by the lock before it."""
    wall = locked(300, exact=(250, 900)).stages()["wall_s"]
    assert wall["communication"] == pytest.approx(0.65)
    assert wall["outside"] == pytest.approx(0.35)


def test_a_long_wait_is_told_each_second_without_a_gap() -> None:
    """The program may be killed while it waits; and who looks at it live sees it."""
    ring, ms = Ring(), 1_000_000
    sampler = Sampler(ring, 0)
    begin = sampler._last
    for t in range(20, 2520, 20):
        sampler.see((LOCKED, ""), begin + t * ms)
    sampler.see((0, ""), begin + 2520 * ms)
    rows = [row for row in ring.take() if row[0] == BLOCK]
    assert [row[4] for row in rows] == [LOCK] * 3
    assert [row[1] for row in rows[1:]] == [row[2] for row in rows[:-1]]
    assert rows[-1][2] - rows[0][1] == 2500 * ms
