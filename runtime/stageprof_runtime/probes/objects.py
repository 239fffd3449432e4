"""Embedded objects: what of the user's data travels inside a graph, and what it is called.

Names are looked up where layers and expressions are made. The dump of the graph is watched; when
the graph is on its way, what was large or slow in it is matched with who holds it. All of this
has a budget of time; what was left out for it is said.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from stageprof_runtime.budget import Budget
from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import inside
from stageprof_runtime.event import FETCHED, MARK
from stageprof_runtime.examination import MOST, Examination, Taken, weights
from stageprof_runtime.grouping import Group, quick_types
from stageprof_runtime.guard import Watch, caught
from stageprof_runtime.holder import Held
from stageprof_runtime.holding import Walk
from stageprof_runtime.kinds import CUSTOM, STRUCTURE, kind_of
from stageprof_runtime.kinship import is_empty
from stageprof_runtime.names import Known, Names, Sight
from stageprof_runtime.parts import LAYER, part_of
from stageprof_runtime.patch import Emit, Undo, observe, replace, together
from stageprof_runtime.pickling import Attempt, Dump, noting
from stageprof_runtime.probes.waiting import handing
from stageprof_runtime.shield import shield, theirs

#: Of the budget of time, the part that naming may use: the rest is for looking at what was handed
#: over. Of that a little is kept for the notes of the dumps that follow.
NAMING: Final = 0.6
LOOKING: Final = 0.9
#: Of what is left for a graph: walking over it ends then, and dividing its dump among all that.
WALKING: Final = 0.5
DIVIDING: Final = 0.8
#: Layers up to so many tasks are timed by the wall, and none of their tasks takes longer than this
#: (finding a name on a deep stack does): if it was more, something else had the processor.
SMALL, SEEING_NS = 16, 1_000_000
#: With no time left, so many new layers pass unseen: asking for the time takes some too.
PAUSE: Final = 100
#: Tasks of one new layer whose objects are named there; the rest of what is cut is known by these.
TASKS: Final = 1000
#: Graphs given to the process scheduler come without a number.
LOCAL: Final = -1

#: [looks, ns] of looking since it was installed
cost: Final = [0, 0]


class _Here(threading.local):
    """What this thread is handing over, and the dump of it."""

    expr: object = None
    dump: Dump | None = None


def install(emit: Emit) -> Undo:
    """Tell of the objects in every graph that is handed over from now on."""
    cost[:] = [0, 0]
    objects = Objects(emit, cost)
    return together(
        [
            observe(*place("graph.new"), objects.graph),
            observe(*place("expr.new"), objects.expression),
            replace(*place("client.submit"), objects.hand_over, limited=False),
            observe(*place("protocol.pickle"), objects.dumps),
            replace(*place("processes.get_async"), objects.hand_over_locally, limited=False),
            objects.names.clear,
        ]
    )


class Objects:
    """What is known of the objects in graphs, and the wrappers through which it is learnt."""

    def __init__(self, emit: Emit, spent: list[int]) -> None:
        self.names = Names()
        self._emit = emit
        self._here = _Here()
        self._budget = Budget(spent)
        self._note_ns = _cost_of_a_note()
        self._unseen = 0
        #: layers to let pass before the clock is read again
        self._pause = 0

    # -- where layers and expressions are made ----------------------------------------------

    def graph(self, raw: Any, watch: Watch) -> Any:
        """`HighLevelGraph.from_collections`, whose layer is looked at."""
        from_collections = raw.__func__

        @functools.wraps(from_collections)
        def noted(cls: type, name: str, *args: Any, **kwargs: Any) -> Any:
            if self._pause > 0:
                self._pass()
            elif not inside.optimizing and args and not watch.disabled:
                try:
                    self._see(_tasks(args[0], TASKS), str(name), sys._getframe(1))
                except BaseException as error:
                    caught(error, watch)
            return from_collections(cls, name, *args, **kwargs)

        return classmethod(noted)

    def expression(self, raw: Any, watch: Watch) -> Any:
        """`Expr.__new__`, whose operands are looked at."""
        new: Callable[..., Any] = raw.__func__ if isinstance(raw, staticmethod) else raw

        @functools.wraps(new)
        def made(cls: type, *args: Any, **kwargs: Any) -> Any:
            expr = new(cls, *args, **kwargs)
            if self._pause > 0:
                self._pass()
            elif not inside.optimizing and not watch.disabled:
                try:
                    self._see(expr, "", sys._getframe(1))
                except BaseException as error:
                    caught(error, watch)
            return expr

        return staticmethod(made)

    def _pass(self) -> None:
        """A layer or expression passes unseen, as nearly all of a loop's do."""
        if not inside.optimizing:
            self._pause -= 1
            self._unseen += 1

    def _see(self, x: object, layer: str, frame: FrameType) -> None:
        # Reading the thread's own clock takes as long as seeing a small layer does.
        clock = thread_ns if _size(x) > SMALL else now_ns
        start, left = clock(), self._budget.left(now_ns(), NAMING)
        if left <= 0 or not self.names.see(x, layer, frame, start + left, clock):
            self._unseen += 1
            self._pause = PAUSE
        self._budget.spend(min(clock() - start, SEEING_NS * (1 + _size(x))))

    # -- where they are handed over ---------------------------------------------------------

    def dumps(self, function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
        """`distributed.protocol.pickle.dumps`, watched if it dumps what is handed over here."""
        shielded = shield(function, self._dumped, watch)

        @functools.wraps(function)
        def dumped(x: object, *args: Any, **kwargs: Any) -> Any:
            mine = x is not None and self._here.expr is x and not args
            return (shielded if mine else function)(x, *args, **kwargs)

        return dumped

    def _dumped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(x: object, **kwargs: Any) -> Any:
            here = self._here
            here.expr = None
            dump = Dump()
            watching = dump.watching(function)
            here.dump = dump
            return theirs(functools.partial(watching, x, **kwargs))

        return watched

    def hand_over(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`Client._graph_to_futures`: its dump is watched, and looked at when it was sent."""

        def submitted(client: Any, expr: Any, *args: Any, **kwargs: Any) -> Any:
            here, t = self._here, now_ns()
            here.expr, here.dump = expr, None
            handing.number = LOCAL  # where nobody numbers them
            try:
                futures = function(client, expr, *args, **kwargs)
            finally:
                dump, here.expr, here.dump = here.dump, None, None
            if dump is not None:
                self._examine(expr, dump, handing.number, t, sys._getframe(1))
            return futures

        return submitted

    def hand_over_locally(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The process scheduler's `get_async`: each task is dumped by itself, later."""

        def got(submit: Any, workers: Any, dsk: Any, *args: Any, **kwargs: Any) -> Any:
            self._look(dsk, None, LOCAL, now_ns(), sys._getframe(1))
            return function(submit, workers, dsk, *args, **kwargs)

        return got

    def _examine(self, expr: Any, dump: Dump, graph: int, t: int, frame: FrameType) -> None:
        notes = sum(len(attempt.values) for attempt in dump.attempts)
        self._budget.spend(notes * self._note_ns)
        start = thread_ns()
        examination = Examination(dump, start + self._budget.left(now_ns(), LOOKING))
        self._budget.spend(thread_ns() - start)
        if any(attempt.cut for attempt in dump.attempts):
            self._not_examined(f"graph {graph}: it has too many parts, it was not seen whole")
        if examination.suspicious:
            self._look(expr, examination, graph, t, frame)

    def _look(self, x: Any, of: Examination | None, graph: int, t: int, frame: FrameType) -> None:
        start, left = thread_ns(), self._budget.left(now_ns(), LOOKING)
        if left <= 0:
            self._not_examined(f"graph {graph}: no time was left to look at it")
            return
        with Sight(self.names, frame, made=False) as sight:
            first, end = of.parts() if of else frozenset(), start + int(WALKING * left)
            walk = Walk(end, sight.whole, first=first, clock=thread_ns)
            held = walk.graph(x if of else _tasks(dict(x)))
            found = [one for one in held if not is_empty(one.value)]
            until = start + int(DIVIDING * left)
            took = of.shares(found, until) if of else weights(found, until)
            divided = thread_ns() <= until
            groups = self._groups(sight, found, took, start + left)
        self._tell(groups, graph, t)
        if walk.stopped or not divided or thread_ns() > start + left:
            self._not_examined(f"graph {graph}: looking took too long, it was not seen whole")
        if self._unseen:
            self._not_examined(f"{self._unseen} layers had no time to be named")
            self._unseen = 0
        self._budget.spend(thread_ns() - start)

    def _not_examined(self, why: str) -> None:
        self._emit.row("client", (MARK, now_ns(), "objects not examined", why))

    def _groups(
        self, sight: Sight, found: list[Held], took: dict[int, Taken], until: int
    ) -> list[Group]:
        """What has a name; after that instant only what is large or slow by itself."""
        groups: defaultdict[int, list[Held]] = defaultdict(list)
        known: dict[int, Known] = {}
        quick = quick_types(found, took)
        for held in found:
            part = took.get(id(held.value))
            if part is not None and type(held.value) in quick:
                part = part._replace(ns=0)
                took[id(held.value)] = part
            worth = part is not None and part.matters
            if not worth and (kind_of(held.value) == CUSTOM or thread_ns() > until):
                continue
            name = self.names.get(held.value)
            if name is None and (worth or self.names.piece(held)):
                name = sight.name(held)
            if name is not None:
                known[name.number] = name
                groups[name.number].append(held)
        alone = self.names.alone
        return [Group(alone(known[n], helds), helds, took) for n, helds in groups.items()]

    def _tell(self, groups: list[Group], graph: int, t: int) -> None:
        heaviest = sorted((g for g in groups if g.took.matters), key=lambda g: -g.rank)
        for group in heaviest[:MOST]:
            for row in group.rows(graph, t):
                self._emit.row("client", row)
            if group.key is not None:
                self._emit.row("client", (FETCHED, group.number, graph, group.key))
        if len(heaviest) > MOST:
            self._not_examined(f"graph {graph}: {len(heaviest) - MOST} smaller objects")


def _tasks(layer: Any, most: int | None = None) -> Any:
    """A layer; of one that is (or will be) a dict of tasks only the first `most`."""
    from dask.highlevelgraph import MaterializedLayer

    if type(layer) is MaterializedLayer:
        layer = layer.mapping
    if type(layer) is not dict:
        return layer
    return MaterializedLayer(dict(itertools.islice(layer.items(), most)))


def _size(x: Any) -> int:
    """How many tasks a new layer has; 0 if it is none that is a dict of them."""
    # An expression is not asked: it would look for the name in the data frame that it makes.
    known = kind_of(x) == STRUCTURE and part_of(x) == LAYER
    mapping = getattr(x, "mapping", None) if known else None
    return len(mapping) if type(mapping) is dict else 0


def _cost_of_a_note() -> int:
    """What one note of a pickler costs, ns."""
    noted = noting(None, Attempt(), itertools.count().__next__)
    times = []
    for _ in range(10):  # the shortest: in the others something else ran too
        start = now_ns()
        for _ in range(50):
            noted(None)
        times.append(now_ns() - start)
    return min(times) // 50


__all__ = ["Objects", "cost", "install"]
