"""Memory, load, transfers and coverage as columns, and the page that shows them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from replay.handmade import SCHEDULER, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import MARK, Place
from stageprof_ui.columns import coverage, transfers, workers
from stageprof_ui.columns.series import Samples, names, natural
from stageprof_ui.store import Store as Shown
from stageprof_ui.views import curves
from stageprof_ui.views import workers as page
from ui.acting import acting
from ui.observed import Observed

#: Bokeh 3.9 makes tables in a way that pandas 3.1 advises against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")

MB = 1_000_000


def loaded(count: int = 3, limit: int = 1000) -> Observed:
    """Each worker takes 100 MB more than the one before."""
    made = Observed(count, limit=limit)
    for worker in range(count):
        made.took(worker, 0, 50)
        made.took(worker, 500, 100 * (worker + 1), managed=10)
        made.sample(0, "cpu.percent", 20.0, worker=worker)
        made.sample(500, "cpu.percent", 120.0, worker=worker)
    made.sample(0, "cpu.percent", 30.0)
    made.sample(500, "cpu.percent", 30.0)
    return made


def test_those_with_most_memory_are_drawn_with_the_scheduler() -> None:
    samples = Samples(loaded(15).recording(1000))
    places = workers.drawn(samples)
    labels = [samples.label(place) for place in places]
    assert labels == [*(f"worker {10 + w}" for w in range(14, 2, -1)), "scheduler"]


def test_who_is_not_drawn_is_said_of_those_in_the_table_only() -> None:
    """A worker of which there is no sample is in no table, and its memory was not compared."""
    assert [_drawn(loaded(count)) for count in (3, 13, 14)] == [
        "",
        "Drawn are the workers with most memory. The other worker is in the table below.",
        "Drawn are the workers with most memory. The other 2 workers are in the table below.",
    ]
    silent, brief = Observed(4), Observed(4)
    for made in (silent, brief):
        made.took(0, 0, 50)
        made.took(0, 500, 50)
    brief.took(1, 500, 60)
    assert _drawn(silent) == ""
    assert _drawn(brief) == (
        "Drawn are the workers that were sampled more than once. "
        "The other worker is in the table below."
    )


def _drawn(made: Observed) -> str:
    samples = Samples(made.recording(1000))
    return workers.of_drawn(samples, workers.drawn(samples))


def test_a_quantity_that_was_always_nothing_is_said_and_not_drawn() -> None:
    recording = loaded().recording(1000)
    samples = Samples(recording)
    charts = workers.charts(recording, samples, workers.drawn(samples))
    assert [chart.quantity.name for chart in charts] == [
        "memory.process", "memory.managed", "cpu.percent",
    ]  # fmt: skip
    assert workers.silent(samples, charts) == "Nothing was spilled to disk."


def once() -> Observed:
    made = Observed(1)
    made.took(0, 500, 100)
    return made


def test_what_was_sampled_once_is_a_number_and_no_line() -> None:
    recording = once().recording(1000)
    samples = Samples(recording)
    assert workers.charts(recording, samples, workers.drawn(samples)) == []
    assert workers.load(samples)["memory.process"].tolist() == [100 * MB]


def test_thresholds_are_bytes_and_shown_where_values_come_near() -> None:
    recording = loaded(limit=500).recording(1000)
    samples = Samples(recording)
    process, managed, _ = workers.charts(recording, samples, workers.drawn(samples))
    assert [mark.value for mark in process.thresholds] == pytest.approx(
        [350 * MB, 400 * MB, 475 * MB]
    )
    assert process.top > 475 * MB
    assert managed.top < managed.thresholds[0].value
    assert "500 MB: at 60 % of managed memory results are spilled" in workers.of_limits(recording)


def test_an_absurd_rate_does_not_hide_the_others() -> None:
    made = loaded(1)
    for i in range(200):
        made.sample(5 * i, "network.read_bps", 2e6 if i % 2 else 1e6, worker=0)
    made.sample(1000, "network.read_bps", 3e11, worker=0)
    recording = made.recording(1000)
    samples = Samples(recording)
    charts = workers.charts(recording, samples, workers.drawn(samples))
    assert charts[-1].top == pytest.approx(1.06 * 20e6)
    assert "network in of 300 GB/s" in workers.of_peaks(charts)


def test_the_table_holds_every_process() -> None:
    frame = workers.load(Samples(loaded(15).recording(1000)))
    assert len(frame) == 16
    assert frame["memory.process"].max() == 1500 * MB
    assert frame.set_index("process").loc["scheduler", "cpu.mean"] == 30.0


def test_two_lives_of_one_worker_are_two_processes() -> None:
    made = loaded(1)
    rows = made._rows
    place = made._workers[0]
    rows[place._replace(life=2)] = list(rows[place])
    samples = Samples(made.recording(1000))
    assert [p.label for p in samples.processes][2:] == ["worker 10", "worker 10 (2)"]


def moved() -> Observed:
    made = loaded(3)
    made.sent(0, 1, 0, 100, 5 * MB)
    made.sent(0, 1, 100, 150, 1 * MB)
    made.sent(2, 0, 0, 400, 2 * MB)
    return made


def paired(made: Observed) -> pd.DataFrame:
    recording = made.recording(1000)
    return transfers.pairs(recording, names(recording))


def test_transfers_are_summed_by_pair() -> None:
    found = paired(moved())
    assert found.to_dict("list") == {
        "from": ["worker 10", "worker 12"],
        "to": ["worker 11", "worker 10"],
        "bytes": [6 * MB, 2 * MB],
        "seconds": pytest.approx([0.15, 0.4]),
        "fetches": [2, 1],
    }
    assert "8.0 MB in 3 fetches" in transfers.of_transfers(found)


def test_workers_of_one_name_have_cells_of_their_own() -> None:
    made = moved()
    made.named(0, "a")
    made.named(2, "a")
    made.sent(2, 1, 0, 100, 4 * MB)
    found = paired(made)
    assert found[["from", "to", "bytes"]].to_numpy().tolist() == [
        ["worker a", "worker 11", 6 * MB],
        ["worker a (2)", "worker 11", 4 * MB],
        ["worker a (2)", "worker a", 2 * MB],
    ]
    cells = transfers.matrix(found).cells
    assert not cells.duplicated(["x", "y"]).any()


def test_workers_that_cannot_be_told_apart_are_summed_up() -> None:
    made = moved()
    for worker in (0, 2):
        made.named(worker, "a")
        made.sent(worker, 1, 0, 100, 4 * MB)
        del made._rows[made._workers[worker]]
    found = paired(made)
    assert found[["from", "to", "bytes", "fetches"]].to_numpy().tolist() == [
        ["worker a", "worker 11", 14 * MB, 4]
    ]


def test_the_map_has_the_workers_with_most_bytes() -> None:
    drawn = transfers.matrix(paired(moved()), most=2)
    assert (drawn.names, drawn.left_out) == (["worker 10", "worker 11"], 1)
    assert drawn.cells[["x", "y", "bytes_part"]].to_numpy().tolist() == [[1.0, 0.0, 1.0]]


def test_worker_2_comes_before_worker_10() -> None:
    labels = ["worker 10", "tcp://h:9", "worker 2"]
    assert sorted(labels, key=natural) == ["tcp://h:9", "worker 2", "worker 10"]


@pytest.mark.parametrize(("took", "told"), [(0.03, ", 1 % of their time."), (16.0, " processes.")])
def test_hooks_around_a_short_run_are_no_part_of_its_time(
    took: float, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = once().recording(1000)
    known = recording.coverage() | {"overhead_s": took}
    monkeypatch.setattr(Recording, "coverage", lambda _: known)
    assert coverage.coverage(recording)["overhead"].endswith(told)


def test_coverage_says_who_was_not_seen_and_what_was_lost() -> None:
    made = loaded(1)
    rows = made._rows[SCHEDULER]
    rows.append((MARK, ns(0), "worker seen", "tcp://other:1 1 0 9"))
    rows.append((MARK, ns(0), "not instrumented", "tcp://other:1 no stageprof there"))
    rows.append((MARK, ns(0), "hook disabled", "<b>transition</b>"))
    sentences = coverage.coverage(made.recording(1000))["sentences"]
    assert "1 of 2 workers were instrumented." in sentences
    assert "tcp://other:1 was not: no stageprof there." in sentences
    assert "A hook was disabled: <b>transition</b>." in sentences


def test_what_was_lost_is_said_once_and_who_sent_it() -> None:
    """Of many the first are named, and the others counted."""
    store = Store()
    for i in range(7):
        sender = Place("worker", "h", i, f"tcp://h:{i}", 1)
        for sequence in (0, 3):
            store.add(pack(sender, sequence, ns(sequence), []))
    sentences = coverage.coverage(Recording(store))["sentences"]
    [lost] = [sentence for sentence in sentences if "batches were lost" in sentence]
    assert lost.startswith("14 batches were lost on their way; sent by ")
    assert lost.endswith("tcp://h:4 and 2 more.")
    assert len(set(sentences)) == len(sentences)


RECORDINGS = {
    "nothing": lambda: Recording(Store()),
    "no sample": lambda: Observed(1).recording(10),
    "loaded": lambda: loaded().recording(1000),
    "many": lambda: loaded(40).recording(1000),
    "one sample": lambda: once().recording(1000),
    "moved": lambda: moved().recording(1000),
}


@pytest.mark.parametrize("which", RECORDINGS)
def test_the_page_shows_whatever_there_is(which: str) -> None:
    store = Shown(RECORDINGS[which]())
    assert page.view(store, store.stock()).get_root()


def test_what_texts_say_is_only_text() -> None:
    assert acting(page.view) == []


def test_all_figures_share_the_span_of_time() -> None:
    store = Shown(loaded().recording(1000))
    stock = store.stock()
    root = page.view(store, stock).get_root()
    figures: list[Any] = [m for m in root.references() if type(m).__name__ == "figure"]
    assert [figure.x_range is stock.x_range for figure in figures] == [True] * 3
    assert all(figure.name for figure in figures)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_a_worker_has_one_colour_whichever_others_are_drawn() -> None:
    """Pages draw those with most of something first, each page of something else."""
    samples = Samples(loaded(15).recording(1000))
    of_label = {process.label: place for place, process in enumerate(samples.processes)}
    many = [of_label[f"worker {10 + w}"] for w in range(15)]
    few = curves.pens(samples, many[:12]), curves.pens(samples, [many[4], many[1], many[0]])
    there, here = ({pen.label: pen.colour for pen in pens} for pens in few)
    assert here == {label: there[label] for label in ("worker 14", "worker 11", "worker 10")}
    assert len({pen.colour for pen in curves.pens(samples, many[3:])}) == 12


@pytest.mark.parametrize("ground", ["#ffffff", "#161616"])
def test_lines_are_seen_on_both_themes(ground: str) -> None:
    for colour in curves.COLOURS:
        low, high = sorted((_luminance(colour), _luminance(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3.0, colour
