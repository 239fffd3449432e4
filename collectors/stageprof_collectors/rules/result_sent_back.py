"""Results are brought to the client, and go back to the workers inside the next graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from dask.utils import key_split

from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.burden import Burdens
from stageprof_collectors.findings.embedded import Embedded, by_futures, embedded, together
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import at, made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.scatter import scattered
from stageprof_collectors.findings.without import Without
from stageprof_collectors.replay.change import Change
from stageprof_collectors.replay.gone import without
from stageprof_collectors.replay.relief import Covered, Interval
from stageprof_collectors.replay.toll import toll
from stageprof_collectors.tables.thing import GIVEN
from stageprof_collectors.tables.wanted import largest, source, wanted
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_FETCHING: Final = frozenset(STEP[s] for s in ("result.gather", "result.load", "result.dump"))
#: What Dask does at the line that takes the values: it reads through them, to name and cut them.
_TAKING: Final = frozenset(STEP[s] for s in ("tokenize", "build"))

_TEXT: Final = (
    "Leave them on the workers: give the next step {what} in place of the values. What your "
    "program does with the values in between, do in a task too."
)
_FUTURES: Final = """\
from dask.distributed import get_client

# futures: what client.map or client.submit gave, before gather or .result()
futures = get_client().map({function}, futures)  # each runs where its data are"""
_CALLS: Final = """\
import dask

# parts: the delayed calls themselves, before dask.compute
parts = [dask.delayed({function})(part) for part in parts]"""
_KEPT: Final = """\
{name} = {name}.persist()  # in place of .compute(): it is computed, and stays on the workers"""
#: How it goes back without a graph.
_SCATTER: Final = "argument 1 of client.scatter"
#: What collections of such pieces are usually called.
_NAMES: Final = {"ndarray": "x", "list": "bag"}


@dataclass(frozen=True)
class Trip:
    """What of one layer was fetched, and the objects in graphs that it came back as."""

    #: rows of the runs that made it, where it was put together of the pieces
    joined: Ints
    thing: Embedded
    causes: frozenset[str]
    row: Row
    #: when it was fetched, and when it was scattered
    fetched: Covered
    scattered: Covered


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each layer whose results went to the client and back."""
    for trip, burdens in _trips(recording):
        if trip.thing.graph_bytes < limits["bytes"]:
            continue
        change = _change(recording, trip, burdens)
        cost = toll(recording, change)
        if cost >= limits["share"] * recording.wall:
            yield _finding(recording, trip, change, cost)


def _trips(recording: Recording) -> Iterator[tuple[Trip, Burdens]]:
    """By the layer, or the layer whose pieces were put together, and by how they went back."""
    things, sent = embedded(recording), _scattered(recording)
    back = [thing for thing in (*things, *sent) if thing.key]
    if not back:
        return
    burdens, made = Burdens(recording, things), _made(recording)
    of_run, found = recording.groups.of_run, defaultdict(list)
    fetches = _fetches(recording, made)
    for thing in back:
        if thing.key in made:
            group = int(of_run[source(recording, made[thing.key])])
            found[group, thing in sent].append(thing)
    for (group, _), some in found.items():
        rows = np.array([made[thing.key] for thing in some])
        joined = rows[of_run[rows] != group]
        theirs = {group, *of_run[rows].tolist()}
        fetched = Covered([call for each in theirs for call in fetches[each]])
        times = Covered([sent[thing] for thing in some if thing in sent])
        causes = frozenset(thing.cause for thing in some if thing not in sent)
        row = recording.groups.rows[group]
        yield Trip(joined, together(some), causes, row, fetched, times), burdens


def _made(recording: Recording) -> dict[str, int]:
    """The rows of the runs whose results a client had asked for, by their keys."""
    asked = wanted(recording)
    keys = recording.store.keys(recording.timeline.runs["key"][asked])
    return dict(zip(keys, asked.tolist(), strict=True))


def _scattered(recording: Recording) -> dict[Embedded, Interval]:
    """What was fetched and scattered, as if it were in a graph that nothing holds, and when."""
    found = {}
    for each in scattered(recording):
        if each.key:
            made, used = (each.file, each.line), (each.used_file, each.used_line)
            name, nbytes = each.variable.partition("[")[0], each.nbytes
            thing = Embedded(
                each.who[1], each.type, name, *made, _SCATTER, *used, frozenset(),
                nbytes, 1, 1, nbytes, nbytes, 0.0, 0.0, 0.0, key=each.key,
            )  # fmt: skip
            found[thing] = each.call
    return found


def _fetches(recording: Recording, made: dict[str, int]) -> defaultdict[int, list[Interval]]:
    """When the client fetched results of each row of the table of layers."""
    table = recording.timeline.read("block", "gather", "gathered")
    columns = table["gather"].tolist(), table["gathered"].tolist()
    calls = zip(recording.store.keys(table["key"]), *columns, strict=True)
    of_run = recording.groups.of_run
    found: defaultdict[int, list[Interval]] = defaultdict(list)
    for key, start, stop in calls:
        if start and key in made:
            found[int(of_run[made[key]])].append((start, stop))
    return found


def _change(recording: Recording, trip: Trip, burdens: Burdens) -> Change:
    """Nothing of it is fetched, put together, read through or sent."""
    held = bool(trip.thing.layers)
    never = Without(recording, trip.thing, burdens).everywhere() if held else Change()
    joined = without(recording, trip.joined)
    both = {
        name: np.minimum(getattr(never, name), getattr(joined, name))
        for name in ("compute", "lead", "fetch", "lag", "begin")
    }
    return replace(never, **both, serial=_serial(recording, trip, never.serial))


def _serial(
    recording: Recording, trip: Trip, sent: Callable[[Step], float] | None
) -> Callable[[Step], float]:
    texts, used = recording.store.strings, f"{trip.thing.used_file}:{trip.thing.used_line}"

    def left(step: Step) -> float:
        if step.what.step in _TAKING and texts[step.what.label] == used:
            return 0.0
        rest = min(sent(step) if sent is not None else 1.0, 1.0 - trip.scattered.part(step))
        if step.what.step not in _FETCHING:
            return rest
        return min(rest, 1.0 - trip.fetched.part(step))

    return left


def _finding(recording: Recording, trip: Trip, change: Change, cost: float) -> Finding:
    thing, row = trip.thing, trip.row
    saved = recording.replay.saving(change)
    mine = frozenset({f"built:{thing.used_file}:{thing.used_line}"})
    whole, _ = largest(recording)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=f"{_described(thing, row)}: {of_wall(cost, recording)}",
        stage=Stage.COMMUNICATION,
        evidence={
            "sent_back_bytes": thing.graph_bytes,
            "tasks": thing.tasks,
            "graphs": thing.graphs,
            "type": thing.type,
            "how": thing.how,
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, thing),
        where=Where(thing.used_file, thing.used_line, thing.variable, row.layer, row.prefix),
        cause=f"back:{row.layer}:{thing.used_file}:{thing.used_line}",
        also=trip.causes | mine | {f"result:{whole.layer}"},
    )


def _described(thing: Embedded, row: Row) -> str:
    what = "Results" if thing.many > 1 or thing.tasks > thing.graphs else "The result"
    goes = "are" if what == "Results" else "is"
    back = at(thing.used_file, thing.used_line)
    to = f" at {back}" if back else ""
    times = f", with each of {count(thing.graphs, 'graph')}" if thing.graphs > 1 else ""
    return (
        f"{what} of `{row.prefix}`{made_at(row.file, row.line)}, {size(thing.nbytes)}, {goes} "
        f"brought to the client and sent back{to}{times}"
    )


def _fix(recording: Recording, thing: Embedded) -> Fix:
    given = thing.how.startswith(GIVEN)
    if not given and thing.tasks > thing.many * thing.graphs:
        name = _NAMES.get(thing.type.rpartition(".")[2], "ddf")
        what = "the collection itself, persisted,"
        return Fix(_TEXT.format(what=what), _KEPT.format(name=name))
    prefix = key_split(min(thing.layers)) if given and thing.layers else ""
    function = word(prefix, "function")
    if thing.how == _SCATTER or by_futures(recording, thing):
        return Fix(_TEXT.format(what="the futures"), _FUTURES.format(function=function))
    return Fix(_TEXT.format(what="the delayed calls"), _CALLS.format(function=function))


RULE = Rule(
    id="result-sent-back",
    stage=Stage.COMMUNICATION,
    summary="Results are brought to the client, and sent back to the workers with a later graph.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.05, "of the wall time: less is not worth a change of the program"),
        "bytes": Limit(10e6, "sent back: with less it is not their way that takes the time"),
    },
)
