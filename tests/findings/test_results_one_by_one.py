"""The rule results-one-by-one: results that are there, and are fetched one at a time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client, LocalCluster, as_completed, wait

import clusters
import stageprof
from replay.handmade import CLIENT, HandMade, ns
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.results_one_by_one import RULE
from stageprof_runtime.event import MARK

LIMITS = {name: limit.default for name, limit in RULE.limits.items()}
HERE = Path(__file__).name


def ask(recording: Recording) -> list[Finding]:
    return list(RULE.find(recording, LIMITS))


def fetches(calls: int, *, done: float = 100, after: float = 100, each: float = 10) -> HandMade:
    """Tasks that are done at an instant, ms, and calls that fetch a result each from another on."""
    made = HandMade(2)
    graph = made.graph(0, 0, 0, wanted=calls + 1)
    runs = [
        made.run(i % 2, 0, 50, cause=-1 - graph, finished=done, wanted=True)
        for i in range(calls + 1)
    ]
    made.wait(0, after, runs[0], min(done, after))  # the first may be a compute
    for i, run in enumerate(runs[1:]):
        made.wait(after + i * each, after + (i + 1) * each, run, min(done, after))
    return made


def test_round_trips_for_results_that_are_there_are_their_cost() -> None:
    made = fetches(100)
    made.rows_of(CLIENT).append((MARK, ns(1000), "fetches", "100 /u/etl.py:41"))
    made.rows_of(CLIENT).append((MARK, ns(1000), "fetches", "7 /u/etl.py:99"))
    (found,) = ask(made.recording(1100))
    assert found.cost_s == pytest.approx(1.0)
    assert found.saving_s == pytest.approx((0.8, 0.95), abs=0.001)
    assert found.severity == Severity.CRITICAL
    assert "100 results of `task` are fetched one by one at etl.py:41, each in 10 ms" in (
        found.headline
    )
    assert (found.where.file, found.where.line) == ("/u/etl.py", 41)
    assert "client.gather" in found.fix.text


def test_what_was_fetched_while_tasks_ran_may_have_delayed_nobody() -> None:
    """Half of them came while others were still computed: only the rest is saved for certain."""
    made = fetches(100)
    graph = made.graph(0, 0, 0)
    last = made.run(0, 50, 600, cause=-1 - graph, wanted=True)
    made.wait(1100, 1110, last, 600)
    (found,) = ask(made.recording(1110))
    assert found.saving_s == pytest.approx((0.8 * 0.51, 0.95 * (0.51 + 0.25)), abs=0.001)


def test_waiting_for_the_task_itself_is_no_part_of_it() -> None:
    """Each is fetched as soon as it is done, in no time."""
    made = HandMade(2)
    graph = made.graph(0, 0, 0, wanted=30)
    for i in range(30):
        start = i * 100.0
        run = made.run(0, start, start + 99, cause=-1 - graph, wanted=True)
        made.wait(start, start + 100, run, start + 99)
    assert ask(made.recording(3000)) == []


def test_computes_in_a_loop_are_none() -> None:
    """Each fetches what it has handed over itself."""
    made = HandMade(1)
    for i in range(40):
        start = i * 100.0
        graph = made.graph(start, start, start)
        run = made.run(0, start, start + 10, cause=-1 - graph, wanted=True)
        made.wait(start + 1, start + 100, run, start + 10)
    assert ask(made.recording(4000)) == []


def test_results_of_earlier_calls_are_counted_where_each_round_hands_another_over() -> None:
    """A search that submits a new task for each result that has come."""
    made = HandMade(1)
    runs = []
    for i in range(60):
        start = i * 20.0
        graph = made.graph(start, start, start)
        runs.append(made.run(0, start, start + 5, cause=-1 - graph, wanted=True))
        if i >= 10:
            made.wait(start + 5, start + 15, runs[i - 10], start - 100)
    (found,) = ask(made.recording(1200))
    assert found.evidence["fetched"] == 50
    assert found.cost_s == pytest.approx(0.5)


def test_few_calls_or_such_as_take_little_are_none() -> None:
    assert ask(fetches(19).recording(300)) == []
    assert ask(fetches(100, each=0.2).recording(1100)) == []


def test_large_results_take_their_time_however_they_are_fetched() -> None:
    made = fetches(100)
    rows = made.rows_of(next(place for place in made._rows if place.role == "scheduler"))
    rows[:] = [(*row[:4], 1_000_000, row[5]) if row[-1] == "int" else row for row in rows]
    (found,) = ask(made.recording(1100))
    assert found.saving_s == pytest.approx((0.0, 0.85), abs=0.01)


# -- in a real run --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers in this process."""
    with clusters.inside() as client:
        yield client


def doubled(x: int, _: int) -> int:
    return 2 * x


def one_by_one(client: Client, salt: int) -> int:
    """The line at which results are fetched one by one."""
    futures = client.map(doubled, range(60), [salt] * 60)
    wait(futures)
    frame = inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno + 1
    assert [f.result() for f in futures][5] == 10
    return line


@pytest.mark.flaky(reruns=2)
def test_the_line_that_fetches_is_named(client: Client) -> None:
    with stageprof.profile(gil=False) as prof:
        line = one_by_one(client, 1)
    (found,) = ask(prof.recording)
    assert (Path(found.where.file).name, found.where.line) == (HERE, line)
    assert found.where.prefix == "doubled"
    assert found.evidence["fetched"] == 59


def test_what_is_gathered_at_once_or_as_it_comes_is_none(client: Client) -> None:
    with stageprof.profile(gil=False) as prof:
        first = client.map(doubled, range(60), [2] * 60)
        client.gather(first)
        for _, _ in as_completed(client.map(doubled, range(60), [3] * 60), with_results=True):
            pass
    assert ask(prof.recording) == []
    assert prof.recording.timeline.marks("fetches") == []


def test_in_a_coroutine_it_is_found_as_well() -> None:
    async def main() -> Recording:
        async with (
            LocalCluster(
                n_workers=1, processes=False, dashboard_address=":0", asynchronous=True
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            async with stageprof.profile(gil=False) as prof:
                futures = client.map(doubled, range(60), [4] * 60)
                await wait(futures)
                for future in futures:
                    await future.result()
            return prof.recording

    recording = asyncio.run(main())
    said = [label for _, _, label in recording.timeline.marks("fetches")]
    assert [label.partition(" ")[0] for label in said] == ["60"]
    assert HERE in said[0]
    (found,) = ask(recording)
    assert found.evidence["fetched"] == 59
