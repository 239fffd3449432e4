"""What is about to be run, as the checks see it: layers and their tasks, data that they hold.

Filled from expressions and layers as they are; none is built, and nothing of the user's is called.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from stageprof_collectors.account.indexing import TIMES
from stageprof_collectors.findings.calling import PLAIN, Calling
from stageprof_collectors.findings.crowd import MANY
from stageprof_collectors.tables.site import Collection
from stageprof_runtime.handover import CLUSTER, PROCESSES, SYNCHRONOUS, Trained
from stageprof_runtime.loaded import Unused
from stageprof_runtime.made import prefix_of

if TYPE_CHECKING:
    from stageprof_collectors.preflight.cluster import Cluster
    from stageprof_collectors.preflight.held import Thing
    from stageprof_collectors.preflight.rates import Rates


class OutOfTimeError(Exception):
    """The look took longer than it may."""


class Watch:
    """How long the look may still take."""

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.began = clock()
        self.limit_s = limit_s

    @property
    def spent_s(self) -> float:
        """Seconds since it began."""
        return self._clock() - self.began

    @property
    def left_s(self) -> float:
        """Seconds that are left; may be negative."""
        return self.limit_s - self.spent_s

    def check(self) -> None:
        """Go on if there is time.

        Raises:
            OutOfTimeError: there is none.
        """
        if self.left_s <= 0:
            raise OutOfTimeError


#: Pieces that a task holds at once: what it is given and what it makes.
HELD: Final = 2


@dataclass(frozen=True)
class Layer:
    """One layer or expression."""

    name: str
    prefix: str
    #: how many it will have, before steps that follow each other become one
    tasks: int
    collection: Collection
    #: bytes of the usual piece of an array; -1 if they are not known
    piece_bytes: int = -1
    #: bytes of all pieces; -1 likewise
    nbytes: int = -1
    file: str = ""
    line: int = 0
    #: whether it reads or makes a data frame or a bag, and needs no other
    source: bool = False
    #: whether its tasks are partitions of a bag
    bag: bool = False
    #: of an array that is indexed by positions, about how many tasks it would have with these in
    #: order; 0 of others
    in_order: int = 0
    #: pieces of that size that a task holds at once, at least
    held: int = HELD
    #: how its tasks are called, if they are calls of the user's
    calling: Calling = PLAIN

    @property
    def out_of_order(self) -> bool:
        """Whether it indexes by positions out of order, with far more tasks than in order."""
        return self.tasks >= TIMES * self.in_order > 0


@dataclass(frozen=True)
class Frame:
    """A data frame that is read or made: its columns of dtype object."""

    name: str
    #: column -> what its values are ("string", "integer or missing"; "" if mixed; None if unseen)
    columns: dict[str, str | None]
    file: str = ""
    line: int = 0


@dataclass
class Plan:
    """One graph that is about to be run."""

    scheduler: str
    rates: Rates
    file: str = ""
    line: int = 0
    layers: list[Layer] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    #: names of the layers whose results are asked for
    outputs: frozenset[str] = frozenset()
    #: of those the ones of which one task puts all pieces together, for each such task
    joined: list[frozenset[str]] = field(default_factory=list)
    #: tasks of each layer by itself, also of those that become part of another
    sizes: dict[str, int] = field(default_factory=dict)
    #: of each layer of chunks those that it needs, with their bytes (-1: not known)
    needs: dict[str, dict[str, int]] = field(default_factory=dict)
    #: the lines that made layers, by their names and by their prefixes
    made: dict[str, tuple[str, int]] = field(default_factory=dict)
    #: what of arrays is loaded and not used
    loaded: list[Unused] = field(default_factory=list)
    #: operations on data frames that could be fused, and the last one of each group
    unfused: list[tuple[str, str]] = field(default_factory=list)
    things: list[Thing] = field(default_factory=list)
    cluster: Cluster | None = None
    trained: Trained | None = None
    #: what could not be looked at, and why
    unseen: list[str] = field(default_factory=list)

    @property
    def tasks(self) -> int:
        """Of all layers."""
        return sum(layer.tasks for layer in self.layers)

    def line_of(self, name: str) -> tuple[str, int]:
        """The line that made a layer; of one that is not known, that which asks for the graph."""
        known = self.made.get(name) or self.made.get(prefix_of(name))
        return known or (self.file, self.line)

    @property
    def pickled(self) -> bool:
        """Whether what is in the graph goes to other processes."""
        return self.scheduler in (CLUSTER, PROCESSES)

    @property
    def threads(self) -> int:
        """Threads that will work on it, as far as is known; 1 at least."""
        if self.cluster is not None:
            return max(1, self.cluster.threads)
        from dask.system import CPU_COUNT

        return 1 if self.scheduler == SYNCHRONOUS else int(CPU_COUNT)

    @property
    def many(self) -> bool:
        """Whether there are so many tasks that their number may matter."""
        return self.tasks >= MANY

    def cannot(self, what: str) -> None:
        """Something cannot be looked at; said once."""
        if what not in self.unseen:
            self.unseen.append(what)


def plain(value: Any) -> str:
    """The message of an error for `unseen`, on one line and short."""
    return f"{type(value).__name__}: {value}".replace("\n", " ")[:160]
