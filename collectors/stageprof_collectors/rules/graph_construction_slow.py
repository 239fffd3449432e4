"""The caller waited while Dask built the graph: by line, and what took the time there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.findings.advice import one_function
from stageprof_collectors.findings.calling import calling
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.site import Collection, Site
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_META, _TOKENIZE, _BUILD = STEP["meta"], STEP["tokenize"], STEP["build"]
_STEPS: Final = {_META: "meta", _TOKENIZE: "tokenize", _BUILD: "build"}

#: What Dask did, by the step that took most.
_DID: Final = {
    _META: "called {name} while the graph was built, to learn what it returns",
    _TOKENIZE: "made names for {name} out of all its arguments",
    _BUILD: "put {name} together, operation by operation",
}
#: So many graphs of one line are its calls, one by one.
_MANY: Final = 20
_CALLS: Final = (
    "Each call makes a graph, futures and a message of its own. Where the inputs are known before "
    "the first result is there, hand all calls over at once (the code below). Where they are not, "
    "do more in each call."
)
_MAP: Final = """\
from distributed import Client

# in place of client.submit({name}, x) for each of them:
futures = Client.current().map({name}, inputs)
# in place of compute() for each of several collections: dask.compute(*collections)"""
_IMPURE: Final = (
    "Let Dask take a random name (`pure=False`) instead of reading through the function and its "
    "arguments to make one, and through all that the function has from outside, such as a frame "
    "that a `lambda` names. What is submitted twice is then computed twice."
)
_SUBMIT: Final = """\
future = client.submit({name}, *args, pure=False)  # or client.map({name}, items, pure=False)"""
_COPIES: Final = "copied what {name} was made from, chunk by chunk"
_DIVIDES: Final = "went through the index of a pandas frame to divide it"
_READS: Final = "looked at the files of {name} while the graph was built"

_TEXT: Final = {
    _META: (
        "Tell Dask what the function returns (`meta=`): then it need not call it with made-up data "
        "to find out. Where it is called many times, make the meta once. An operator takes no "
        "`meta=`: if a library compiles it when it is first called, every program pays that once."
    ),
    _TOKENIZE: (
        "Let Dask take a random name instead of reading through the data to make one: wrap large "
        "arguments in `delayed`, or give `name=False` or `pure=False` where they are taken. What "
        "is computed twice is then not recognized as the same."
    ),
    _BUILD: (
        "Do many operations in one function, and use larger chunks or partitions: what it takes to "
        "build a graph grows with the number of operations and of pieces."
    ),
}
_FILES: Final = (
    " If it is files that are looked at, name them and their columns yourself (`from_map`, "
    "`columns=`, a schema), so that they are read by the workers only."
)

_FROM_HERE: Final = (
    "What is in this program's memory is read through, and copied, whenever a collection is made "
    "of it: do that once and go on with what it gave, or let the workers read the data "
    "(`dd.read_parquet`, `da.from_zarr`, `from_map`)."
)
_FROM_INDEX: Final = (
    "To find where partitions begin Dask makes a Python object of each value of the frame's index, "
    "once for each `from_pandas`. Make one collection of it and go on with that, or let the "
    "workers read the data (`dd.read_parquet`, `from_map`)."
)

_META_FRAME: Final = """\
args = ()  # what else {name} takes
meta = {name}(ddf.head(10), *args).head(0)  # once
ddf = ddf.map_partitions({name}, *args, meta=meta)"""
_META_ARRAY: Final = """\
import numpy as np

args = ()  # what else {name} takes
meta = np.empty((0,) * x.ndim, dtype=x.dtype)  # dimensions and type of what it returns
x = x.map_blocks({name}, *args, dtype=meta.dtype, meta=meta)"""
#: How the names of what reads files begin.
_READERS: Final = ("read", "open")
#: The function of Dask's that makes a Python object of each value of a frame's index, when somebody
#: first asks for its partitions.
_DIVIDER: Final = "sorted_division_locations"
#: What `da.from_array` and `dd.from_pandas` call their layers.
_FROM_ARRAY, _FROM_PANDAS = "array", "frompandas"
_NAME_ARRAY: Final = """\
import dask.array as da

x = da.from_array(data, chunks="auto", name=False)  # False: a random name"""
_NAME_FRAME: Final = """\
import dask

meta = {name}(ddf.head(10), table).head(0)  # table: the argument that is large
table = dask.delayed(table, traverse=False)
ddf = ddf.map_partitions({name}, table, meta=meta)"""
_NAME_BLOCKS: Final = """\
import dask
import numpy as np

meta = np.empty((0,) * x.ndim, dtype=x.dtype)  # dimensions and type of what it returns
table = dask.delayed(table, traverse=False)  # table: the argument that is large
x = x.map_blocks({name}, table, dtype=meta.dtype, meta=meta)"""
_NAME_CALLS: Final = """\
import dask

result = dask.delayed({name}, pure=False)(data)  # a random name"""


@dataclass(frozen=True)
class Built:
    """Seconds of the blocking account in which a line was built, by step."""

    label: str
    seconds: dict[int, float]

    @property
    def all_s(self) -> float:
        """All steps."""
        return sum(self.seconds.values())

    @property
    def most(self) -> int:
        """The step that took most."""
        return max(self.seconds, key=lambda step: self.seconds[step])


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each line that takes more than a share of the run; else one for all of them."""
    least = limits["share"] * recording.wall
    if recording.stages()["wall_s"][Stage.CONSTRUCTION] < least:
        return
    built = _built(recording)
    alone = [b for b in built if b.all_s >= least]
    if built and not alone and sum(b.all_s for b in built) >= least:
        alone = [max(built, key=lambda b: b.all_s)]
    for each in alone:
        site = Site(recording, recording.crowds.groups, each.label)
        yield _finding(recording, each, site)


def _built(recording: Recording) -> list[Built]:
    """What the caller waited for, by line."""
    texts = recording.store.strings
    found: defaultdict[str, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for start, stop, what, run in recording.path_steps:
        if run < 0 and what.step in _STEPS and texts[what.label]:
            found[texts[what.label]][what.step] += (stop - start) / 1e9
    return [Built(label, dict(seconds)) for label, seconds in found.items()]


def _finding(recording: Recording, built: Built, site: Site) -> Finding:
    saved = _saving(recording, built)
    name = _name(built.most, site)
    did, fix = _did(built.most, name), _fix(built.most, name, site.collection)
    if built.most == _BUILD and _divides(recording, site):
        did, fix = _DIVIDES, Fix(_FROM_INDEX)
    elif built.most == _BUILD and (graphs := site.graphs) >= _MANY:
        did = f"handed {f'`{name}`' if name else 'calls'} over in {graphs:,} graphs"
        fix = Fix(_CALLS, _MAP.format(name=word(name, "function")))
    elif built.most == _TOKENIZE and site.runs.any() and _futures(recording, site):
        fix = Fix(_IMPURE, _SUBMIT.format(name=word(name, "function")))
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"Dask {did}{made_at(site.file, site.line, ', ')}: {of_wall(built.all_s, recording)}"
        ),
        stage=Stage.CONSTRUCTION,
        evidence={
            **{f"{_STEPS[step]}_s": seconds for step, seconds in sorted(built.seconds.items())},
            "layers": site.layers,
            "collection": str(site.collection),
        },
        cost_s=built.all_s,
        saving_s=saved,
        fix=fix,
        where=Where(site.file, site.line, "", site.layer, site.prefix),
        # Building many tasks is a part of what their number costs.
        cause=recording.crowds.cause(built.label)
        if built.most == _BUILD
        else f"built:{built.label}",
    )


def _futures(recording: Recording, site: Site) -> bool:
    return calling(recording, np.flatnonzero(site.runs)).futures


def _saving(recording: Recording, built: Built) -> tuple[float, float]:
    """Without the step that took most; how much of mere building is left nobody knows."""
    texts = recording.store.strings
    change = Change(
        serial=lambda step: float(
            step.what.step != built.most or texts[step.what.label] != built.label
        )
    )
    low, high = recording.replay.saving(change)
    return (0.0 if built.most == _BUILD else low), high


def _name(step: int, site: Site) -> str:
    """What was made or called; names are made first, and what ran may be called otherwise."""
    from_here = site.first in (_FROM_ARRAY, _FROM_PANDAS)
    return site.first if step == _TOKENIZE or (step == _BUILD and from_here) else site.prefix


def _divides(recording: Recording, site: Site) -> bool:
    """Whether most looks at a line saw an index being divided."""
    mine = [
        ({frame.name for frame in stack}, took.seconds)
        for stack, took in recording.flame(Stage.CONSTRUCTION).stacks.items()
        if any((frame.file, frame.line) == (site.file, site.line) for frame in stack)
    ]
    dividing = sum(seconds for names, seconds in mine if _DIVIDER in names)
    return 2 * dividing > sum(seconds for _, seconds in mine)


def _did(step: int, name: str) -> str:
    did = _DID[step]
    if step == _BUILD and name.startswith(_READERS):
        did = _READS
    if step == _BUILD and name in (_FROM_ARRAY, _FROM_PANDAS):
        did = _COPIES
    return did.format(name=f"`{name}`" if name else "a collection")


def _fix(step: int, name: str, collection: Collection) -> Fix:
    if step == _TOKENIZE and name == _FROM_ARRAY:
        return Fix(_TEXT[step], _NAME_ARRAY)
    if step != _META and name in (_FROM_ARRAY, _FROM_PANDAS):
        return Fix(_FROM_HERE)
    files = _FILES if name.startswith(_READERS) else ""
    return Fix(_TEXT[step] + files, _code(step, name, collection))


def _code(step: int, name: str, collection: Collection) -> str:
    if step == _BUILD:
        return one_function(collection)
    if not name and step == _TOKENIZE:  # nothing says what it was
        return ""
    by_kind = {
        (_META, Collection.ARRAY): _META_ARRAY,
        (_META, Collection.FRAME): _META_FRAME,
        (_META, Collection.CALLS): _META_FRAME,
        (_TOKENIZE, Collection.ARRAY): _NAME_BLOCKS,
        (_TOKENIZE, Collection.FRAME): _NAME_FRAME,
        (_TOKENIZE, Collection.CALLS): _NAME_CALLS,
    }
    return by_kind.get((step, collection), "").format(name=word(name, "function"))


RULE = Rule(
    id="graph-construction-slow",
    stage=Stage.CONSTRUCTION,
    summary="Building graphs takes more than a share of the run.",
    find=find,
    ground=Ground.RECORDED,
    limits={"share": Limit(0.05, "of the wall time: less is not worth a change of the program")},
)
