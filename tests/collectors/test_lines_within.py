"""Layers that Dask makes within an operation are of the line of what uses them."""

from __future__ import annotations

import pytest

from findings.crews import FILE, Crewed
from replay.handmade import ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import LINE, SUBMIT

TOKEN = "0" * 32


class Used(Crewed):
    """Tasks one after the other, each of which needs the one before."""

    def __init__(self) -> None:
        super().__init__(1)
        graph = self.graph(0, 0, 0)
        self._cause, self._on, self._t = -1 - graph, -1, 0.0

    def task(self, name: str, line: int = 0) -> None:
        start, self._t = self._t, self._t + 100
        key, lead = (f"{name}-{TOKEN}", 0), (start, start)
        self._on = self.run(
            0, start, self._t, cause=self._cause, needs=[self._on], key=key, lead=lead
        )
        self._cause = self._on
        if line:
            self.made(f"{name}-{TOKEN}", line)

    def end(self) -> Recording:
        self.wait(0, self._t, self._on, self._t)
        return self.recording(self._t)


def lines(recording: Recording) -> dict[str, int]:
    frame = recording.layers()
    return dict(zip(frame["prefix"], frame["line"].astype(int), strict=True))


def test_layers_of_a_shuffle_have_the_line_of_what_the_shuffle_is_for() -> None:
    made = Used()
    made.task("read", 7)
    made.task("hash-join-transfer")
    made.task("shuffle-barrier")
    made.task("hashjoinp2p", 31)
    made.task("sum", 32)

    found = lines(made.end())
    assert found == {
        "read": 7,
        "hash-join-transfer": 31,
        "shuffle-barrier": 31,
        "hashjoinp2p": 31,
        "sum": 32,
    }


@pytest.mark.parametrize("name", ["open_dataset-t2m", "shuffle-transfer"])
def test_what_nobody_of_a_known_line_uses_has_none(name: str) -> None:
    """What was there before the recording began is not of the line that uses it first."""
    made = Used()
    made.task(name)
    made.task("mean", 8 if name.startswith("open") else 0)

    frame = made.end().layers()
    assert frame.loc[frame["layer"].str.startswith(name), "line"].astype(int).tolist() == [0]


def test_a_task_that_hands_over_its_like_has_the_line_of_who_handed_it_over() -> None:
    """Each process tells the first line of a prefix: one's stood for the tasks of all."""
    made = Crewed(1)
    first = made.graph(0, 0, 0)
    run = made.run(0, 0, 300, cause=-1 - first, key=f"fib-{0:032x}", wanted=True)
    made.made("fib", 12)
    worker = made._rows[made._workers[0]]
    worker.append((SUBMIT, 0, ns(100), 1, 0, 1, FILE, 6))
    worker.append((LINE, "fib", FILE, 6, 1))
    made.run(0, 100, 200, cause=-1 - made.launched(run, 100), key=f"fib-{1:032x}", thread=1)
    made.wait(0, 300, run, 300)

    layers = made.recording(300).layers()
    assert sorted(layers["line"][layers["prefix"] == "fib"]) == [6, 12]
