"""A large object of the user's travels inside the graph, with every task that uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.burden import Burdens
from stageprof_collectors.findings.embedded import (
    HEAVY,
    HEAVY_BYTES,
    Embedded,
    by_futures,
    embedded,
    in_graphs_of_one,
)
from stageprof_collectors.findings.files import fewer_known, known_of_files
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import at, introduced, made_at, of_wall, word
from stageprof_collectors.findings.pool import in_pool
from stageprof_collectors.findings.quantity import count, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.without import Without
from stageprof_collectors.replay.change import Change
from stageprof_collectors.replay.toll import tolls
from stageprof_collectors.tables.site import Collection, Site
from stageprof_collectors.tables.thing import is_cut
from stageprof_runtime.holding import DATUM
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Objects looked at: those that cost less than these are no cause of slowness.
_MOST: Final = 20
#: A stage with this part of the cost or more is named: the bytes are pickled, then sent, then held.
_TELLING: Final = 0.05

_TEXT: Final = (
    "Make or read it in a task of its own: then it never travels with the graph, and each worker "
    "gets it once."
)
_PIECES: Final = (
    "Read or make each {each} in the task that needs it: then they never travel with the "
    "graph, nor does your program have to hold them."
)
_WRAP: Final = (
    " If it must be made here, wrap it in `delayed`: then it travels once and not with each of "
    "{tasks}."
)
_WRAP_ONCE: Final = (
    " If it must be made here, wrap it in `delayed` once, before the loop: each time that it is "
    "wrapped it is one more task, and travels once more."
)
_POOLED: Final = (
    "With the processes scheduler each task is pickled with all that it is given, and what is "
    "wrapped in `delayed` as well. Make or read it in the process that needs it, once in each (the "
    "code below), or use a scheduler that does not copy it to each of {tasks}: threads, or a "
    "cluster on this machine (`Client()`) with it in `delayed`."
)
_PERSIST: Final = (
    " If it must be made here, `persist` what is made of it before it is used: then it travels "
    "once and not with each of {graphs}."
)
_OUTSIDE: Final = (
    " The function has it from outside ({how}); give it to the function as an argument, so that "
    "it can be wrapped."
)
_CODE: Final = """\
import dask

{name} = dask.delayed({name}, traverse=False)  # travels once
# better, it does not travel: {name} = dask.delayed(function_that_makes_it)(...)"""
_META: Final = """
# {call} needs meta={meta}, too: it cannot try what is not made yet"""
#: What applies a function of the user's to the pieces of a collection, and tries it first.
_TRYING: Final = {
    Collection.ARRAY: {"call": "map_blocks", "meta": "np.array((), dtype=...)"},
    Collection.FRAME: {"call": "map_partitions", "meta": "..."},
}
_FUTURE: Final = """\
import dask
from dask.distributed import get_client

# a future: it travels once. Better, it does not: client.submit(function_that_makes_it, ...)
{name} = get_client().compute(dask.delayed({name}, traverse=False))"""
_MADE: Final = """\
import dask

{name} = dask.delayed(function_that_makes_it)(...)  # it does not travel"""
_HELD: Final = """\
import dask

{name} = dask.delayed({name}, traverse=False).persist()  # travels once
# better, it does not travel: {name} = dask.delayed(function_that_makes_it)(...)"""
_CACHED: Final = """\
from functools import cache

@cache  # at the top of the program's file: each process makes it once, for each compute
def {name}():
    return function_that_makes_it()

# in what needs it: {name}() in place of {name}"""
_READ: Final = """\
import dask

# each task reads its own piece; see from_map, from_delayed and map_blocks of your collection
{name} = [dask.delayed(function_that_makes_a_piece)(i) for i in range({tasks})]"""

_SUBMITTED: Final = """\
from dask.distributed import get_client

# each task reads its own piece
{name} = get_client().map(function_that_makes_a_piece, range({tasks}))"""

#: How something is held by a call that tries its function on empty data first.
_TRIES: Final = " of map_partitions"
#: Releases of Dask in which such a call hands over a `delayed` as it is, and not its value.
_HANDS_OVER: Final = "2025.4."
_NO_DELAYED: Final = (
    " Dask 2025.4 hands a `delayed` to the function of map_partitions as it is, a future by its "
    "value: without a cluster take a newer Dask."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each object that is large, or whose way takes a share of the run."""
    things = embedded(recording)
    if not things:
        return
    burdens = Burdens(recording, things)
    for thing in things[:_MOST]:
        large = thing.sent_bytes >= limits["nbytes"] or thing.graph_bytes >= limits["nbytes"]
        slow = thing.total_s >= limits["share"] * recording.wall
        if not (large or slow) or thing.slow_for_its_bytes:
            continue
        found = _finding(recording, thing, Without(recording, thing, burdens))
        if not thing.once or found.cost_s >= max(limits["once_s"], limits["once"] * recording.wall):
            yield found


def _finding(recording: Recording, thing: Embedded, without: Without) -> Finding:
    never = without.everywhere()
    saved = _saving(recording, thing, never, without)
    costs = tolls(recording, never)
    cost = max(0.0, sum(costs.values()))
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=f"{described(thing)}: {of_wall(cost, recording)}",
        stage=_dearest(costs),
        evidence={
            "type": thing.type,
            "object_bytes": thing.nbytes,
            "copies_in_graph": thing.copies,
            "tasks": thing.tasks,
            "sent_bytes": thing.sent_bytes,
            "pickling_s": thing.total_s,
            "how": thing.how,
            **{f"{stage}_s": s for stage, s in costs.items() if s > _TELLING * cost},
        },
        cost_s=cost,
        saving_s=saved,
        fix=fix_of(recording, thing),
        where=Where(thing.file, thing.line, thing.variable, min(thing.layers, default="")),
        cause=thing.cause,
    )


def _collection(recording: Recording, thing: Embedded) -> Collection:
    """Of which kind is what holds it."""
    if is_tried(thing.how):
        return Collection.FRAME
    if not thing.used_file:
        return Collection.CALLS
    site = Site(recording, recording.groups, f"{thing.used_file}:{thing.used_line}")
    return site.collection if site.chunked else Collection.CALLS


def is_tried(how: str) -> bool:
    """Whether it was given to a call that tries its function on empty data first."""
    return how.endswith(_TRIES)


def _saving(
    recording: Recording, thing: Embedded, never: Change, without: Without
) -> tuple[float, float]:
    """Seconds saved if it travels no more; at least what is saved if it still travels once."""
    changes = [never] if thing.once or thing.alone else [never, without.once()]
    both = [recording.replay.saving(change) for change in changes]
    return min(low for low, _ in both), max(high for _, high in both)


def _dearest(costs: dict[Stage, float]) -> Stage:
    """The stage that has most of the cost: bytes are pickled, sent and waited for."""
    stage = max(costs, key=lambda s: costs[s], default=Stage.SERIALIZATION)
    return stage if costs.get(stage, 0.0) > 0 else Stage.SERIALIZATION


def described(thing: Embedded) -> str:
    """What it is, where it was made, and what holds it."""
    made = made_at(thing.file, thing.line, " made at ")
    of = f" of {size(thing.nbytes // thing.many)}"
    name = introduced(thing.type, thing.variable, made, of=of, unnamed="unnamed", many=thing.many)
    return f"{name} {'are' if thing.many > 1 else 'is'} {_held(thing)}"


def _held(thing: Embedded) -> str:
    used = at(thing.used_file, thing.used_line)
    of = f" of {used}" if used else ""
    if not thing.apart:
        return f"embedded in {count(thing.tasks, 'task') if thing.tasks else 'the graph'}{of}"
    graph = "once with the graph" if thing.once else f"with each of {count(thing.graphs, 'graph')}"
    cut = _pieces(thing) > thing.many
    pieces = f" in {count(_pieces(thing), 'piece')}" if cut else ""
    return f"sent {graph}{of}{pieces}"


def _pieces(thing: Embedded) -> int:
    """Tasks of one graph that have a piece of it."""
    return thing.tasks // thing.graphs


def fix_of(recording: Recording, thing: Embedded) -> Fix:
    """What to do with an object of a recording."""
    # A future is taken by `delayed` as well; `submit` with `pure=False` names a task as that does.
    maybe = thing.shared and in_graphs_of_one(recording, thing)
    return fix(
        thing,
        futures=by_futures(recording, thing) or maybe,
        pooled=in_pool(recording),
        collection=_collection(recording, thing),
        dask=str(recording.store.header.get("dask", "")),
    )


def fix(
    thing: Embedded,
    *,
    futures: bool,
    dask: str,
    pooled: bool = False,
    collection: Collection = Collection.CALLS,
) -> Fix:
    """What to do with that release of Dask.

    `futures`: it was given to `submit` or `map`; `pooled`: tasks ran in a pool of processes;
    `collection`: what the tasks that have it are pieces of.
    """
    if known_of_files(thing.how):
        return fewer_known(thing.how)
    if pooled and not thing.apart:
        tasks = count(thing.tasks, "task") if thing.tasks else "its tasks"
        code = _CACHED.format(name=word(thing.variable, "thing"))
        return Fix(_POOLED.format(tasks=tasks), code)
    name = word(thing.variable, "thing")
    if thing.apart or thing.alone:
        return _made_there(thing, name, futures=futures)
    tasks = count(thing.tasks, "task") if thing.tasks else "its tasks"
    wrap = _WRAP_ONCE if thing.how == DATUM else _WRAP.format(tasks=tasks)
    outside = _OUTSIDE.format(how=thing.how) if thing.outside else ""
    tries = _TRYING.get(collection) if thing.how != DATUM else None
    no_delayed = is_tried(thing.how) and dask.startswith(_HANDS_OVER)
    code = (_FUTURE if futures or no_delayed else _CODE).format(name=name)
    text = _TEXT + wrap + outside + (_NO_DELAYED if no_delayed else "")
    return Fix(text, code + (_META.format(**tries) if tries else ""))


def _made_there(thing: Embedded, name: str, *, futures: bool) -> Fix:
    """Of what no task shares with another: each makes its own."""
    pieces = _pieces(thing)
    each = "of them" if thing.many > 1 else f"of its {count(pieces, 'piece')}"
    text = _PIECES.format(each=each) if pieces > 1 else _TEXT
    again = "" if thing.graphs == 1 else _PERSIST.format(graphs=count(thing.graphs, "graph"))
    code = _HELD if again else _MADE
    if pieces > 1 or is_cut(thing.how):
        code = _SUBMITTED if futures else _READ
    return Fix(text + again, code.format(name=name, tasks=pieces))


RULE = Rule(
    id="embedded-object",
    stage=Stage.SERIALIZATION,
    summary="A large object of the user's travels inside the graph or with its tasks.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(HEAVY, "of the wall time in pickling it: it grows with every task"),
        "nbytes": Limit(HEAVY_BYTES, "bytes in the graph or sent: where Dask warns, too"),
        "once": Limit(
            0.05, "of the wall time that sending it once costs: less is what a fix leaves"
        ),
        "once_s": Limit(
            0.5, "seconds that sending it once costs: for less nobody rewrites a program"
        ),
    },
)
