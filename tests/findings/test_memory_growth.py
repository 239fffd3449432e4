"""The rule memory-growth: a leak, and what only looks like one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from distributed import Client, get_worker

import clusters
import stageprof
from findings.workers import Workers
from stageprof_collectors.findings import leak
from stageprof_collectors.findings.embedded import Embedded
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.memory_growth import RULE

FILE = "etl.py"


def ask(recording: Recording, **limits: float) -> list[Finding]:
    usual = {name: limit.default for name, limit in RULE.limits.items()}
    return list(RULE.find(recording, usual | limits))


def repeated(
    process: Callable[[int], float],
    managed: Callable[[int], float] = lambda _: 0,
    times: int = 12,
    made: Workers | None = None,
    left: float | None = None,
    parent: int = -1,
) -> Recording:
    """A computation of a second, so many times; memory before each, and more during it.

    With `left` the process was measured around its run, which left so much. With `parent` all but
    the first are sent by that run.
    """
    made = made or Workers(1, 1000)
    last = -1
    for i in range(times):
        now = i * 1000.0
        graph = made.graph(now, now, now, parent=parent if i else -1)
        last = made.run(0, now + 10, now + 900, cause=-1 - graph, wanted=True)
        made.wait(now, now + 950, last, now + 900)
        made.took(0, now + 5, process(i), managed(i))
        made.took(0, now + 500, process(i) + 200, managed(i))
        if left is not None:
            made.around(0, last, process(i) + 50, process(i) + 50 + left)
    return made.recording(times * 1000.0)


def leaking(i: int) -> float:
    return 150 + 25 * i + 3 * (i % 3)


def test_memory_that_is_not_given_back_is_a_leak() -> None:
    """C4, C5: less memory in each run than in the one before; nothing that Dask holds."""
    (found,) = ask(repeated(leaking))
    assert found.evidence["kind"] == "unmanaged"
    assert found.evidence["each_time_bytes"] == pytest.approx(25e6, rel=0.1)
    assert found.severity == Severity.MODERATE
    assert found.saving_s == (0, 0)
    assert "maxlen" in found.fix.code
    assert "nothing that Dask holds" in found.headline
    assert "Which tasks leave it cannot be told" in found.fix.text
    # 1,000 MB are paused at 800; the peak was 150 + 25 * 11 + 6 + 200
    assert found.evidence["until_paused_s"] == pytest.approx(169 / 25, rel=0.15)


def test_what_tasks_hold_that_wait_for_what_they_sent_is_no_leak() -> None:
    """Of a recursion each level is a computation, within the one before."""
    assert not ask(repeated(leaking, parent=0))


def test_the_tasks_that_leave_it_are_named() -> None:
    """C6: what leaves 25 MB in each of twelve runs explains 25 MB with each computation."""
    (found,) = ask(repeated(leaking, left=25))
    prefix = found.where.prefix
    assert prefix
    assert f"what `{prefix}` leaves behind" in found.headline
    assert found.evidence["left_by"] == prefix
    assert found.evidence["left_each_run_bytes"] == pytest.approx(25e6)
    assert f"`{prefix}` leaves about 25.0 MB on its worker in each of its 12 runs" in found.fix.text


@pytest.mark.parametrize(("sent", "keeps"), [(275e6, True), (100e6, False), (900e6, False)])
def test_what_tasks_were_sent_with_is_told_from_a_leak(
    monkeypatch: pytest.MonkeyPatch, sent: float, keeps: bool
) -> None:
    """A worker keeps an argument while the result is wanted; no list of the user's does."""
    thing = Embedded(
        1, "numpy.ndarray", "weights", FILE, 3, "argument 1 of f", FILE, 9, frozenset({"f"}),
        25_000_000, 12, 12, 0, round(sent), 0.1, 0.1, 0.2,
    )  # fmt: skip
    monkeypatch.setattr(leak, "embedded", lambda _: [thing])
    (found,) = ask(repeated(leaking))
    assert (found.cause == thing.cause) is keeps
    assert ("`weights`, which its tasks carry" in found.headline) is keeps
    assert ("Send it once" in found.fix.text) is keeps
    assert bool(found.fix.code) is not keeps  # there is no list to bound


@pytest.mark.parametrize(("tasks", "keeps"), [(36, True), (90, False)])
def test_what_each_of_the_tasks_that_leave_it_was_sent_with_is_no_leak(
    monkeypatch: pytest.MonkeyPatch, tasks: int, keeps: bool
) -> None:
    """Others were sent with it, too, and left nothing: 900 MB, and 25 or 10 MB each."""
    (plain,) = ask(repeated(leaking, left=25))
    thing = Embedded(
        1, "numpy.ndarray", "weights", FILE, 3, "global weights of f", FILE, 9,
        frozenset({f"{plain.where.prefix}-{'0' * 32}"}), 25_000_000, 12, tasks, 0, 900_000_000,
        0.1, 0.1, 0.2,
    )  # fmt: skip
    monkeypatch.setattr(leak, "embedded", lambda _: [thing])
    (found,) = ask(repeated(leaking, left=25))
    assert (found.cause == thing.cause) is keeps


@pytest.mark.parametrize(("line", "keeps"), [(9, True), (0, False)])
def test_values_that_a_line_sends_each_to_a_task_are_taken_together(
    monkeypatch: pytest.MonkeyPatch, line: int, *, keeps: bool
) -> None:
    """Three of 90 MB each, of which none explains 275 MB; or each of a line of its own."""
    things = [
        Embedded(
            i, "numpy.ndarray", name, FILE, i, "argument 1 of f", FILE, line or i,
            frozenset({f"f-{i}"}), 90_000_000, 1, 4, 0, 90_000_000, 0.1, 0.1, 0.2, many=4,
        )
        for i, name in enumerate(("", "left", "right"), 1)
    ]  # fmt: skip
    monkeypatch.setattr(leak, "embedded", lambda _: things)
    (found,) = ask(repeated(leaking))
    assert ("which its tasks carry" in found.headline) is keeps
    assert ("an object of 22.5 MB in 12 tasks" in found.fix.text) is keeps


@pytest.mark.parametrize("left", [0, 5, -20, 80])
def test_tasks_that_leave_much_less_or_more_than_it_grows_are_not_blamed(left: float) -> None:
    (found,) = ask(repeated(leaking, left=left))
    assert found.where.prefix == ""
    assert "left_by" not in found.evidence


@pytest.mark.parametrize(
    "process",
    [
        lambda i: 150 if i == 0 else 420 + 3 * (i % 3),
        lambda i: min(150 + 60 * i, 400) + i % 2,
        lambda i: 300 + 20 * (i % 4),
        lambda i: 500 - 10 * i,
    ],
    ids=["kept for later", "plateau", "up and down", "falls"],
)
def test_what_levels_off_is_no_leak(process: Callable[[int], float]) -> None:
    """C4: allocators keep freed memory, caches fill up."""
    assert ask(repeated(process)) == []


def test_results_that_the_program_holds_are_told_from_a_leak() -> None:
    """C3: objects stay in memory because somebody holds them."""
    (found,) = ask(repeated(lambda i: 150 + 30 * i, lambda i: 30.0 * i))
    assert found.evidence["kind"] == "managed"
    assert found.severity == Severity.NOTE
    assert found.fix.code == ""
    assert "del" in found.fix.text
    assert "results that your program holds" in found.headline


@pytest.mark.parametrize("held", [20.0, 60.0])
def test_a_leak_is_told_however_fast_results_grow_that_the_program_holds(held: float) -> None:
    """Of the two only the larger was told, and that as a note."""
    found = ask(repeated(lambda i: leaking(i) + held * i, lambda i: held * i))
    assert [(f.evidence["kind"], f.severity) for f in found] == [
        ("unmanaged", Severity.MODERATE),
        ("managed", Severity.NOTE),
    ]


def test_a_leak_that_takes_long_to_matter_is_a_note() -> None:
    (found,) = ask(repeated(leaking, made=Workers(1, 200_000)))
    assert found.severity == Severity.NOTE


def test_a_program_that_restarts_its_workers_is_not_told_to() -> None:
    """C6: restarting is the remedy."""
    made = Workers(2, 1000)
    made.lost(1, 100, results=0, running=0)
    (found,) = ask(repeated(leaking, made=made))
    assert found.severity == Severity.NOTE


def test_seconds_that_it_made_workers_spill_are_its_saving() -> None:
    made = Workers(1, 1000)
    for i in range(8, 12):
        made.spilled(0, i * 1000 + 900, i * 1000 + 1000)
    (found,) = ask(repeated(leaking, made=made))
    assert found.cause == "memory"
    assert found.evidence["kind"] == "unmanaged"


@pytest.mark.parametrize("times", [1, 6])
def test_too_few_computations_tell_nothing(times: int) -> None:
    assert ask(repeated(leaking, times=times)) == []


def test_growth_below_what_allocators_do_is_nothing() -> None:
    assert ask(repeated(lambda i: 150 + i)) == []
    assert len(ask(repeated(lambda i: 150 + i), grown_bytes=5e6)) == 1


#: Each takes some ten milliseconds, and a worker tells of its memory ten times a second.
ROUNDS = 100


def keep(megabytes: int) -> int:
    """Leave something on the worker for good."""
    worker: Any = get_worker()
    worker.kept = [*getattr(worker, "kept", []), np.ones(megabytes * 125_000)]
    return len(worker.kept)


def keep_some(megabytes: int, code: str) -> int:
    """The same, into what some code makes."""
    worker: Any = get_worker()
    if not hasattr(worker, "some"):
        scope: dict[str, Any] = {}
        exec(code, scope)
        worker.some = scope["kept"]
    worker.some.append(np.ones(megabytes * 125_000))
    return len(worker.some)


def churn(megabytes: int) -> int:
    """Take and give back as much, in pieces as small as an allocator keeps."""
    pieces = [bytes(1000 + i % 7) for i in range(megabytes * 1000)]
    return len(pieces)


@pytest.fixture
def client() -> Any:
    with clusters.local(1) as client:
        yield client


def rounds(client: Client, work: Callable[[int], int]) -> stageprof.Recording:
    with stageprof.profile() as prof:
        for i in range(ROUNDS):
            client.submit(work, 6, pure=False, key=f"round-{i}").result()
    return prof.recording


@pytest.mark.nightly
@pytest.mark.cluster
def test_a_planted_leak_is_found_and_the_printed_code_ends_it(client: Client) -> None:
    """C6: with its megabytes and whose they are; restarted workers have none of them."""
    (found,) = ask(rounds(client, keep), soon_s=1e9)
    assert found.evidence["each_time_bytes"] == pytest.approx(6e6, rel=0.25)
    assert found.evidence["grown_bytes"] == pytest.approx(ROUNDS * 6e6, rel=0.3)
    assert found.evidence["left_each_run_bytes"] == pytest.approx(6e6, rel=0.25)
    assert found.where.prefix == "round"
    client.restart()
    assert client.submit(keep, 1, pure=False).result() == 1
    code = found.fix.code.replace("maxlen=100", "maxlen=10")
    assert ask(rounds(client, functools.partial(keep_some, code=code))) == []


@pytest.mark.nightly
@pytest.mark.cluster
def test_an_allocator_that_keeps_memory_is_no_leak(client: Client) -> None:
    assert ask(rounds(client, churn)) == []
