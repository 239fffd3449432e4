"""A delay planted in a real program is found and blamed; a small form of the study.

`benchmarks/regressions.py` is the study itself; docs/regressions.md is what came out.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client

import clusters
from benchmarks import suspect
from benchmarks.pool import recorded
from benchmarks.regressions import Planted
from stageprof_collectors.comparison.comparison import compared
from stageprof_collectors.comparison.measured import Measured, measure
from stageprof_runtime.stage import Stage

#: The program's table inside a graph is large on purpose, and Dask says so.
pytestmark = pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning")

#: Recordings a side.
SIDE = 7
#: What is planted, seconds: half of what these stages take.
STAGES = {"communication": 0.25, "execution": 0.25}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers; what the program needs is imported there."""
    with clusters.local() as client:
        recorded(client, {}, None)
        yield client


@pytest.mark.nightly
@pytest.mark.alone
@pytest.mark.cluster
def test_planted_delays_are_found_and_blamed_on_stage_layer_and_line(client: Client) -> None:
    """All sides are recorded in turn, so that the machine's mood is alike for them."""
    kinds: dict[str, list[Measured]] = {"": [], **{stage: [] for stage in STAGES}}
    for _ in range(SIDE):
        for kind, found in kinds.items():
            found.append(measure(recorded(client, {kind: STAGES.get(kind, 0.0)}, None)[0]))
    client.run_on_scheduler(suspect.Order.undo)
    for kind, seconds in STAGES.items():
        trial = Planted(Stage(kind), 0.0, seconds)
        trial.take(compared(kinds[""], kinds[kind]))

        assert (trial.found, trial.of_stage, trial.of_layer, trial.of_line) == (1, 1, 1, 1), kind
