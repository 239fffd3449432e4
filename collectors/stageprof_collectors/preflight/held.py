"""What of the user's data is in a graph: the walk of the recording, with weights for a dump."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from stageprof_collectors.preflight.census import Census
from stageprof_collectors.preflight.plan import Plan, Watch
from stageprof_collectors.tables.thing import is_cut
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import FIELDS, OBJECT
from stageprof_runtime.examination import Taken
from stageprof_runtime.grouping import Group
from stageprof_runtime.holder import Held
from stageprof_runtime.holding import LEAST, Walk
from stageprof_runtime.kinds import CUSTOM, kind_of
from stageprof_runtime.names import Names, Sight
from stageprof_runtime.weight import buffers, weigh

#: Of many values of one class so many are weighed; the rest weighs as much as they did.
ALIKE: Final = 1_000


@dataclass(frozen=True)
class Thing:
    """One object of the user's in a graph."""

    type: str
    variable: str
    file: str
    line: int
    how: str
    layer: str
    #: bytes of one copy, and how many copies the graph has
    nbytes: int
    copies: int
    #: tasks that hold it, and different values that are it or a piece of it
    tasks: int
    pieces: int
    #: small Python objects in it
    objects: int = 0
    #: whether a class in it says itself how it is pickled
    own: bool = False

    @property
    def sent(self) -> int:
        """Bytes of it in the messages of all tasks that hold it."""
        whole = self.nbytes * self.copies
        return whole if is_cut(self.how) else whole * self.tasks // self.pieces


def look(graph: Any, plan: Plan, names: Names, frame: FrameType | None, watch: Watch) -> None:
    """Take the objects in a graph into a plan; what was not reached is said."""
    until = now_ns() + int(max(watch.left_s, 0.0) * 1e9)
    with Sight(names, frame, made=False) as sight:
        walk = Walk(until, sight.whole)
        found = walk.graph(graph)
        groups = _groups(found, names, sight, until)
        plan.things.extend(_things(groups, plan))
    if walk.stopped or now_ns() > until:
        plan.cannot("the rest of the objects in the graph: there was no more time")


#: What is known of an object's parts: its name, who holds them, the bytes and objects of each.
_Groups = dict[int, tuple[Any, list[Held], dict[int, Taken], int, bool]]


def _groups(found: Iterable[Held], names: Names, sight: Sight, until: int) -> _Groups:
    known: dict[int, Any] = {}
    helds: defaultdict[int, list[Held]] = defaultdict(list)
    took: defaultdict[int, dict[int, Taken]] = defaultdict(dict)
    counts: Counter[int] = Counter()
    own: set[int] = set()
    alike: Counter[type] = Counter()
    for held in found:
        if now_ns() > until:
            break
        alike[type(held.value)] += 1
        if kind_of(held.value) == CUSTOM and alike[type(held.value)] > ALIKE:
            continue
        taken, objects, special = _weighed(held.value)
        if taken.nbytes < LEAST and objects < MANY and not special:
            continue
        name = names.get(held.value) or sight.name(held)
        known[name.number] = name
        helds[name.number].append(held)
        if id(held.value) not in took[name.number]:
            took[name.number][id(held.value)] = taken
            counts[name.number] += objects
        if special:
            own.add(name.number)
    return {n: (known[n], helds[n], took[n], counts[n], n in own) for n in known}


#: So many small objects take 10 ms or more to pickle: some 1 us each at best.
MANY: Final = 5_000


def _weighed(value: Any) -> tuple[Taken, int, bool]:
    plain = buffers(value)
    if plain is not None:
        return Taken(0, 0, plain), 0, False
    census = Census()
    objects = census.count(value)
    return Taken(0, weigh(value), 0), objects, census.own


def _things(groups: _Groups, plan: Plan) -> Iterable[Thing]:
    for name, helds, took, objects, own in groups.values():
        rows = [_fields(row) for row in Group(name, helds, took).rows(0, 0)]
        first = rows[0]
        tasks = sum(row["tasks"] or _of_layer(row["name"], plan) for row in rows)
        yield Thing(
            first["type"], first["variable"], first["file"], first["line"], first["how"],
            first["name"], first["nbytes"], first["copies"], tasks, first["pieces"], objects, own,
        )  # fmt: skip


def _fields(row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(FIELDS[OBJECT], row[1:], strict=True))


def _of_layer(name: str, plan: Plan) -> int:
    """Tasks of a layer all of which hold it; 1 if that is not known."""
    return max(1, plan.sizes.get(name, 1))
