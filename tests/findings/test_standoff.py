"""Tasks that wait for a lock, an event and the like for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from distributed import Client, Event

import clusters
import stageprof
from replay.handmade import HandMade, ns
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.resource_contention import RULE
from stageprof_runtime import heldup
from stageprof_runtime.coordination import WAITS
from stageprof_runtime.event import MARK, SPAN
from stageprof_runtime.heldup import LONG_NS, HeldUp
from stageprof_runtime.probes.stacks import running
from stageprof_runtime.ring import Ring
from stageprof_runtime.stage import STEP
from stageprof_runtime.underway import calls

LIMITS = {name: limit.default for name, limit in RULE.limits.items()}


def ask(recording: Recording, **limits: float) -> list[Finding]:
    return list(RULE.find(recording, LIMITS | limits))


def waiting(
    what: str = "Lock db", *, ended: bool = False, last: float = 1000, others: int = 0
) -> Recording:
    """A task on each of two workers waits since 2 s, until the recording ends at 20 s."""
    made = HandMade(2 + others)
    cause = -1 - made.graph(0, 0, 0, wanted=3)
    made.run(0, 0, last, cause=cause, wanted=True)
    for worker in range(2, 2 + others):
        made.goes_on(worker, 1000, cause=cause)
    for worker in (0, 1):
        made.goes_on(worker, 1000, cause=cause)
        rows = made.rows_of(made._workers[worker])
        label, thread = f"/u/etl.py:7 {what}", 100 * worker + 1
        rows.append((MARK, ns(2000), heldup.NAME, f"{thread}\ttask\t{label}"))
        if ended:
            rows.append((SPAN, STEP["wait.resource"], ns(2000), ns(3000), thread, label, 0))
    made.waits_since(0)
    return made.broken_off(20_000)


def test_who_waits_for_what_and_since_when_is_told() -> None:
    (found,) = ask(waiting())
    assert found.headline.startswith(
        "2 tasks of `task` wait for Lock `db` at etl.py:7, and nothing goes on: 18.0 s"
    )
    assert found.cost_s == pytest.approx(18.0)
    assert found.severity == Severity.CRITICAL
    assert "with lock:" in found.fix.code


def test_of_what_nobody_does_there_is_another_fix() -> None:
    (found,) = ask(waiting("Event go"))
    assert "Nobody does" in found.fix.text
    assert found.fix.code == ""


def test_waits_that_ended_are_not_for_ever() -> None:
    assert ask(waiting(ended=True)) == []


def test_while_others_go_on_it_is_not_for_ever() -> None:
    assert ask(waiting(last=19_000)) == []


def test_while_another_task_is_at_work_it_may_have_what_they_wait_for() -> None:
    """`with Lock("gpu"): fit()` takes a minute, and the others wait for their turn."""
    assert ask(waiting(others=1)) == []


def test_what_stands_in_line_is_not_at_work() -> None:
    """The one that would set the event is pinned to the same thread; another worker is idle."""
    made = HandMade(2)
    cause = -1 - made.graph(0, 0, 0, wanted=3)
    made.run(0, 0, 1000, cause=cause, wanted=True)
    for _ in range(2):
        made.goes_on(0, 1000, cause=cause)
    label = "1\ttask\t/u/etl.py:7 Event go"
    made.rows_of(made._workers[0]).append((MARK, ns(2000), heldup.NAME, label))
    made.waits_since(0)
    assert len(ask(made.broken_off(20_000))) == 1


@pytest.mark.parametrize("label", ["", "1", "1\ttask", "x\t\t"])
def test_marks_that_make_no_sense_are_none_or_name_nothing(label: str) -> None:
    made = HandMade(1)
    made.goes_on(0, 0, cause=-1 - made.graph(0, 0, 0))
    made.rows_of(made._workers[0]).append((MARK, ns(100), heldup.NAME, label))
    made.waits_since(0)
    ask(made.broken_off(20_000))


# -- what a worker tells --------------------------------------------------------------------------


def test_a_wait_is_told_once_and_only_if_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    ring, thread = Ring(), threading.get_ident()
    held = HeldUp(ring)
    now = [10**12]
    monkeypatch.setattr(heldup, "now_ns", lambda: now[0])
    monkeypatch.setitem(running, thread, ("worker", "load-1"))
    monkeypatch.setitem(calls, thread, (now[0], f"{WAITS}Lock db"))
    held.tell()
    assert ring.take() == []
    now[0] += LONG_NS
    held.tell()
    held.tell()
    ((_, start, name, said),) = ring.take()
    assert (start, name) == (10**12, heldup.NAME)
    number, prefix, label = said.split("\t")
    assert (number, prefix) == (str(thread), "load")
    assert label.endswith(" Lock db")


def test_a_call_that_waits_for_a_result_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ring, thread = Ring(), threading.get_ident()
    monkeypatch.setitem(running, thread, ("worker", "load-1"))
    monkeypatch.setitem(calls, thread, (0, "_gather"))
    HeldUp(ring).tell()
    assert ring.take() == []


# -- in a real run --------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[Client]:
    with clusters.inside(1, 2) as client:
        yield client


def waits(name: str) -> bool:
    return bool(Event(name).wait(timeout=60))


def test_an_event_that_nobody_sets_is_named(client: Client) -> None:
    """It is set after the recording, so that nothing of it stays."""
    told = threading.Event()
    tell = HeldUp._say

    def noticed(self: HeldUp, *args: object) -> None:
        tell(self, *args)  # type: ignore[arg-type]
        told.set()

    with pytest.MonkeyPatch.context() as patch, stageprof.profile(gil=False) as prof:
        patch.setattr(HeldUp, "_say", noticed)
        future = client.submit(waits, "never-set")
        assert told.wait(60)
    Event("never-set", client=client).set()
    assert future.result() is True
    (found,) = ask(prof.recording, stuck_s=1)
    assert "1 task of `waits` waits for Event `never-set` at test_standoff.py" in found.headline
