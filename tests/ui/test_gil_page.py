"""Who held the GIL and who waited, as columns, and the page that shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store
from stageprof_ui.columns import gil, profiles
from stageprof_ui.columns.series import Samples
from stageprof_ui.store import Store as Shown
from stageprof_ui.views import profiles as page
from ui.conftest import Watched, overhang
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


def test_a_line_is_one_row_whoever_saw_it() -> None:
    """py-spy saw some of it, and looks from within the rest."""
    made = contended()
    made.held(0, 1800, 2000)
    made.stood(0, 1200, 2000, "/x/stageprof_runtime/probes/execution.py:71 timed")
    made.look("spin", "spin", "/u/etl.py:24 spin", "python", 500)
    _, _, found = asked(made)
    assert set(found.loc[found["function"] == "spin", "source"]) == {"py-spy", "looks"}
    frame = gil.holders(found)
    assert len(frame[frame["function"] == "spin"]) == 1
    assert frame["held"].sum() == pytest.approx(found["hold_s"].sum())
    assert frame["caused"].sum() == pytest.approx(found["caused_s"].sum())


def test_stageprof_itself_is_one_row_of_each_process_whichever_threads_it_ran_on() -> None:
    rows = [
        ("stageprof itself", "", 0, "", "stageprof-sampler", "client", 0.1, 0.2, 0.0),
        ("spin", "etl.py", 24, "spin", "thread 1", "worker 0", 0.5, 0.6, 0.0),
        ("stageprof itself", "", 0, "", "MainThread", "client", 0.2, 0.1, 0.3),
        ("stageprof itself", "", 0, "", "stageprof-sampler", "worker 0", 0.05, 0.05, 0.0),
    ]
    names = ["function", "file", "line", "prefix", "thread", "place"]
    found = pd.DataFrame(rows, columns=[*names, "caused_s", "hold_s", "wait_s"])
    frame = gil.holders(found)
    assert frame[["function", "thread", "place"]].to_numpy().tolist() == [
        ["spin", "thread 1", "worker 0"],
        ["stageprof itself", "(several)", "client"],
        ["stageprof itself", "stageprof-sampler", "worker 0"],
    ]
    assert frame["held"].tolist() == pytest.approx([0.6, 0.3, 0.05])


def test_stageprof_itself_comes_last_however_much_it_held() -> None:
    """A reader is to see first what can be changed."""
    rows = [
        ("stageprof itself", "", 0, "", "stageprof-sampler", "client", 0.9, 0.9, 0.0),
        ("spin", "etl.py", 24, "spin", "thread 1", "worker 0", 0.5, 0.6, 0.0),
        ("", "", 0, "spin", "thread 1", "worker 0", 0.1, 0.1, 0.0),
    ]
    names = ["function", "file", "line", "prefix", "thread", "place"]
    found = pd.DataFrame(rows, columns=[*names, "caused_s", "hold_s", "wait_s"])
    assert gil.holders(found, "why")["function"].tolist() == [
        "spin", "(not seen: why)", "stageprof itself",
    ]  # fmt: skip


def test_what_was_not_seen_is_the_last_row_and_says_why() -> None:
    made = contended()
    made.held(0, 0, 2000, thread=-1)
    made.run(0, 2000, 3000, cause=-1, key="other-1", thread=1)
    made.held(0, 2000, 3000, thread=1)
    recording, _, found = asked(made)
    frame = gil.holders(found, gil.unseen(recording, found))
    assert frame["function"].str.startswith("(not seen").sum() == 1
    last = frame.iloc[-1]
    assert last[["function", "prefix", "thread", "place"]].tolist() == [
        "(not seen: no look fell on it)", "(several)", "(several)", "worker 10",
    ]  # fmt: skip
    assert frame["held"].sum() == pytest.approx(found["hold_s"].sum())


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        ("", "threads waited too little for py-spy to be asked"),
        ("it may not look", "py-spy could not look"),
    ],
)
def test_where_no_line_is_known_tasks_are_told_and_why(refusal: str, why: str) -> None:
    made = Observed(1)
    made.run(0, 0, 1000, cause=-1 - made.graph(0, 0, 0), key="spin-1")
    made.held(0, 0, 1000)
    if refusal:
        made.said(0, "gil holders", refusal)
    recording, _, found = asked(made)
    assert not gil.lines_known(found)
    assert gil.holders(found)["prefix"].tolist() == ["spin"]
    assert f"By task, for no line is known: {why}." in texts(recording)


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


def test_what_was_watched_for_an_instant_is_a_table_and_no_picture() -> None:
    made = Observed(1)
    made.sample(0, "gil.contention", 0.0)
    said = texts(made.recording(1))
    assert "It was taken most in the scheduler" in said
    for wrong in ("nobody watched", "more line", "Drag to move in time"):
        assert wrong not in said


# -- in a browser ---------------------------------------------------------------------------------


def test_tables_are_sorted_by_a_click(watched: Watched, taking_turns: str) -> None:
    shown = watched.open(taking_turns)
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
def test_nothing_is_wider_than_the_page(
    browser: Any, taking_turns: str, theme: str, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    shown = Watched(context.new_page()).open(taking_turns)
    shown.evaluate("location.hash = 'profiles'")
    shown.locator(".tabulator-cell[tabulator-field=caused]").first.wait_for()
    over = overhang(shown)
    context.close()
    assert over <= 1
