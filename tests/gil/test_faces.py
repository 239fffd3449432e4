"""What each face says of the GIL, from what is known of it; and that no recording breaks it."""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from benchmarks.generate import generate
from examples import EXAMPLES
from replay.handmade import CLIENT, LANE, ns
from stageprof.export.perfetto import events
from stageprof.recording import Recording
from stageprof.renderers import document, markdown, notebook, terminal
from stageprof_collectors import recording as collected
from stageprof_collectors.findings.innocence import gil_verdict
from stageprof_collectors.profiles import whereabouts
from stageprof_collectors.profiles.holders import EVERY_NS, spans, watched
from stageprof_collectors.profiles.whereabouts import LEAST, MOST, OTHERS
from stageprof_collectors.storage.columns import Values
from stageprof_collectors.storage.store import Store
from stageprof_collectors.summary import Summary, summarize
from stageprof_runtime.event import FLAME, HOLD, MARK, NODE, SAMPLE, STOOD
from stageprof_runtime.stage import STEP
from stageprof_ui.columns.holds import holds
from stageprof_ui.columns.timeline import boxes
from ui.observed import Observed, contended, hostile

GUILTY = "tasks waited 1.20 s, 30 % of task time; most for `spin` at etl.py:24"


def summary(made: Observed, stop: float = 2000) -> Summary:
    return summarize(made.recording(stop))


def working(made: Observed | None = None, cpu: float = 2000, length: float = 2000) -> Observed:
    """One task for so long, for which the caller waited."""
    made = made or Observed(1)
    run = made.run(0, 0, length, cause=-1 - made.graph(0, 0, 0), key="heavy-1", wanted=True)
    made.used(run, cpu)
    made.wait(0, length, run, length)
    return made


# -- the line -------------------------------------------------------------------------------------


def test_who_is_guilty_is_named_with_line_and_share() -> None:
    assert summary(contended()).gil == GUILTY


@pytest.mark.parametrize(
    ("length", "most"), [(1400, "82 ms"), (2000, "165 ms"), (5000, "264 ms"), (60_000, "264 ms")]
)
def test_numpy_is_innocent_with_the_bound(length: int, most: str) -> None:
    """What the looks may have missed: they get rarer the longer a run is, down to 160 ms."""
    made = working(cpu=length / 2, length=length)
    made.held(0, 0, 10)
    made.said(0, "gil source", "watch")
    for at in range(500, length + 500, 500):
        made.sample(at, "gil.contention", 0.01, worker=0)
    verdict = gil_verdict(made.recording(length))
    assert verdict is not None
    assert verdict.guilty is False
    assert verdict.said == f"not to blame: tasks waited at most {most} in sum"
    assert verdict.waited_s == 0


def test_a_thread_that_used_a_processor_all_the_time_did_not_wait() -> None:
    made = working(cpu=1990)
    made.held(0, 0, 2000)
    assert summary(made).gil == "not to blame: tasks waited at most 10 ms in sum"


def test_waiting_off_the_critical_path_costs_the_run_little() -> None:
    made = working(cpu=1990)
    made.held(0, 0, 2000)
    graph = made.graph(0, 0, 0)
    made.run(0, 0, 1900, cause=-1 - graph, key="spare-1", thread=1)
    made.waited(0, 0, 1900, thread=1)
    said = "not to blame: tasks waited 1.90 s in sum, which cost the run at most 10 ms"
    assert summary(made).gil == said


def test_where_nobody_watched_the_reason_is_said() -> None:
    assert summary(working()).gil.startswith("not watched: gil=False, or recorded before")
    made = working()
    made.said(0, "gil source", "ticker: memory of a process is read on 64-bit Linux only")
    assert summary(made).gil == "not watched: memory of a process is read on 64-bit Linux only"
    short = summary(working(length=100, cpu=100), 100)
    assert short.gil == "not watched: it was over before the watch began, or gil=False"


def test_without_a_gil_it_says_so() -> None:
    made = working()
    made.said(0, "gil source", "ticker: this Python runs without a GIL")
    made.sample(500, "gil.contention", 0.5, worker=0)
    assert summary(made).gil == "none: this Python runs without one"


def test_what_is_estimated_is_about() -> None:
    made = working(cpu=500)
    made.said(0, "gil source", "ticker: Permission denied")
    made.sample(500, "gil.contention", 0.5, worker=0)
    assert summary(made).gil == "tasks waited about 1.00 s, 50 % of task time"


def test_time_before_the_watch_began_is_no_time_without_waiting() -> None:
    """Of the tasks that had ended by then nothing is known; the others count from there on."""
    made = Observed(1)
    graph = made.graph(0, 0, 0)
    made.run(0, 0, 900, cause=-1 - graph, key="early-1")
    last = made.run(0, 900, 2000, cause=-1 - graph, key="late-1", wanted=True)
    made.wait(0, 2000, last, 2000)
    made.waited(0, 1000, 2000)
    assert summary(made).gil == "tasks waited 1.00 s, 100 % of task time; of 1 task it is not known"


def test_a_recording_without_tasks_says_nothing() -> None:
    assert summary(Observed(1)).gil == ""
    assert "GIL" not in terminal.text(summary(Observed(1)))


def test_the_first_looks_are_half_a_second_before_they_are_told() -> None:
    recording = contended().recording(2000)
    ((first, last),) = watched(recording).values()
    start = recording.timeline.region.start
    assert first == start + 500_000_000 - EVERY_NS
    assert last == start + 2_000_000_000


# -- faces ----------------------------------------------------------------------------------------

FACES: dict[str, Callable[[Summary], str]] = {
    "terminal": terminal.text,
    "markdown": markdown.text,
    "notebook": notebook.html,
}


@pytest.mark.parametrize("face", FACES)
def test_every_face_has_the_line(face: str) -> None:
    assert "tasks waited 1.20 s, 30 % of task time" in FACES[face](summary(contended()))


def test_it_is_one_line_of_the_terminal_where_it_fits() -> None:
    lines = terminal.text(summary(contended())).splitlines()
    assert f"GIL         {GUILTY}" in lines


def test_a_long_name_gets_the_next_line() -> None:
    one = replace(summary(contended()), gil=GUILTY.replace("spin", "normalize_all_the_things"))
    lines = terminal.text(one).splitlines()
    at = lines.index("GIL         tasks waited 1.20 s, 30 % of task time;")
    assert lines[at + 1] == "            most for `normalize_all_the_things` at etl.py:24"


def test_what_it_cost_at_most_is_not_cut_off() -> None:
    said = "not to blame: tasks waited 1.41 s in sum, which cost the run at most 309 ms"
    lines = terminal.text(replace(summary(contended()), gil=said)).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("GIL"))
    assert " ".join(f"{lines[at]} {lines[at + 1]}".split()) == f"GIL {said}"
    assert max(map(cell_len, lines)) <= 80


def test_the_longest_summary_still_fits() -> None:
    worst = replace(
        summary(contended()),
        gil=f"{GUILTY}; {'x' * 300}",
        coverage="very much was seen and much was lost " * 9,
        problems=("cluster lost: because " * 20, "another"),
        incomplete="recording incomplete: " * 9,
        file="r.stageprof",
    )
    lines = terminal.text(worst).splitlines()
    assert len(lines) <= 30
    assert max(map(cell_len, lines)) <= 80


def test_the_json_has_it_with_its_numbers() -> None:
    found = document.document(contended().recording(2000))["coverage"]["gil"]
    assert found["guilty"] is True
    assert found["said"] == GUILTY
    assert found["waited_s"] == pytest.approx(1.2)
    assert found["waited_share"] == pytest.approx(0.3)
    assert found["at_most_s"] >= found["waited_s"]
    assert 0 <= found["cost_at_most_s"] <= found["at_most_s"]
    nothing = document.document(working().recording(2000))["coverage"]["gil"]
    assert (nothing["guilty"], nothing["waited_s"]) == (None, None)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("face", FACES)
def test_what_an_enemy_calls_a_function_acts_on_nobody(face: str) -> None:
    shown = FACES[face](summary(hostile(), 1000))
    acting = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert {c for c in shown if unicodedata.category(c) in acting} <= {"\n"}
    if face != "terminal":
        assert "<img" not in shown.replace("`<img", "")


# -- holders --------------------------------------------------------------------------------------


def test_holders_have_their_seconds_and_lines() -> None:
    frame = contended().recording(2000).gil()
    spin = frame[frame["function"] == "spin"].iloc[0]
    assert (spin["prefix"], spin["line"], spin["source"]) == ("spin", 24, "py-spy")
    assert spin["hold_s"] == pytest.approx(1.2)
    assert spin["wait_s"] == pytest.approx(0.6)
    assert spin["caused_s"] == pytest.approx(1.1)  # the other thread and the event loop
    loop = frame[frame["thread"] == "event loop"].iloc[0]
    assert loop["wait_s"] == pytest.approx(0.5)


def test_a_line_seen_in_one_kind_of_task_is_none_of_the_next() -> None:
    """py-spy's trace ends a frame when the thread is seen elsewhere: here never."""
    made = Observed(1)
    graph = made.graph(0, 0, 0)
    made.run(0, 0, 1000, cause=-1 - graph, key="spin-1")
    made.run(0, 1000, 1200, cause=-1 - graph, key="other-1")
    made.held(0, 0, 1200)
    made.stood(0, 0, 1200, "/u/etl.py:24 spin")
    frame = made.recording(1200).gil().set_index("prefix")
    assert frame.loc["spin", "function"] == "spin"
    assert frame.loc["other", "function"] == ""
    assert frame["hold_s"].sum() == pytest.approx(1.2)


def outside(lines: int = 2, each: float = 400) -> Observed:
    """The user's thread held it for a second, and was seen at so many lines, more and more.

    At the first of them for `each` ms, at the next twice as long, and so on.
    """
    made = working()
    rows = made._rows[CLIENT]
    rows.append((HOLD, ns(0), ns(1000), LANE, 0))
    for i in range(lines):
        rows.append((NODE, i, -1, f"f{i}", "/u/etl.py", 10 + i))
        looked = ns(each * (1 + i)) - ns(0)
        rows.append((FLAME, ns(1000), STEP["build"], "", "python", i, LEAST, looked))
    rows.append((FLAME, ns(1000), STEP["build"], "", "library", 0, 1, ns(500) - ns(0)))
    return made


def test_what_the_users_thread_held_outside_tasks_has_its_lines_from_the_looks() -> None:
    frame = outside().recording(2000).gil()
    mine = frame[frame["source"] == "looks"].set_index("function")
    assert mine["line"].to_dict() == {"f0": 10, "f1": 11}
    assert mine["hold_s"].to_dict() == pytest.approx({"f0": 1 / 3, "f1": 2 / 3})
    assert set(mine["place"]) == {"client"}


def test_a_line_held_it_for_no_longer_than_it_was_seen() -> None:
    """The rest has no line."""
    frame = outside(each=10).recording(2000).gil()
    mine = frame[frame["place"] == "client"].set_index("function")
    assert mine["hold_s"].to_dict() == pytest.approx({"f0": 0.01, "f1": 0.02, "": 0.97})
    assert mine["source"].to_dict() == {"f0": "looks", "f1": "looks", "": ""}


def test_few_looks_outside_tasks_name_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whereabouts, "LEAST", 3 * LEAST)
    frame = outside().recording(2000).gil()
    assert not (frame["source"] == "looks").any()
    assert frame.loc[frame["place"] == "client", "hold_s"].sum() == pytest.approx(1)


def test_lines_without_end_are_one_row_and_no_second_is_lost() -> None:
    frame = outside(MOST + 30).recording(2000).gil()
    mine = frame[frame["place"] == "client"]
    assert len(mine) == MOST + 1
    assert mine["hold_s"].sum() == pytest.approx(1)
    assert float(mine.loc[mine["function"] == OTHERS, "hold_s"].sum()) < 0.5


HUGE = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(0, 4 * 10**9), st.sampled_from([0, 2**62])
)
ROWS = st.lists(
    st.tuples(HUGE, HUGE, st.one_of(st.integers(0, 3), HUGE), st.integers(-3, 3)), max_size=30
)
LABELS = ("/u/etl.py:3 f", "", ":", "x:9999999999999999999999 f", "a:² f", "\x1b[31m:1 <b>")


@settings(deadline=None, max_examples=EXAMPLES // 4)
@given(
    ROWS,
    st.lists(st.tuples(HUGE, HUGE, st.sampled_from(LABELS)), max_size=5),
    st.lists(HUGE, max_size=3),
)
def test_no_rows_make_it_raise(
    rows: list[tuple[int, ...]], stood: list[tuple[int, int, str]], told: list[int]
) -> None:
    """Stops before starts, overlaps, unknown threads, times from before and after all time."""
    made = working()
    mine = made._rows[made._workers[0]]
    mine += [(HOLD, *row) for row in rows]
    mine += [(STOOD, start, stop, 1, -1, label) for start, stop, label in stood]
    mine += [(SAMPLE, t, "gil.contention", 0.5) for t in told]
    recording = made.recording(2000)
    frame = recording.gil()
    holds(recording, boxes(recording))
    assert (frame["line"] < 2**31).all()
    assert isinstance(summarize(recording).gil, str)
    for event in events(Recording.of(recording)):
        assert event.get("dur", 0) >= 0


class Given(Store):
    """A store with some of its tables given."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.given: dict[str, dict[str, Values]] = {}

    def table(self, name: str) -> dict[str, Values]:
        return self.given.get(name) or super().table(name)


@pytest.mark.alone
@pytest.mark.nightly
def test_an_hour_of_eight_threads_takes_less_than_two_seconds(tmp_path: Path) -> None:
    """100 looks a second and 100,000 tasks, from a recording that nothing was asked of before."""
    path = tmp_path / "many.stageprof"
    generate(path, tasks=100_000, workers=1, threads=8)
    store = Given.open(path)
    run, random = store.table("run"), np.random.default_rng(1)
    first, last = int(run["start"].min()), int(run["stop"].max())
    threads = np.repeat(np.unique(run["thread"]), 360_000)
    start = np.sort(random.integers(first, last, len(threads)).reshape(8, -1)).ravel()
    place = np.full(len(threads), int(run["place"][0]))
    length = random.integers(10**5, (last - first) // 100_000, len(threads))
    waits = random.integers(0, 2, len(threads))
    columns = {"start": start, "stop": start + length, "thread": threads, "waits": waits}
    store.given = {"hold": columns | {"place": place}}
    recording = collected.Recording(store)
    begin = time.process_time()
    frame = recording.gil()
    assert time.process_time() - begin < 2
    assert len(frame) > 8
    assert set(frame["prefix"]) >= set(recording.tasks()["prefix"])


INTERVALS = st.lists(st.tuples(st.integers(0, 100), st.integers(1, 20)), max_size=20)


@settings(deadline=None)
@given(INTERVALS, INTERVALS)
def test_turns_are_in_order_and_as_long_as_they_can_be(
    held: list[tuple[int, int]], waited: list[tuple[int, int]]
) -> None:
    made = working()
    for at, length in held:
        made.held(0, at, at + length)
    for at, length in waited:
        made.waited(0, at, at + length)
    threads = made.recording(2000).timeline.gil.threads
    if not threads:
        return
    ((_, had),) = threads.items()
    start, stop, waits = spans(had)
    start, stop = ((t - ns(0)) // 10**6 for t in (start, stop))
    assert (stop > start).all()
    assert (start[1:] >= stop[:-1]).all()
    assert ((start[1:] > stop[:-1]) | (waits[1:] != waits[:-1])).all()
    covered = {t for a, n in (*held, *waited) for t in range(a, a + n)}
    assert covered == {t for a, b in zip(start, stop, strict=True) for t in range(a, b)}


# -- Perfetto -------------------------------------------------------------------------------------


@pytest.fixture
def trace() -> list[dict[str, Any]]:
    return list(events(Recording.of(contended().recording(2000))))


def test_each_thread_has_a_row_of_its_turns(trace: list[dict[str, Any]]) -> None:
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace if e["name"] == "thread_name"}
    sums: dict[tuple[str, str], float] = {}
    for event in trace:
        if event["ph"] == "X" and event["cat"] == "gil":
            of = rows[event["pid"], event["tid"]], event["name"]
            sums[of] = sums.get(of, 0.0) + event["dur"] / 1e6
    assert sums == {
        ("thread 1 (1): GIL", "holds the GIL"): pytest.approx(1.2),
        ("thread 1 (1): GIL", "waits for the GIL"): pytest.approx(0.6),
        ("thread 2 (2): GIL", "holds the GIL"): pytest.approx(0.6),
        ("thread 2 (2): GIL", "waits for the GIL"): pytest.approx(0.6),
        ("event loop: GIL", "waits for the GIL"): pytest.approx(0.5),
    }


def test_each_process_has_counters(trace: list[dict[str, Any]]) -> None:
    for name, value in (("gil.contention", 0.9), ("gil.waiting", 0.6)):
        found = [e for e in trace if e["ph"] == "C" and e["name"] == name]
        assert [e["args"]["value"] for e in found] == [value] * 4


@pytest.mark.parametrize("label", ["abc", "9" * 5_000, "", "²"])
def test_no_label_of_a_loop_makes_it_raise(label: str) -> None:
    made = working()
    made._rows[CLIENT].append((MARK, ns(1), "loop thread", label))
    assert isinstance(made.recording(2000).timeline.gil.loops, dict)
