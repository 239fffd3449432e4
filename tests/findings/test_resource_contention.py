"""The rule resource-contention: tasks that wait for what others have."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from types import SimpleNamespace

import dask
import distributed
import pytest
from dask.utils import SerializableLock

import stageprof
from findings.asking import asked, one, run
from findings.crews import Crewed
from replay.handmade import ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.resource_contention import RULE
from stageprof_runtime.event import RESOURCE, SPAN
from stageprof_runtime.stage import STEP


def turns(what: str, held: float = 100, number: int = 6, end: float = 0) -> Recording:
    """Tasks on three threads, one of which has it at a time; the others wait."""
    made = Crewed(1, threads=3)
    cause = -1 - made.graph(0, 0, 0)
    rows = made.rows_of(made._workers[0])
    last = 0
    for i in range(number):
        begin, has = max(0.0, (i - 2) * held), i * held
        last = made.run(0, begin, has + held, cause=cause, thread=i % 3, lead=(0, 0))
        if has > begin:
            label = f"/home/me/etl.py:12 {what}"
            rows.append((SPAN, STEP["wait.resource"], ns(begin), ns(has), i % 3 + 1, label, 0))
    made.wait(0, number * held, last, number * held)
    return made.recording(end or number * held)


def test_tasks_behind_a_lock_are_found_with_what_its_absence_would_save() -> None:
    """600 ms in turns are 200 ms side by side."""
    found = one(RULE, turns("Lock file"))
    assert found.headline.startswith("5 tasks, most of `task`, wait for Lock `file` at etl.py:12")
    assert (found.where.file, found.where.line) == ("/home/me/etl.py", 12)
    assert found.evidence["waits"] == 5
    assert found.evidence["waited_s"] == pytest.approx(0.9)
    assert found.saving_s == pytest.approx((0.0, 0.4), abs=0.02)


def test_one_task_that_waits_is_not_many() -> None:
    found = one(RULE, turns("Lock file", number=2))
    assert found.headline.startswith("`task` waits for Lock `file` at etl.py:12")


@pytest.mark.parametrize(("end", "fires"), [(600, True), (20_000, False)])
def test_a_small_part_of_the_run_is_no_reason(end: float, fires: bool) -> None:
    assert bool(asked(RULE, turns("Lock file", end=end))) is fires


@pytest.mark.parametrize(
    ("what", "says", "code"),
    [
        ("Lock it's mine", "do the rest before or after", 'name="several-it\'s mine"'),
        ("Semaphore leases", "Give it more", ""),
        ("Event ready", "Let Dask wait in their place", "secede()"),
        ("Queue", "Let Dask wait in their place", "secede()"),
        ("SerializableLock", "one thread of each process", "threads_per_worker=1"),
    ],
)
def test_each_has_a_way_out_of_its_own(what: str, says: str, code: str) -> None:
    found = one(RULE, turns(what))
    assert says in found.fix.text
    assert code in found.fix.code
    compile(found.fix.code, "<fix>", "exec")


def test_the_code_that_leaves_the_thread_waits() -> None:
    """Outside a task there is no thread to leave: it is replaced here."""
    found = one(RULE, turns("Event ready"))
    names = run(found)
    left: list[str] = []
    names["secede"], names["rejoin"] = lambda: left.append("left"), lambda: left.append("back")
    assert names["wait"](lambda: 7) == 7
    assert left == ["left", "back"]


@pytest.mark.parametrize(
    ("name", "told"),
    [("GPU", "as much of GPU;"), ("GPU, disk", "as much of GPU and disk;"), ("'\n", "of it;")],
)
def test_a_resource_of_the_workers_is_found_too(
    name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four tasks of 100 ms on three threads, one at a time for want of a GPU."""
    made = Crewed(1, threads=3)
    cause = -1 - made.graph(0, 0, 0)
    rows = made.rows_of(made._workers[0])
    last = 0
    for i in range(4):
        stop = i * 100 + 100
        last = made.run(0, i * 100, stop, cause=cause, thread=i % 3, lead=(0, 0))
        rows.append((RESOURCE, last, name))
    made.wait(0, 400, last, 400)
    found = one(RULE, made.recording(400))
    assert "wait for resource `" in found.headline
    # The last one's thread had the first to do.
    assert found.cost_s == pytest.approx(0.2, abs=0.01)
    assert found.saving_s[1] == pytest.approx(0.2, abs=0.02)
    assert told in found.fix.code
    # What workers have of it was not told: how much twice as much is, the code finds out.
    has = {"workers": {"tcp://a:1": {"resources": {"memory": 4e9}}}}
    client = SimpleNamespace(scheduler_info=lambda **_: has)
    monkeypatch.setattr(distributed.Client, "current", lambda: client)
    started: list[dict[str, float]] = []
    monkeypatch.setattr(distributed, "LocalCluster", lambda *, resources: started.append(resources))
    run(found)
    assert started == [{"memory": 8e9}]


def test_names_of_locks_and_files_may_be_anything() -> None:
    made = turns("Lock my file: 3\nof 4")
    rows = made.timeline.spans["label"]
    assert any("my file: 3" in made.store.strings[row] for row in rows.tolist())
    found = one(RULE, made)
    assert found.evidence["name"] == "my file: 3\nof 4"
    assert (found.where.file, found.where.line) == ("/home/me/etl.py", 12)


#: What the tasks themselves measured: seconds that each thread waited for the lock, and all had it.
WAITED: defaultdict[int, float] = defaultdict(float)
HELD: list[float] = []


def guarded(number: int, lock: SerializableLock) -> int:
    began = time.perf_counter()
    with lock:
        got = time.perf_counter()
        time.sleep(0.1)
        HELD.append(time.perf_counter() - got)
    WAITED[threading.get_ident()] += got - began
    return number


def test_what_dask_guards_on_threads_is_found_though_the_path_waits_nowhere() -> None:
    """One task follows the other on it, each with the lock: 600 ms that would be 200.

    Beside other tests they are longer. And who lets a lock go may get it again before those who
    wait: then the last task waits on the path, for longer than all of it could be saved.
    """
    lock, call = SerializableLock(), dask.delayed(guarded)
    WAITED.clear()
    HELD.clear()
    with stageprof.profile(gil=False) as region:
        dask.compute(*[call(i, lock) for i in range(6)], scheduler="threads", num_workers=3)

    found = one(RULE, region.recording)

    assert "most of `guarded`, wait for the `SerializableLock` of their process" in found.headline
    assert (found.where.file, found.where.line) == (__file__, guarded.__code__.co_firstlineno + 2)
    assert found.evidence["waited_s"] == pytest.approx(sum(WAITED.values()), rel=0.3)
    assert 0.7 * sum(HELD) * 2 / 3 <= found.cost_s <= 1.3 * max(WAITED.values())
