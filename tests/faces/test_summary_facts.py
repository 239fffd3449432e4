"""What the summary says of layers, of its own cost, and of who did not watch the GIL."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import dask.array as da
import pandas as pd
import pytest
from dask.base import compute
from dask.delayed import delayed

import stageprof
from stageprof_collectors.recording import Recording
from stageprof_collectors.summary import _where, summarize


def double(x: int) -> int:
    return 2 * x


def test_layers_that_a_loop_made_at_one_line_are_one() -> None:
    with stageprof.profile() as prof:
        for n in range(4):
            (da.ones((20, 20), chunks=10) + n).sum().compute(scheduler="sync")
    lines = prof.recording.summary.layers
    assert len({(line.layer, line.line) for line in lines}) == len(lines)
    layers = prof.recording.layers()
    for line in lines:
        mine = layers[layers["prefix"] == line.layer]
        assert line.tasks == mine["tasks"].sum()
        assert line.wall_s == pytest.approx(mine["wall_s"].sum())


def test_overhead_is_that_of_processors(recorded: Path) -> None:
    """Of a run that took a second, two seconds of wall time would be no overhead."""
    said = stageprof.open(recorded).summary.coverage
    assert re.search(r"; overhead [\d.]+ m?s CPU$", said)


@pytest.mark.parametrize(
    ("flight", "said"), [(None, "gil=False"), ({"address": "tcp://x"}, "--stageprof-gil")]
)
def test_who_did_not_watch_the_gil_is_told_the_option_that_they_have(
    flight: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stageprof.profile(gil=False) as prof:
        compute(delayed(double)(1), scheduler="sync")
    monkeypatch.setattr("stageprof_collectors.findings.innocence.SHORT_S", 0.0)
    prof.recording.store.header["flight"] = flight
    assert said in summarize(prof.recording).gil


@pytest.mark.parametrize(("n", "which"), [(2, "the faster of two"), (3, "the one in the middle")])
def test_of_several_runs_it_is_said_which_is_shown(n: int, which: str, recorded: Path) -> None:
    running = pytest.importorskip("stageprof.magic.running", exc_type=ImportError)
    assert running._notes((stageprof.open(recorded),) * n)[0].endswith(f"this is {which}")


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (["client", "scheduler", "tcp://a", "tcp://b"], "2 workers"),
        (["client", "tcp://b"], "worker second"),
    ],
)
def test_the_client_is_no_worker_where_a_worker_s_step_was_seen_there(
    places: list[str], said: str
) -> None:
    workers = pd.DataFrame({"worker": ["tcp://a", "tcp://b"], "name": ["first", "second"]})
    recording = cast("Recording", SimpleNamespace(workers=lambda: workers))
    path = pd.DataFrame({"place": places})
    path = path.assign(stage="serialization", step="task.dump", key="", seconds=1.0)
    row = {"stage": "serialization", "step": "task.dump", "role": "worker"}
    assert _where(recording, path, row) == said
