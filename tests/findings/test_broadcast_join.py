"""The rule broadcast-join: B42, B43 (a join that shuffles what it need not)."""

from __future__ import annotations

from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
import pytest
from distributed import Client

import stageprof
from findings.asking import asked, one, run
from findings.crews import Crewed
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.broadcast_join import RULE


def token(number: int) -> str:
    return f"{number:032x}"


class Joined(Crewed):
    """A join on one worker, all tasks of which take 100 ms, one after the other."""

    def __init__(self) -> None:
        super().__init__(1)
        self._graph = self.graph(0, 0, 0)
        self._last, self.t = -1, 0.0

    def task(self, key: Any, *needs: int, nbytes: int = 8) -> int:
        cause = -1 - self._graph if self._last < 0 else self._last
        start, self.t = self.t, self.t + 100
        self._last = self.run(
            0, start, self.t, cause=cause, needs=list(needs) or [-1], key=key, lead=(start, start)
        )
        self.sized(nbytes)
        return self._last

    def read(self, number: int, partitions: int, nbytes: int) -> list[int]:
        """Makes a frame of so many bytes; its runs."""
        return [
            self.task((f"read-{token(number)}", i), nbytes=nbytes // partitions)
            for i in range(partitions)
        ]

    def side(self, number: int, partitions: int, nbytes: int) -> int:
        """Makes and shuffles a side of so many bytes; the run of its barrier."""
        return self.shuffled(number, self.read(number, partitions, nbytes))

    def shuffled(self, number: int, made: list[int]) -> int:
        """Shuffles a frame; the run of the barrier."""
        entry = f"hash-join-transfer-{token(number)}"
        sent = [self.task((entry, i), run) for i, run in enumerate(made)]
        return self.task(f"shuffle-barrier-{token(number)}", *sent)

    def join(self, number: int, *barriers: int, line: int = 31) -> None:
        name = f"hashjoinp2p-{token(number)}"
        for i in range(2):
            self.task((name, i), *barriers)
        if line:
            self.made(name, line)

    def end(self) -> Recording:
        self.wait(0, self.t, self._last, self.t)
        return self.recording(self.t)


def joined(small: int = 1_000_000, large: int = 400_000_000) -> Recording:
    made = Joined()
    made.join(9, made.side(1, 2, small), made.side(2, 4, large))
    return made.end()


def test_a_join_that_shuffles_for_a_small_side_is_found_with_what_that_costs() -> None:
    """Two and four tasks and two barriers would be gone, and of the join's two a part."""
    found = one(RULE, joined())

    assert "The join at etl.py:31 shuffles 400 MB to join it with 1.0 MB" in found.headline
    assert found.cost_s == pytest.approx(0.8, abs=0.01)
    assert found.saving_s == pytest.approx((0.8, 0.95), abs=0.02)
    assert found.evidence["partitions"] == 2
    assert (found.where.line, found.where.prefix) == (31, "hashjoinp2p")


@pytest.mark.parametrize(
    ("small", "large", "fires"),
    [
        (1_000_000, 11_000_000, True),
        (1_000_000, 9_000_000, False),  # the other side is not much larger
        (110_000_000, 4_000_000_000, False),  # too much for each worker to hold
        (0, 400_000_000, False),  # its size is not known
    ],
)
def test_it_fires_where_one_side_is_small(small: int, large: int, *, fires: bool) -> None:
    assert bool(asked(RULE, joined(small, large))) is fires


def test_sides_are_those_of_the_same_join() -> None:
    """Of two joins each has a large side, and a small one of the other is none of its."""
    made = Joined()
    made.join(8, made.side(1, 2, 300_000_000), made.side(2, 2, 400_000_000))
    made.join(9, made.side(3, 2, 1_000_000), made.side(4, 2, 2_000_000))

    assert asked(RULE, made.end()) == []


@pytest.mark.parametrize(("joins", "told"), [(1, 1), (2, 0)])
def test_a_frame_that_is_shuffled_for_other_joins_as_well_is_so_without_this_one(
    joins: int, told: int
) -> None:
    """For one other it is shuffled once; for two, still once more than it need be."""
    made = Joined()
    orders = made.read(1, 4, 400_000_000)
    made.join(2, made.side(3, 2, 1_000_000), made.shuffled(4, orders))
    for i in range(joins):
        other = made.side(10 * i + 10, 4, 300_000_000)
        made.join(10 * i + 11, other, made.shuffled(10 * i + 12, orders), line=40)
    assert len(one(RULE, made.end()).also) == told


def test_what_one_line_joins_in_a_loop_is_one_finding() -> None:
    """With what all of it costs, and the largest of what was small."""
    made = Joined()
    for i in range(3):
        small = made.side(10 * i + 1, 2, (i + 1) * 1_000_000)
        made.join(10 * i, small, made.side(10 * i + 2, 4, 400_000_000))
    found = one(RULE, made.end())

    assert "shuffles 400 MB to join it with 3.0 MB, 3 times" in found.headline
    assert found.evidence["joins"] == 3
    assert found.cost_s == pytest.approx(3 * 0.8, abs=0.01)
    assert found.saving_s == pytest.approx((3 * 0.8, 3 * 0.95), abs=0.05)


def test_joins_of_no_known_line_are_told_apart() -> None:
    made = Joined()
    for i in range(2):
        barriers = made.side(10 * i + 1, 2, 1_000_000), made.side(10 * i + 2, 4, 400_000_000)
        made.join(10 * i, *barriers, line=0)

    assert len(asked(RULE, made.end())) == 2


def test_a_join_that_costs_little_is_not_worth_a_word() -> None:
    made = Joined()
    made.join(9, made.side(1, 1, 1_000), made.side(2, 1, 400_000))
    for i in range(400):
        made.task((f"work-{token(5)}", i))

    assert asked(RULE, made.end()) == []


def tables(*, partitions: int) -> tuple[Any, Any]:
    large = pd.DataFrame({"key": range(2_000), "x": range(2_000)})
    small = pd.DataFrame({"key": range(20), "y": range(20)})
    return dd.from_pandas(large, 4), dd.from_pandas(small, partitions)


def test_the_fix_joins_the_same_rows() -> None:
    large, small = tables(partitions=3)

    with dask.config.set(scheduler="sync"):
        small = run(one(RULE, joined()), small=small)["small"]
        assert small.npartitions == 1
        assert large.merge(small, on="key").y.sum().compute() == sum(range(20))


@pytest.mark.cluster
@pytest.mark.smoke
@pytest.mark.parametrize(("partitions", "shuffled"), [(3, True), (1, False)])
def test_dask_does_shuffle_for_a_small_side_of_several_partitions(
    client: Client, partitions: int, *, shuffled: bool
) -> None:
    """If it no longer does, the rule has nothing to find."""
    assert client
    large, small = tables(partitions=partitions)
    with stageprof.profile(gil=False) as region:
        large.merge(small, on="key").y.sum().compute()

    limits = {"times": 1.0, "share": 0.0}
    assert bool(asked(RULE, region.recording, **limits)) is shuffled
    layers = region.recording.layers()
    entries = layers[layers["layer"].str.startswith("hash-join-transfer")]
    assert set(entries["file"]) == ({__file__} if shuffled else set())
