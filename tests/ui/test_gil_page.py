"""Who held the GIL and who waited, as columns, on the page, and in the time line."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stageprof.app import written
from stageprof_collectors.holders import watched as looked_at
from stageprof_collectors.recording import Recording
from stageprof_collectors.store import Store
from stageprof_runtime.stage import STEP
from stageprof_ui.columns import gil, holds, profiles, tables, timeline
from stageprof_ui.columns.series import Samples
from stageprof_ui.palette import GIL_COLOURS
from stageprof_ui.store import Store as Shown
from stageprof_ui.views import profiles as page
from ui.conftest import Watched
from ui.observed import Observed, contended, hostile

#: Bokeh 3.9 makes tables in a way that pandas 3.1 advises against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")


def asked(made: Observed) -> tuple[Recording, Samples, pd.DataFrame]:
    recording = made.recording(2000)
    return recording, Samples(recording), gil.numbered(recording, recording.gil())


# -- tables ---------------------------------------------------------------------------------------


def test_what_others_waited_for_most_comes_first() -> None:
    _, _, found = asked(contended())
    first = gil.holders(found).iloc[0]
    assert first[["function", "at", "prefix", "thread", "place"]].tolist() == [
        "spin", "etl.py:24", "spin", "thread 1", "worker 10",
    ]  # fmt: skip
    assert first[["caused", "held", "waited"]].tolist() == pytest.approx([1.1, 1.2, 0.6])


def test_waiters_are_tasks_by_prefix_loops_and_threads_between_tasks() -> None:
    made = contended()
    made.waited(0, 2000, 2100, thread=1)
    recording, _, found = asked(made)
    frame = gil.waiters(recording, found).set_index("who")
    assert frame["waited"].to_dict() == pytest.approx(
        {"spin": 0.6, "tally": 0.6, "event loop": 0.5, "thread 2, between tasks": 0.1}
    )
    assert frame["percent"].to_dict() == pytest.approx(
        {"spin": 30.0, "tally": 30.0, "event loop": 25.0, "thread 2, between tasks": 5.0}
    )


def test_a_share_is_of_the_tasks_of_that_process() -> None:
    made = Observed(2)
    graph = made.graph(0, 0, 0)
    for worker in (0, 1):
        made.run(worker, 0, 1000, cause=-1 - graph, key=f"spin-{worker}")
    made.waited(0, 0, 500)
    recording, _, found = asked(made)
    assert gil.waiters(recording, found)["percent"].tolist() == [50.0]


# -- sentences ------------------------------------------------------------------------------------


def test_a_loop_that_waited_is_told_with_what_was_late() -> None:
    recording, samples, _ = asked(contended())
    assert gil.late(recording, samples) == [
        "The event loop of worker 10 waited 500 ms: transfers and messages were late."
    ]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("watch", "Seen by a process beside each, up to 100 times a second: worker 10."),
        ("ticker: it ended", "Seen by a process beside each until it ended (it ended): worker 10."),
    ],
)
def test_what_the_numbers_come_from_is_told(source: str, told: str) -> None:
    assert told in gil.sources(*asked(contended(source)))


def test_what_is_missing_is_told() -> None:
    made = contended()
    made.said(0, "gil holders", "py-spy is not installed")
    made.said(0, "gil dropped", "12")
    said = gil.sources(*asked(made))
    assert "12 intervals could not be sent and are missing." in said
    assert any("py-spy is not installed" in sentence for sentence in said)
    assert any(sentence.startswith("Not watched: client, scheduler") for sentence in said)


def test_where_only_the_ticker_asked_nobody_is_named() -> None:
    made = Observed(1)
    made.run(0, 0, 1000, cause=-1 - made.graph(0, 0, 0))
    made.said(0, "gil source", "ticker: this is darwin")
    made.sample(500, "gil.contention", 0.5, worker=0)
    recording, samples, found = asked(made)
    (said,) = [s for s in gil.sources(recording, samples, found) if "worker" in s]
    assert "because this is darwin: worker 10. Who held it there is not known" in said
    assert gil.missing(recording, "tasks waited about 1 s") == "Who held the GIL is not known."


def test_processes_that_are_many_are_counted() -> None:
    made = Observed(9)
    for worker in range(9):
        made.said(worker, "gil source", "watch")
    said = gil.sources(*asked(made))
    assert any(sentence.endswith("worker 14 and 4 more.") for sentence in said)


def test_one_process_has_one_line_with_all_that_it_is() -> None:
    """The watch tells of client and scheduler of one process once."""
    made = contended()
    samples = Samples(made.recording(2000))
    frame = profiles.by_process(samples, profiles.contention(samples))
    assert frame[["process", "queue"]].to_numpy().tolist() == [["worker 10", 0.6]]


def test_waiting_is_exact_where_it_was_seen() -> None:
    found = profiles.threads(contended().recording(2000))
    assert found.exact
    assert found.frame.set_index("prefix")["gil_s"].to_dict() == pytest.approx(
        {"spin": 0.6, "tally": 0.6}
    )
    assert "they waited 1.20 s for the GIL" in profiles.of_threads(found)


# -- the page -------------------------------------------------------------------------------------


def free() -> Observed:
    made = Observed(1)
    made.run(0, 0, 1000, cause=-1 - made.graph(0, 0, 0))
    made.said(0, "gil source", "ticker: this Python runs without a GIL")
    made.sample(500, "gil.contention", 0.5, worker=0)
    return made


def asked_only() -> Observed:
    made = free()
    made.said(0, "gil source", "ticker: this is darwin")
    return made


RECORDINGS: dict[str, Callable[[], Recording]] = {
    "nothing": lambda: Recording(Store()),
    "no task": lambda: Observed(1).recording(10),
    "contended": lambda: contended().recording(2000),
    "ticker": lambda: asked_only().recording(1000),
    "free": lambda: free().recording(1000),
    "hostile": lambda: hostile().recording(1000),
}
SAID = {
    "nothing": "nobody watched the GIL",
    "no task": "nobody watched the GIL",
    "contended": "The event loop of worker 10 waited 500 ms",
    "ticker": "Who held the GIL is not known.",
    "free": "There is no GIL in this Python",
    "hostile": "Who held it",
}


def texts(recording: Recording) -> str:
    store = Shown(recording)
    models = page.view(store, store.stock()).get_root().references()
    return " ".join(str(model.text) for model in models if hasattr(model, "text"))


@pytest.mark.parametrize("which", RECORDINGS)
def test_the_page_says_what_there_is(which: str) -> None:
    assert SAID[which] in texts(RECORDINGS[which]())


def test_the_page_begins_with_the_line_of_the_summary() -> None:
    said = "Tasks waited 1.20 s, 30 % of task time; most for <code>spin</code> at etl.py:24."
    assert said in texts(contended().recording(2000)).replace("&lt;", "<").replace("&gt;", ">")


# -- the time line --------------------------------------------------------------------------------


def test_turns_are_packed_for_the_rows_of_their_threads() -> None:
    recording = contended().recording(2000)
    boxes = timeline.boxes(recording)
    found = holds.holds(recording, boxes)
    rows = [i for i, row in enumerate(boxes.rows) if row.kind == timeline.THREAD]
    assert np.flatnonzero(found.known).tolist() == rows
    ms = boxes.unit_ns / 1e6
    told = []
    for row in rows:
        own = slice(found.offsets[row], found.offsets[row + 1])
        start, length = found.start[own] * ms, found.length[own] * ms
        told.append([*zip(start, start + length, found.what[own].tolist(), strict=True)])
    assert told == [[(0, 1200, 0), (1200, 1800, 1)], [(0, 600, 1), (1200, 1800, 0)]]


def test_time_in_which_nobody_looked_is_not_known() -> None:
    made = Observed(1)
    made.run(0, 0, 1000, cause=-1 - made.graph(0, 0, 0))
    made.held(0, 300, 700)
    recording = made.recording(1000)
    found = holds.holds(recording, timeline.boxes(recording))
    assert found.what.tolist() == [holds.UNSEEN, 0, holds.UNSEEN]


def test_too_many_turns_leave_each_task_its_share() -> None:
    recording = contended().recording(2000)
    boxes = timeline.boxes(recording)
    found = holds.holds(recording, boxes, most=3)
    assert not found.known.any()
    assert len(found.start) == 0
    assert "4 intervals are too many to be sent" in found.said
    assert boxes.gil.max() == 4  # tenths plus one


def test_every_colour_of_the_gil_has_a_meaning() -> None:
    store = Shown(contended().recording(2000))
    (legend,) = (entries for mode, entries in tables.legends(store.tables) if mode == "gil")
    assert len(legend) == len(GIL_COLOURS) + 1
    assert len({colour for colour, _ in legend[:-2]}) == len(legend) - 2


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of two threads that take turns in small pieces, and of a third nobody watched."""
    path: Path = tmp_path_factory.mktemp("gil") / "gil.html"
    written(turns().recording(2000), path)
    return path.as_uri()


def turns() -> Observed:
    """Two workers of two threads each; of the second one nothing is known."""
    made, random = Observed(2), np.random.default_rng(3)
    graph, run = made.graph(0, 0, 0), 0
    for at in range(0, 2000, 200):
        for worker, thread in itertools.product((0, 1), (0, 1)):
            key = f"{'spin' if at % 600 else 'tally'}-{at}{worker}{thread}"
            run = made.run(
                worker, at, at + 190, cause=-1 - graph, key=key, thread=thread, wanted=True
            )
    made.wait(0, 2000, run, 2000)
    edges = np.sort(random.integers(100_000, 2_000_000, 400)) / 1e3
    for start, stop, who in zip(edges[:-1], edges[1:], random.integers(0, 3, 399), strict=True):
        for thread in (0, 1):
            if who == thread:
                made.held(0, start, stop, thread)
            elif who < 2:
                made.waited(0, start, stop, thread)
    made.stood(0, 100, 2000, "/u/etl.py:24 spin")
    made.said(0, "gil source", "watch")
    for at in (600, 1000, 1500, 2000):
        made.sample(at, "gil.contention", 0.9, worker=0)
        made.sample(at, "gil.waiting", 0.6, worker=0)
    return made


def colours(recording: Recording, row: int, window: tuple[float, float], width: int) -> Any:
    """Colour of each pixel of a row of the time line (-1: nothing), and whether that is clear."""
    boxes, known = timeline.boxes(recording), recording.timeline.gil
    line, origin, unit = boxes.rows[row], recording.timeline.region.start, boxes.unit_ns
    edges = (origin + np.linspace(*window, width + 1) * unit).astype(np.int64)
    own = slice(boxes.offsets[row], boxes.offsets[row + 1])
    task = boxes.step[own] == STEP["compute"]
    start = origin + boxes.start[own][task].astype(np.int64) * unit
    stop = start + boxes.length[own][task] * unit
    process = int(known.process[line.place])
    had, when = known.threads[process, line.thread], looked_at(recording)[process]
    sums = np.zeros((4, width))
    for box in zip(start, stop, strict=True):
        inside = np.clip(edges, *box)
        sums[0] += np.diff(inside)
        sums[1] += np.diff(np.clip(inside, *when))
        for i, total in ((2, had.held), (3, had.waited)):
            sums[i] += total.between(inside[:-1], inside[1:])
    return _coloured(*sums, pixel=float(edges[1] - edges[0]))


def _coloured(whole: Any, seen: Any, held: Any, waited: Any, *, pixel: float) -> Any:
    held, waited = held / np.maximum(seen, 1), waited / np.maximum(seen, 1)
    fifth = 1 + np.minimum(np.floor(5 * waited + 1e-6), 4)
    colour = np.where(waited >= 0.2, fifth, np.where(held + waited < 0.2, 6, 1))
    colour = np.where(seen > whole - seen, colour, 0)
    near = (np.abs(waited - np.arange(0.2, 1, 0.2)[:, None]) < 0.02).any(axis=0)
    near |= (np.abs(held + waited - 0.2) < 0.02) | (np.abs(2 * seen - whole) < 0.05 * whole)
    return np.where(whole > 0, colour, -1), ~near & (whole > 0.05 * pixel)


_GROUPS = (
    "([row, window, width]) => { const app = Object.values(stageprof.apps)[0];"
    "const boxes = Object.values(app.boxes)[0], group = app.selection.grouping('gil');"
    "return Array.from(stageprof.shares(boxes, [row], group, () => true, window, width).group); }"
)


def test_the_picture_is_made_of_exact_sums_at_every_zoom(watched: Watched, report: str) -> None:
    recording = turns().recording(2000)
    boxes = timeline.boxes(recording)
    shown = watched.open(f"{report}#timeline")
    rows = np.flatnonzero(holds.holds(recording, boxes).known).tolist()
    assert len(rows) == 2
    end = recording.wall * 1e9 / boxes.unit_ns
    for window in ((0.0, end), (0.0, 0.2 * end), (0.51 * end, 0.53 * end)):
        for row in rows:
            wanted, clear = colours(recording, row, window, 200)
            got = np.array(shown.evaluate(_GROUPS, [row, list(window), 200]))
            assert clear.sum() > 100
            assert len(set(wanted[clear].tolist())) > 2
            assert (got[clear] == wanted[clear]).mean() > 0.99


def test_a_task_tells_what_it_had_of_the_gil(watched: Watched, report: str) -> None:
    shown = watched.open(f"{report}#timeline")
    shown.wait_for_function("document.documentElement.dataset.stageprofDrawn > 1")
    told = shown.evaluate(
        """() => { const d = Object.values(Object.values(stageprof.apps)[0].drawings)
        .find((d) => d.figure.name.startsWith("Tasks"));
        return d.lines.filter((l) => d.boxes.rows[l.rows[0]].n > 5).map((line) =>
          d.describe({ line, row: d.boxes.rows[line.rows[0]], index: 5 })); }"""
    )
    said = [dict(pairs[1:]).get("GIL", "") for pairs in told]
    assert all(text.startswith("waited ") and ", held it " in text for text in said[:2])
    assert said[-1] == ""


def test_tables_are_sorted_by_a_click(watched: Watched, report: str) -> None:
    shown = watched.open(report)
    shown.evaluate("location.hash = 'profiles'")
    held = shown.locator(".tabulator-col[tabulator-field=held]").first
    held.scroll_into_view_if_needed()
    cells = shown.locator(".tabulator-cell[tabulator-field=held]")
    cells.first.wait_for()
    orders = set()
    for _ in range(2):
        held.locator(".tabulator-col-sorter").click()
        shown.wait_for_timeout(300)
        orders.add(tuple(cells.all_inner_texts()))
    assert len(orders) == 2


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_is_wider_than_the_page(browser: Any, report: str, theme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    shown = Watched(context.new_page()).open(report)
    shown.evaluate("location.hash = 'profiles'")
    shown.locator(".tabulator-cell[tabulator-field=caused]").first.wait_for()
    over = shown.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    context.close()
    assert over <= 1
