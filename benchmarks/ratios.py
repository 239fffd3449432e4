"""How many times as long runs of a workload took under a tool as without one."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from typing import NamedTuple

#: The tool that is none.
BARE = "nothing"


class Run(NamedTuple):
    """What one run took."""

    tool: str
    wall_s: float
    cpu_s: float
    #: what of the processor time was stageprof's, by its own clocks
    own_s: float = 0.0


#: A round: runs in their order, every second one bare, with a bare one first and last.
Round = list[Run]
#: The rounds of one cluster. Clusters differ among each other more than rounds on one of them do.
Rounds = list[Round]


class Ratio(NamedTuple):
    """The median over all rounds, and the bootstrap interval of 95 % around it."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} | {self.low:.3f} to {self.high:.3f}"


def wall(clusters: list[Rounds], tool: str) -> Ratio:
    """Of wall seconds: a run's, divided by the mean of the two bare runs next to it."""
    return _over(_ratios(clusters, tool, "wall_s"))


def cpu(clusters: list[Rounds], tool: str) -> Ratio:
    """The same of processor seconds."""
    return _over(_ratios(clusters, tool, "cpu_s"))


def bare_s(clusters: list[Rounds]) -> float:
    """What the workload takes, seconds."""
    return statistics.median(run.wall_s for runs in _rounds(clusters) for run in runs[::2])


def own(clusters: list[Rounds], tool: str) -> str:
    """The median of what was stageprof's own, as a part of the other processor time, %."""
    runs = [run for runs in _rounds(clusters) for run in runs if run.tool == tool and run.own_s]
    parts = [100 * run.own_s / (run.cpu_s - run.own_s) for run in runs]
    return f"{statistics.median(parts):.1f}" if parts else ""


def tools(clusters: list[Rounds]) -> list[str]:
    """Those that the workload ran under."""
    return list(dict.fromkeys(run.tool for runs in _rounds(clusters) for run in runs[1::2]))


def count(clusters: list[Rounds], tool: str) -> int:
    """How many rounds the workload ran under a tool."""
    return sum(len(ratios) for ratios in _ratios(clusters, tool, "wall_s"))


def _rounds(clusters: list[Rounds]) -> Iterator[Round]:
    for rounds in clusters:
        yield from rounds


def _ratios(clusters: list[Rounds], tool: str, of: str) -> list[list[float]]:
    """By cluster; those on which the tool did not run are left out."""
    found = [[r for runs in rounds for r in _of_round(runs, tool, of)] for rounds in clusters]
    return [ratios for ratios in found if ratios]


def _of_round(runs: Round, tool: str, of: str) -> Iterator[float]:
    for before, run, after in zip(runs[::2], runs[1::2], runs[2::2], strict=False):
        if run.tool == tool:
            yield 2 * getattr(run, of) / (getattr(before, of) + getattr(after, of))


def _over(ratios: list[list[float]], draws: int = 2000) -> Ratio:
    """Clusters are drawn first, and then rounds of each that was drawn."""
    rng = random.Random(0)
    drawn = sorted(statistics.median(_drawn(ratios, rng)) for _ in range(draws))
    median = statistics.median(ratio for each in ratios for ratio in each)
    return Ratio(median, drawn[draws // 40], drawn[-draws // 40])


def _drawn(ratios: list[list[float]], rng: random.Random) -> list[float]:
    clusters = rng.choices(ratios, k=len(ratios))
    return [ratio for each in clusters for ratio in rng.choices(each, k=len(each))]
