"""Results of many Python objects travel: each is pickled by itself.

Dask serializes a list item by item, with a header for each; other objects are pickled in one piece,
which is quicker, but goes from object to object as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.carried import Carried
from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.crowd import Bools, is_piece
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import seconds, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.relief import relief
from stageprof_collectors.replay.toll import toll
from stageprof_collectors.tables.traffic import Traffic
from stageprof_collectors.tables.wanted import wanted
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What a result's way is made of, beside the way itself.
_STEPS: Final = tuple(STEP[s] for s in ("data.dump", "data.load", "result.dump", "result.load"))
#: `distributed.protocol.serialize.serialize` goes over the items of a result of just these types.
_COLLECTIONS: Final = ("list", "tuple", "set", "dict")
#: Bytes in a second: item by item they are less than this, for in one piece small Python objects
#: are ten million; arrays and texts are hundreds.
_ITEMS_BYTES_S: Final = 5e6
_OBJECTS_BYTES_S: Final = 20e6
#: Of results of such types it is not known that they are made of many objects.
_PLAIN: Final = frozenset({"", "str", "bytes", "bytearray", "int", "float", "bool", "NoneType"})
#: Shorter pickling says more of the clock, ns.
_LONG_NS: Final = 1_000_000
#: A step that belongs to no run is one of theirs if so much of it is.
_MOST: Final = 0.5
#: The layers of a bag's `groupby`.
_GROUPBY: Final = re.compile(r"shuffle-(group|split|join)(-.*)?|shuffle-shuffle-join-.*")

_TEXT: Final = (
    "Return one NumPy array or data frame, which travel as the bytes that they are. A result that "
    "is a {kind} is pickled item by item, each with a header of its own: {each} took {took}. "
    "Where the items must stay Python objects, return them inside another list: what is within "
    "is pickled in one piece, many times as fast."
)
_CODE: Final = """\
import pandas as pd

def in_one_piece(items):  # what the task returns now
    return pd.DataFrame(items)  # or [items], and items[0] where they are used"""
_PAIRS: Final = """\
import pandas as pd

def in_one_piece(items):  # what the task returns now
    return pd.Series(items)  # or [items], and items[0] where they are used"""
#: Bytes of headers for each byte of items, at most: of a list of numbers they are 1.7.
_HEADERS: Final = 3.0
_OBJECTS: Final = (
    "Return NumPy arrays or a data frame in place of the many Python objects that a `{kind}` is "
    "made of: they travel as the bytes that they are. It is pickled object by object: {each} took "
    "{took}. If its class is in the script itself, import it from a module: then only its name "
    "travels."
)
_COLUMNS: Final = """\
import numpy as np

# an array for each attribute, instead of an object for each item
columns = {key: np.array([getattr(item, key) for item in items]) for key in vars(items[0])}"""
#: The layers of a bag's `frequencies`, fused or not.
_FREQUENCIES: Final = re.compile(r"(.*-)?frequencies-(part|aggregate)(-.*)?")
_COUNT: Final = (
    "Count with a `Counter`, which is pickled in one piece: `frequencies` makes a dict for each "
    "partition, and a result that is just a dict is pickled item by item, each with a header of "
    "its own: {each} took {took}."
)
_COUNTED: Final = """\
from collections import Counter
from operator import add

# in place of bag.frequencies(): one Counter of all items
counts = bag.map_partitions(lambda items: [Counter(items)]).fold(add)"""
_FOLD: Final = (
    "Use `foldby` in place of `groupby`: of each partition only what it makes of a group travels, "
    "where `groupby` moves every item, pickled one by one with a header of its own: {each} took "
    "{took}. Or make a data frame of the bag first (`to_dataframe`), whose pieces travel as the "
    "bytes that they are."
)
_FOLDED: Final = """\
from operator import add

def take_in(total, item):  # what is kept of a group, and one item more: here it is counted
    return total + 1

totals = bag.foldby(key, binop=take_in, initial=0, combine=add, combine_initial=0)"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all such results, at the layer that most of them are of."""
    spans = recording.timeline.spans
    took = spans["stop"] - spans["start"]
    least = limits["share"] * recording.wall * 1e9
    for items, bytes_s in ((True, _ITEMS_BYTES_S), (False, _OBJECTS_BYTES_S)):
        slow = np.isin(spans["step"], _STEPS) & (took >= _LONG_NS)
        slow &= spans["nbytes"] * 1e9 < took * bytes_s
        if took[slow].sum() < least:
            continue
        traffic = Traffic(recording)
        rows = _travelled(recording, traffic, items=items)
        if len(rows):
            yield from _worth(recording, limits, traffic, slow, rows)
            return


def _travelled(recording: Recording, traffic: Traffic, *, items: bool) -> Ints:
    """Runs whose results went to another worker or to the client, and are of such a type.

    `items`: of collections that are gone over item by item, else of other Python objects.
    """
    runs, names = recording.timeline.runs, recording.store.strings
    such = np.array([_is_listed(name) if items else _is_object(name) for name in names], np.bool_)
    rows = np.union1d(traffic.makers, wanted(recording))
    found: Ints = rows[such[runs["type"][rows]]] if len(names) else rows[:0]
    return found


def _is_listed(type_: str) -> bool:
    return type_ in _COLLECTIONS


def _is_object(type_: str) -> bool:
    return type_ not in _PLAIN and type_ not in _COLLECTIONS and not is_piece(type_)


def _worth(
    recording: Recording, limits: Limits, traffic: Traffic, slow: Bools, rows: Ints
) -> Iterator[Finding]:
    spans = recording.timeline.spans
    took = float((spans["stop"] - spans["start"])[slow].sum()) / 1e9
    part = _part(recording, took, float(spans["nbytes"][slow].sum()), rows)
    change = relief(recording, _trouble(recording, slow), steps=_theirs(recording, slow))
    cost = part * toll(recording, change)
    if cost < limits["share"] * recording.wall:
        return
    low, high = recording.replay.saving(change)
    saved = part * low, part * high
    row, kind = _main(recording, rows)
    stream = traffic.main
    took, nbytes = part * took, int(part * spans["nbytes"][slow].sum())
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"Results of `{row.prefix}`{made_at(row.file, row.line)} are pickled "
            f"{'item by item' if _is_listed(kind) else 'object by object'}, {size(nbytes)} in "
            f"{seconds(took)}: {of_wall(cost, recording)}"
        ),
        stage=Stage.SERIALIZATION,
        evidence={
            "type": kind,
            "results": len(rows),
            "pickled_bytes": nbytes,
            "pickling_s": took,
            "bytes_per_s": nbytes / max(took, 1e-9),
        },
        cost_s=cost,
        saving_s=saved,
        fix=fix(row.prefix, kind, size(nbytes), seconds(took)),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=stream.cause if stream else f"result:{row.layer}",
    )


def _part(recording: Recording, took_s: float, nbytes: float, rows: Ints) -> float:
    """How much of what took long was for these results, by what messages carried for whom.

    On a machine that is busy any small message may have taken long. What a message holds beside its
    results are headers, one for each item: they take as long as the items do, byte by byte.
    """
    carried = Carried(recording.timeline, recording.groups)
    theirs = np.unique(recording.groups.of_run[rows]).tolist()
    known = [step for step in _STEPS if step in carried.ns]
    if not known:
        return 1.0
    ns = sum(carried.ns[step].get(row, 0.0) for step in known for row in theirs)
    own = sum(carried.nbytes[step].get(row, 0.0) for step in known for row in theirs)
    headers = min(max(0.0, nbytes - own), _HEADERS * own)
    return min(1.0, ns * (1 + headers / max(own, 1.0)) / 1e9 / max(took_s, 1e-9))


def _trouble(recording: Recording, slow: Bools) -> dict[int, list[tuple[int, int]]]:
    """When each place was at it."""
    spans = recording.timeline.spans
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    columns = (spans[name][slow].tolist() for name in ("place", "start", "stop"))
    for place, start, stop in zip(*columns, strict=True):
        found[place].append((start, stop))
    return found


def _theirs(recording: Recording, slow: Bools) -> frozenset[int]:
    """Codes of the steps most of which it is."""
    spans = recording.timeline.spans
    took = spans["stop"] - spans["start"]
    of = {step: spans["step"] == step for step in _STEPS}
    return frozenset(s for s in _STEPS if took[of[s] & slow].sum() > _MOST * took[of[s]].sum())


def _main(recording: Recording, rows: Ints) -> tuple[Row, str]:
    """The layer with most bytes of these results, and what most of them there are."""
    runs, groups = recording.timeline.runs, recording.groups
    at = groups.of_run[rows]
    # One more byte each: it may be that none has a size.
    most = int(np.argmax(np.bincount(at, np.maximum(runs["nbytes"][rows], 0) + 1)))
    kinds = runs["type"][rows[at == most]]
    return groups.rows[most], recording.store.strings[int(np.argmax(np.bincount(kinds)))]


def fix(prefix: str, kind: str, each: str, took: str) -> Fix:
    """What to do with results of a layer, which are of a kind."""
    if _GROUPBY.fullmatch(prefix):
        return Fix(_FOLD.format(each=each, took=took), _FOLDED)
    if _FREQUENCIES.fullmatch(prefix):
        return Fix(_COUNT.format(each=each, took=took), _COUNTED)
    if _is_listed(kind):
        code = _PAIRS if kind.rpartition(".")[2] == "dict" else _CODE
        return Fix(_TEXT.format(kind=kind, each=each, took=took), code)
    return Fix(_OBJECTS.format(kind=kind.rpartition(".")[2], each=each, took=took), _COLUMNS)


RULE = Rule(
    id="items-one-by-one",
    stage=Stage.SERIALIZATION,
    summary="Results of many Python objects travel, which are pickled one by one.",
    find=find,
    ground=Ground.RECORDED,
    instead_of=frozenset({"transfer-heavy"}),
    limits={
        "share": Limit(0.05, "of the wall time in pickling them: for less nobody changes a result")
    },
)
