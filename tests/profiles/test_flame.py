"""What a recording says of stacks: folded, in shares, and harmless whatever it claims."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest

from profiles.stacks_made import CLIENT, HOSTILE, SECOND, Seen
from stageprof_collectors.profiles.flame import Took
from stageprof_collectors.profiles.nodes import DEEPEST, UNKNOWN, Frame
from stageprof_collectors.profiles.session import NoLooks
from stageprof_collectors.profiles.sides import MOST, OTHERS, sides
from stageprof_collectors.profiles.stats import REGION, stats
from stageprof_collectors.recording import Recording
from stageprof_runtime.errors import StageprofError, UsageError
from stageprof_runtime.event import FLAME, NODE
from stageprof_runtime.stage import STEP

MAIN, LOAD, SAVE = "main /u/etl.py:3", "load /u/etl.py:9", "save /u/etl.py:20"


def frame(text: str) -> Frame:
    name, _, where = text.rpartition(" ")
    file, _, line = where.rpartition(":")
    return Frame(name, file, int(line))


def test_stacks_of_all_places_are_folded() -> None:
    made = Seen()
    first, second = made.worker(1), made.worker(2)
    # The second worker knows the same functions by other numbers.
    made.look([SAVE], 1, step="compute", prefix="x", place=second)
    for worker in (first, second):
        made.look([MAIN, LOAD], 2, step="compute", prefix="x", place=worker, looks=5)
    flame = made.recording().flame()
    assert flame.stacks == {
        (frame(MAIN), frame(LOAD)): Took(4.0, 10),
        (frame(SAVE),): Took(1.0, 1),
    }
    assert flame.seconds == 5.0
    by_name = dict(zip([f.name for f in flame.nodes.frames], flame.total.sum(axis=0), strict=True))
    assert by_name == {UNKNOWN: 0.0, "main": 4.0, "load": 4.0, "save": 1.0}


def test_a_flame_is_of_one_stage_prefix_or_worker() -> None:
    made = Seen()
    worker, other = made.worker(1), made.worker(2)
    made.look([MAIN], 1)
    made.look([LOAD], 2, step="compute", prefix="load", place=worker)
    made.look([SAVE], 4, step="compute", prefix="save", place=worker)
    made.look([SAVE], 8, step="compute", prefix="save", place=other)
    recording = made.recording()
    assert recording.flame("construction").seconds == 1
    assert recording.flame("execution").seconds == 14
    assert recording.flame(prefix="save").seconds == 12
    assert recording.flame("execution", "save", worker.name).seconds == 4
    assert recording.flame("construction", "save").seconds == 0
    assert not recording.flame("communication")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"stage": "building"}, "expected one of construction, optimization"),
        ({"prefix": "nothing"}, "expected load"),
        ({"worker": "tcp://nobody"}, "expected tcp://host:11"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(asked: dict[str, str], said: str) -> None:
    made = Seen()
    made.look([LOAD], 2, step="compute", prefix="load", place=made.worker(1))
    with pytest.raises(UsageError, match=said):
        made.recording().flame(**asked)


def test_shares_are_python_native_and_waiting() -> None:
    made = Seen()
    kinds = {"python": 1, "iterrows": 1, "objects": 1, "call": 2, "library": 3, "waiting": 2}
    for how, seconds in kinds.items():
        made.look([MAIN], seconds, how=how)
    assert made.recording().flame().shares == pytest.approx((0.3, 0.5, 0.2))
    assert Seen().recording().flame().shares == (0, 0, 0)


def test_each_stage_and_prefix_has_its_side() -> None:
    made = Seen()
    made.look([MAIN], 1)
    for i in range(MOST + 3):
        made.look([LOAD], 1 + i, step="compute", prefix=f"p{i}")
    found = list(sides(made.recording()))
    assert [side.stage for side in found] == ["construction", *["execution"] * (MOST + 1)]
    assert [side.prefix for side in found[:3]] == ["", f"p{MOST + 2}", f"p{MOST + 1}"]
    assert (found[-1].prefix, found[-1].flame.seconds) == (OTHERS, 1 + 2 + 3)


# -- a session of pyinstrument --------------------------------------------------------------------


def built() -> Recording:
    """A construction of 4 s, 3 of them in one function of the user's."""
    made = Seen()
    made.look([MAIN, LOAD, "delayed /site-packages/dask/delayed.py:400"], 3, looks=150)
    made.look([MAIN, SAVE], 1, looks=50)
    made.look([MAIN], 7, step="compute")
    return made.recording()


def test_the_construction_can_be_shown_by_pyinstruments_own_renderers() -> None:
    from pyinstrument.renderers import (
        ConsoleRenderer,
        HTMLRenderer,
        JSONRenderer,
        SpeedscopeRenderer,
    )

    session = built().profile("construction")
    assert (session.duration, session.sample_count) == (4.0, 200)
    shown = ConsoleRenderer(color=False, unicode=False).render(session)
    for line in (r"4\.0+ main .*etl\.py:3", r"3\.0+ load .*etl\.py:9", r"1\.0+ save .*etl\.py:20"):
        assert re.search(line, shown), shown
    for renderer in (HTMLRenderer(), JSONRenderer(), SpeedscopeRenderer()):
        assert "load" in renderer.render(session)


def test_a_session_survives_being_saved_and_loaded(tmp_path: Any) -> None:
    from pyinstrument.session import Session

    session = built().profile("construction")
    session.save(tmp_path / "s.pyisession")
    root = Session.load(tmp_path / "s.pyisession").root_frame()
    assert root is not None
    assert (root.function, root.time) == ("main", 4.0)


def test_a_stage_that_nobody_saw_is_an_error_of_ours_that_names_those_that_were() -> None:
    with pytest.raises(NoLooks, match=r"no look at the stage optimization.*construction, exec"):
        built().profile("optimization")
    assert issubclass(NoLooks, StageprofError)
    with pytest.raises(UsageError, match="stage 'nonsense'"):
        built().profile("nonsense")


# -- by function ----------------------------------------------------------------------------------


def test_functions_that_call_themselves_are_counted_once() -> None:
    made = Seen()
    made.look([MAIN, LOAD, LOAD, LOAD], 3, looks=3)
    made.look([MAIN, LOAD], 1)
    found = stats(made.recording())
    main, load = ("/u/etl.py", 3, "main"), ("/u/etl.py", 9, "load")
    assert found[main][:4] == (4, 4, 0.0, 4.0)
    assert found[load][:4] == (4, 10, 4.0, 4.0)
    assert found[load][4][main] == (4, 4, 1.0, 4.0)
    assert found[REGION][3] == 4.0


def test_counted_calls_go_before_looks_and_a_stage_has_its_callers() -> None:
    made = Seen()
    made.look([MAIN], 9)
    made.call("main", "", 1, 5, step="expr", calls=1)
    made.call("load", "main", 3, 4, calls=7)
    made.call("parse", "load", 1, 1)
    found = stats(made.recording(), "construction")
    main = ("/u/etl.py", 2, "main")
    assert found["/u/etl.py", 1, "load"][:4] == (7, 7, 3.0, 4.0)
    assert found[main][2:4] == (0.0, 4.0)
    assert found[main][4] == {REGION: (1, 1, 0.0, 4.0)}
    assert stats(made.recording(), "optimization")["/u/etl.py", 1, "main"][3] == 5.0


# -- what no run would have written ---------------------------------------------------------------

BIG = 2**62


def hostile() -> Seen:
    """Numbers that point nowhere, circles, negative times, names that act."""
    made = Seen()
    for text in HOSTILE:
        made.look([f"{text} /u/{text}:1"], 1, prefix=text, how=text)
    numbers = (-1, -BIG, BIG, 5, 5, 6, 7, 8, 2**31, 2**40)
    parents = (3, 2, 1, 6, 5, 5, 7, -7, BIG, 3)
    for number, parent in zip(numbers, parents, strict=True):
        made.row(NODE, number, parent, f"n{number}", "f.py", -BIG)
    for node in (*numbers, *parents):
        made.row(FLAME, 1, STEP["build"], "", "python", node, -3, -BIG)
        made.row(FLAME, 1, BIG, "", "python", node, BIG, BIG)
    return made


def test_numbers_that_point_nowhere_harm_nobody() -> None:
    recording = hostile().recording()
    flame = recording.flame()
    assert flame.seconds > 0
    assert np.isfinite(flame.total).all()
    assert (flame.nodes.parent < np.arange(len(flame.nodes))).all()
    assert stats(recording)[REGION][3] > 0
    assert recording.profile().root_frame() is not None


def test_circles_of_parents_are_cut_and_their_looks_unknown() -> None:
    made = Seen()
    for number, parent in ((1, 2), (2, 1), (3, 3)):
        made.row(NODE, number, parent, f"n{number}", "f.py", 1)
        made.row(FLAME, 1, STEP["build"], "", "python", number, 1, SECOND)
    made.row(FLAME, 1, STEP["build"], "", "python", 99, 1, SECOND)
    stacks = made.recording().flame().stacks
    assert sum(took.seconds for took in stacks.values()) == 4.0
    assert all(stack[0].name == UNKNOWN for stack in stacks)
    assert max(map(len, stacks)) <= 3


def test_a_chain_without_end_is_cut_in_no_time() -> None:
    made = Seen()
    for i in range(100_000):
        made.row(NODE, i, i - 1, "f", "f.py", i)
    made.row(FLAME, 1, STEP["build"], "", "python", 99_999, 1, SECOND)
    recording = made.recording()
    started = time.perf_counter()
    (stack,) = recording.flame().stacks
    assert len(stack) == DEEPEST
    assert time.perf_counter() - started < 5


@pytest.mark.alone
def test_a_large_recording_opens_its_flame_in_well_under_a_second() -> None:
    """20,000 places and 200,000 looks of 10 workers."""
    rng = np.random.default_rng(1)
    made = Seen()
    workers = [made.worker(i) for i in range(10)]
    parents = [int(rng.integers(max(0, i - 40), i)) if i % 50 else -1 for i in range(2_000)]
    for worker in workers:
        for i, parent in enumerate(parents):
            made.row(NODE, i, parent, f"function_{i % 700}", f"f{i % 90}.py", i, place=worker)
        for node in rng.integers(0, 2_000, 20_000).tolist():
            row = (FLAME, 1, STEP["compute"], "p", "python", node, 1, 50_000_000)
            made.row(*row, place=worker)
    recording = made.recording()
    started = time.perf_counter()
    flame = recording.flame("execution")
    took = time.perf_counter() - started
    assert flame.seconds == pytest.approx(200_000 * 0.05)
    assert len(flame.nodes) == 2_001
    assert took < 0.7, took
    assert recording.store.places[0] == CLIENT
