"""What a task waited for, as a click on it tells: no more than is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectors.test_unended import killed
from collectors.test_untold import untold
from replay.handmade import CLIENT, LANE, HandMade, ns
from stageprof.app import written
from stageprof_collectors.account.attempts import LOCAL
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import ASSIGN, FINISH, GRAPH, RUN
from stageprof_ui.columns import story, tables
from stageprof_ui.columns.story import HEARD, POOLED, TOLD, UNTOLD
from stageprof_ui.store import Store
from stageprof_ui.views import timeline
from ui.conftest import Watched

UNIT = 1_000


def pooled(tasks: int = 6) -> Recording:
    """A batch of tasks of a second each, which a process of a pool takes one after another."""
    made = HandMade(0)
    rows = made.rows_of(CLIENT)
    rows.append((GRAPH, LOCAL, ns(0), ns(1), tasks, 1, "local", -1))
    for i in range(tasks):
        start, run = 1 + 1000 * i, LOCAL + i
        rows.append((ASSIGN, run, ns(1), "local", -1 - LOCAL, f"task-{i}"))
        rows.append((RUN, run, *map(ns, (start, start, start, start + 1000)), LANE, 0, "pooled 7"))
        rows.append((FINISH, run, ns(1000 * tasks + 1), 0, 8, "int"))
    return made.recording(1000 * tasks + 2)


def seconds(told: story.Stories, run: int) -> dict[str, float]:
    """What a story has of one task, but what took no time."""
    names = ("sent", "fetched", "waited", "told", "ran")
    found = {name: float(getattr(told, name)[run]) * UNIT / 1e9 for name in names}
    return {name: value for name, value in found.items() if value}


def of(recording: Recording, run: int) -> tuple[int, dict[str, float]]:
    """What is known of a task and its times; the same whether asked for one or for all."""
    all_, one = story.stories(recording, UNIT), story.one(recording, UNIT, run)
    assert seconds(one, 0) == seconds(all_, run)
    assert one.known[0] == all_.known[run]
    return int(one.known[0]), seconds(one, 0)


def test_a_worker_that_tells_all_has_each_part() -> None:
    made = HandMade(1)
    cause = -1 - made.graph(0, 0, 0)
    made.run(0, 40, 90, cause=cause, lead=(0, 10), fetched=30, finished=95)
    known, parts = of(made.recording(100), 0)
    assert known == TOLD
    wanted = {"sent": 0.01, "fetched": 0.02, "waited": 0.01, "told": 0.005, "ran": 0.05}
    assert parts == pytest.approx(wanted)


def test_what_a_task_waited_for_with_a_worker_without_stageprof_is_not_known() -> None:
    """Its inputs were said to be on their way for all of it."""
    known, parts = of(untold(), 15)
    assert known == HEARD
    assert parts == pytest.approx({"waited": 0.305, "ran": 0.095})


def test_of_a_task_of_which_nobody_told_its_time_with_the_worker_is_told() -> None:
    known, parts = of(killed(told=True).broken_off(5000), 2)
    assert known == UNTOLD
    assert parts == pytest.approx({"ran": 4.199})


def test_a_task_of_a_local_scheduler_waits_for_a_thread_of_its_pool() -> None:
    """The rest of its batch was said to be the scheduler's message, and communication."""
    known, parts = of(pooled(), 5)
    assert known == POOLED
    assert parts == pytest.approx({"waited": 5.0, "ran": 1.0})


@pytest.mark.parametrize("graphs", [2, 2**15 + 5])
def test_a_task_is_of_its_own_graph_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch, graphs: int
) -> None:
    recording = untold()
    rows = np.full(16, graphs - 1)
    monkeypatch.setitem(recording.timeline.__dict__, "graph_rows", rows)
    assert set(story.stories(recording, UNIT).graph.tolist()) == {graphs - 1}


@pytest.mark.parametrize(
    ("recording", "run", "said"),
    [
        (untold(), 15, ["with its worker; what it waited for there is not known", "its function"]),
        (
            killed(told=True).broken_off(5000),
            2,
            ["with its worker; what it waited for there is not known"],
        ),
        (pooled(), 5, ["until a thread of the pool took it", "its function"]),
    ],
)
def test_a_click_tells_no_more_than_is_known(
    watched: Watched, tmp_path: Path, recording: Recording, run: int, said: list[str]
) -> None:
    path = tmp_path / "r.html"
    written(recording, path)
    page = watched.open(f"{path.as_uri()}#timeline")
    page.wait_for_function(f"{_DRAWING}?.drawn?.width > 0")
    lines = page.evaluate(_STORY, run)
    waits = [line for line in lines if "its whole graph" not in line]
    assert [text for text in said if not any(text in line for line in waits)] == []
    assert not any("communication" in line for line in waits)


_DRAWING = (
    "Object.values(Object.values(stageprof.apps)[0].drawings)"
    ".find((d) => d.figure.name.startsWith('Tasks'))"
)
# -- what a page says that it cannot tell ---------------------------------------------------------


def hints(recording: Recording, **most: int) -> str:
    """What the time line of a page without a server says above its picture."""
    store = Store(recording)
    store.param.update(**most)
    pane: Any = timeline.view(store, store.stock())[0]
    return str(pane.object)


def test_where_stories_are_too_many_the_page_says_that_a_click_tells_none() -> None:
    told, untold_ = hints(pooled()), hints(pooled(), stories_most=5)
    assert "click it for its story" in told
    assert "tells no story" not in told
    assert "click it for its story" not in untold_
    assert "what tasks waited for is in pages of up to 5 of them" in untold_


def test_where_needs_are_too_many_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Which results a task needed is not told" not in hints(pooled())
    monkeypatch.setattr(story, "NEEDS", -1)
    assert "Which results a task needed is not told" in hints(pooled())


@pytest.mark.parametrize(("length", "said"), [(tables.KEY, False), (tables.KEY + 1, True)])
def test_where_keys_are_cut_the_page_says_how_far_they_are_searched(
    length: int, said: bool
) -> None:
    made = HandMade(1)
    made.run(0, 40, 90, cause=-1 - made.graph(0, 0, 0), key="k" * length)
    found = "Of a key the first 200 characters are searched." in hints(made.recording(100))
    assert found is said


#: The lines of the story of a run.
_STORY = (
    f"(run) => {{ const d = {_DRAWING};"
    """
  for (const line of d.lines) for (const r of line.rows) {
    const row = d.boxes.rows[r];
    for (let i = 0; row && i < row.n; i++) if (row.run[i] === run && row.length[i] > 0) {
      const middle = (row.start[i] + row.length[i] / 2) * d.boxes.unit;
      d.tap({ x: middle, y: (line.top + line.bottom) / 2 });
      const place = document.createElement("div");
      place.innerHTML = d.panel.text;
      return [...place.querySelectorAll("tr")].map((row) => row.innerText);
    }
  }
}"""
)
