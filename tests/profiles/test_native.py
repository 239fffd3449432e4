"""Looks with C frames are joined with tasks, and say where their seconds went, never how many."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st

import stageprof
from examples import EXAMPLES
from profiles.stacks_made import HOSTILE
from replay.handmade import ns
from stageprof.pages.boxes import LIBRARY, USER, boxes
from stageprof.pages.flame import text as page
from stageprof_collectors.profiles.flame import Flame, flame
from stageprof_collectors.profiles.folded import collapsed
from stageprof_collectors.profiles.nodes import Frame
from stageprof_collectors.profiles.sides import sides
from stageprof_collectors.profiles.speedscope import speedscope
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import FLAME, NATIVE, NODE
from stageprof_runtime.gil.permission import spy
from stageprof_runtime.stage import STEP
from ui.observed import Observed

SQUEEZE = ("squeeze", "/u/etl.py", 7)
TALLY = ("tally", "/u/etl.py", 20)
DEFLATE = ("deflate", "libz.so.1", 0)
SLEEP = ("clock_nanosleep", "libc.so.6", 0)
LENGTH = 1000


class Unwound(Observed):
    """A worker whose tasks were looked at from within and from outside; milliseconds."""

    def __init__(self, workers: int = 1) -> None:
        super().__init__(workers)
        self._known: dict[tuple[int, tuple[Any, ...]], int] = {}

    def node(self, *stack: tuple[str, str, int], worker: int = 0) -> int:
        """The number of a stack, from the outermost frame inward."""
        key = worker, stack
        if key not in self._known:
            around = self.node(*stack[:-1], worker=worker) if len(stack) > 1 else -1
            number = self._known[key] = len(self._known)
            self._rows[self._workers[worker]].append((NODE, number, around, *stack[-1]))
        return self._known[key]

    def within(
        self, prefix: str, ms: float, *stack: tuple[str, str, int], how: str = "library",
        worker: int = 0,
    ) -> None:  # fmt: skip
        """Looks from within."""
        node = self.node(*stack, worker=worker)
        row = (
            FLAME,
            ns(1),
            STEP["compute"],
            prefix,
            how,
            node,
            max(int(ms / 50), 1),
            round(ms * 1e6),
        )
        self._rows[self._workers[worker]].append(row)

    def outside(
        self, start: float, stop: float, *stack: tuple[str, str, int], worker: int = 0
    ) -> None:
        """py-spy's."""
        node = self.node(*stack, worker=worker)
        row = (NATIVE, ns(start), ns(stop), self._ident(worker, 0), node)
        self._rows[self._workers[worker]].append(row)

    def task(self, key: str, start: float, stop: float, worker: int = 0) -> None:
        """The worker's thread ran it."""
        if not hasattr(self, "_graph"):
            self._graph = self.graph(0, 0, 0)
        self.run(worker, start, stop, cause=-1 - self._graph, key=key)


def shown(found: Flame) -> dict[str, Any]:
    """Seconds by stack."""
    return {
        " ".join(f.name for f in stack): pytest.approx(took.seconds)
        for stack, took in found.stacks.items()
    }


def squeezed() -> Unwound:
    """A second of one task, of which py-spy saw 0.4 s: three parts of four in C."""
    made = Unwound()
    made.task("squeeze-1", 0, LENGTH)
    made.within("squeeze", LENGTH, SQUEEZE)
    for start, stack in ((500, (SQUEEZE, DEFLATE)), (600, (SQUEEZE, DEFLATE)), (700, (SQUEEZE,)),
                         (800, (SQUEEZE, DEFLATE))):  # fmt: skip
        made.outside(start, start + 100, *stack)
    return made


def recorded(made: Unwound) -> Recording:
    return made.recording(2 * LENGTH)


def test_tasks_have_their_c_frames_and_the_seconds_that_they_had() -> None:
    recording = recorded(squeezed())
    found = recording.flame(prefix="squeeze")
    assert shown(found) == {"squeeze deflate": 0.75, "squeeze": 0.25}
    assert found.seconds == pytest.approx(1)
    assert [side.flame.seconds for side in sides(recording)] == [pytest.approx(1)]


def test_without_looks_from_outside_nothing_changes() -> None:
    made = Unwound()
    made.task("squeeze-1", 0, LENGTH)
    made.within("squeeze", LENGTH, SQUEEZE)
    recording = recorded(made)
    table = recording.store.table("flame")
    assert len(table["total"]) > 0
    assert all((recording.looked[name] == table[name]).all() for name in table)


def test_a_prefix_of_which_little_was_seen_from_outside_keeps_its_looks_from_within() -> None:
    made = Unwound()
    for prefix, stack, seen in (("squeeze", SQUEEZE, 100), ("tally", TALLY, 900)):
        at = 0 if prefix == "squeeze" else LENGTH
        made.task(f"{prefix}-1", at, at + LENGTH)
        made.within(prefix, LENGTH, stack)
        made.outside(at, at + seen, stack, DEFLATE)
    recording = recorded(made)
    assert shown(recording.flame(prefix="squeeze")) == {"squeeze": 1.0}
    assert shown(recording.flame(prefix="tally")) == {"tally deflate": 1.0}
    assert recording.flame().seconds == pytest.approx(2)


def test_each_process_is_judged_by_itself() -> None:
    """One in which py-spy was refused keeps what was seen from within."""
    made = Unwound(2)
    for worker in (0, 1):
        made.task(f"squeeze-{worker}", 0, LENGTH, worker)
        made.within("squeeze", LENGTH, SQUEEZE, worker=worker)
    made.outside(0, LENGTH, SQUEEZE, DEFLATE, worker=1)
    recording = recorded(made)
    assert shown(recording.flame(prefix="squeeze")) == {"squeeze": 1.0, "squeeze deflate": 1.0}
    names = [place.name for place in recording.store.places if place.role == "worker"]
    found = [shown(flame(recording, worker=name)) for name in names]
    assert sorted(found, key=lambda each: len(*each)) == [{"squeeze": 1}, {"squeeze deflate": 1}]


@pytest.mark.parametrize("off", [-8, 0, 8])
def test_a_look_is_of_the_task_whose_function_it_shows_though_its_clock_is_off(off: int) -> None:
    """Tasks of 10 ms of two prefixes in turn, looked at in the middle of every second one."""
    made = Unwound()
    for i in range(50):
        prefix, function = (("squeeze", SQUEEZE), ("tally", TALLY))[i % 2]
        made.task(f"{prefix}-{i}", 10 * i, 10 * i + 10)
        made.within(prefix, 10, function)
        if i % 5 == 0:
            made.outside(10 * i + 5 + off, 10 * i + 45 + off, function, DEFLATE)
    recording = recorded(made)
    for prefix in ("squeeze", "tally"):
        assert shown(recording.flame(prefix=prefix)) == {f"{prefix} deflate": 0.25}


def test_a_look_of_no_task_that_could_be_meant_counts_for_none() -> None:
    made = squeezed()
    made.outside(900, 950, TALLY, DEFLATE)
    made.outside(1500, 1900, SQUEEZE, SLEEP)
    found = recorded(made).flame(prefix="squeeze")
    assert shown(found) == {"squeeze deflate": 0.75, "squeeze": 0.25}


def test_c_that_waits_is_told_from_c_that_computes_by_the_looks_from_within() -> None:
    made = Unwound()
    made.task("both-1", 0, LENGTH)
    made.within("both", 600, SQUEEZE)
    made.within("both", 400, SQUEEZE, TALLY, how="waiting")
    made.outside(0, 600, SQUEEZE, DEFLATE)
    made.outside(600, 1000, SQUEEZE, TALLY, SLEEP)
    found = recorded(made).flame(prefix="both")
    assert found.shares == pytest.approx((0, 0.6, 0.4))


def test_bytecode_is_where_stacks_end_in_python() -> None:
    """Half of a function was bytecode, as seen from within; half of its stacks end in C."""
    made = Unwound()
    made.task("squeeze-1", 0, LENGTH)
    made.within("squeeze", 500, SQUEEZE, how="python")
    made.within("squeeze", 500, SQUEEZE)
    made.outside(0, 500, SQUEEZE, DEFLATE)
    made.outside(500, 1000, SQUEEZE)
    assert recorded(made).flame(prefix="squeeze").shares == pytest.approx((0.5, 0.5, 0))


def test_looks_are_as_many_as_from_within() -> None:
    assert recorded(squeezed()).flame(prefix="squeeze").looks.sum() == 20


def test_c_has_no_line_and_is_a_librarys() -> None:
    recording = recorded(squeezed())
    found = recording.flame(prefix="squeeze")
    assert "squeeze etl.py:7;deflate libz.so.1 " in collapsed(found)
    drawn = boxes(side._replace(stage=str(side.stage)) for side in sides(recording))
    kinds = {drawn.texts[box.name]: box.kind for box in drawn.boxes}
    assert (kinds["squeeze"], kinds["deflate"]) == (USER, LIBRARY)


# -- harmless -------------------------------------------------------------------------------------


def test_names_of_c_are_as_harmless_as_all_others() -> None:
    made = Unwound()
    made.task("squeeze-1", 0, LENGTH)
    made.within("squeeze", LENGTH, SQUEEZE)
    for i, text in enumerate(HOSTILE):
        made.outside(100 * i, 100 * i + 100, SQUEEZE, (text, text, 0))
    recording = recorded(made)
    found = recording.flame(prefix="squeeze")
    assert len(found.stacks) == len(HOSTILE)
    html = page(stageprof.Recording(recording.store))
    assert "<script>window.hacked" not in html
    assert "<img src=x" not in html
    for text in (html, collapsed(found), str(speedscope(found))):
        assert not {"\u202e", "\x1b"} & set(text)


HUGE = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 4 * 10**9))


@settings(deadline=None, max_examples=EXAMPLES // 2)
@given(st.lists(st.tuples(HUGE, HUGE, st.one_of(st.just(1), HUGE), HUGE), max_size=20))
def test_no_rows_make_it_raise_or_add_a_second(rows: list[tuple[int, ...]]) -> None:
    made = squeezed()
    mine = made._rows[made._workers[0]]
    mine += [(NATIVE, *row) for row in rows]
    found = recorded(made).flame(prefix="squeeze")
    assert found.seconds == pytest.approx(1, rel=1e-3)
    assert np.isfinite(found.total).all()


# -- for true -------------------------------------------------------------------------------------


def squeeze(seed: int) -> int:
    """Most of it is zlib's."""
    numbers = np.random.default_rng(seed).integers(0, 50, 500_000, dtype=np.uint8)
    return sum(len(zlib.compress(numbers.tobytes(), 6)) for _ in range(8))


def of_c(frame: Frame) -> bool:
    return frame.line == 0 and ("libz" in frame.file or "zlib" in frame.file)


@pytest.mark.alone
@pytest.mark.flaky(reruns=2)
@pytest.mark.skipif(not spy(), reason="py-spy is not installed")
def test_compression_in_tasks_is_seen_in_zlib_and_gives_what_it_gave() -> None:
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=":0", worker_dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        plain = client.gather(client.map(squeeze, range(40), pure=False))
        with stageprof.profile(native=True) as prof:
            found = client.gather(client.map(squeeze, range(40), pure=False))
    assert found == plain
    recording = prof.recording
    if any("Permission denied" in why for why in recording.coverage()["disabled"]):
        pytest.skip("py-spy may not stop a process here")
    assert recording.coverage()["disabled"] == []
    seen = recording.flame(prefix="squeeze")
    leaves = {stack: took.seconds for stack, took in seen.stacks.items()}
    assert {stack[0].name for stack in leaves} == {"squeeze"}
    in_c = sum(s for stack, s in leaves.items() if any(map(of_c, stack)))
    assert in_c > 0.7 * seen.seconds
    tasks = recording.tasks()
    ran = float(tasks[tasks["prefix"] == "squeeze"]["duration_s"].sum())
    assert seen.seconds == pytest.approx(ran, rel=0.2)
    assert recording.coverage()["overhead"]["gil.py-spy"]["seconds"] > 0
