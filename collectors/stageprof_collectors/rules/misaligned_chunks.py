"""Chunks that cut across those of a file, each of which is unpacked once for every piece of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from dask.utils import key_split

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.loading import Loading, loadings
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.inside import inside
from stageprof_collectors.profiles.looks import Share
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.lines import Line
from stageprof_runtime.loaded import STORED
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: To unpack a chunk once instead of several times saves so much of the time of the others, at
#: least: there it is still in the cache of the processor.
LEAST: Final = 0.8
#: Folders of the libraries that unpack.
_LIBRARIES: Final = {"unpacks": ("/h5py/", "/zarr/")}
#: The part of the time of tasks in them that nobody looked at.
_UNSEEN: Final = Share(0.0, 1.0, 1.0)
#: Dimensions of an array that somebody may have; more is no array's.
_DIMENSIONS: Final = 32
_COMPUTE: Final = frozenset({STEP["compute"]})

_TEXT: Final = (
    "Whoever reads a part of a compressed chunk unpacks the whole of it. Ask for pieces that are "
    "whole chunks of the file: with `chunks=` of `da.from_array` or `da.from_zarr`, or with "
    "`chunks={}` of xarray's `open_dataset` and `open_zarr`, which takes the file's own. If "
    "tasks need the pieces that they have now, rechunk what was loaded: each chunk is then "
    "unpacked once. If you write the file yourself, write it in the chunks in which it is read."
)
_CODE: Final = """\
import dask.array as da

# source is the array in the file{stored}
x = da.from_array(source, chunks={chunks})
# only if tasks need the pieces that they have now: x = x.rechunk({asked})"""

Sizes = tuple[int, ...]


class Shapes(NamedTuple):
    """Shapes of an array, of the file's chunks, and of the chunks asked for."""

    whole: Sizes
    stored: Sizes
    asked: Sizes


@dataclass(frozen=True)
class _Cut:
    """An array whose chunks are cut: how often each is unpacked, and the layer's part that this is.

    `waste` is what is unpacked once more, of all that the layer unpacks.
    """

    loading: Loading
    times: float
    waste: float


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each line that asks for chunks which cut across a file's."""
    lines: defaultdict[tuple[Line, str], list[_Cut]] = defaultdict(list)
    for cut in _cuts(recording):
        if cut.times >= limits["times"]:
            line = recording.groups.line_of(cut.loading.by)
            lines[line, "" if line.file else cut.loading.by].append(cut)
    for (line, _), cuts in lines.items():
        yield from _found(recording, line, cuts, limits)


def _cuts(recording: Recording) -> Iterator[_Cut]:
    """All arrays that were loaded from files."""
    found = [loading for loading in loadings(recording) if loading.how == STORED]
    # Each task unpacks a chunk once at most, and of a slice few may have been needed.
    layers = {one.layer: one for one in found}  # a hundred files may be loaded in one
    tasks = {layer: _tasks(recording, one) for layer, one in layers.items()}
    times = [min(one.total / max(1, one.used), tasks[one.layer]) for one in found]
    whole: defaultdict[str, float] = defaultdict(float)
    for one, often in zip(found, times, strict=True):
        whole[one.layer] += max(1, one.used) * often
    for one, often in zip(found, times, strict=True):
        again = max(1, one.used) * max(0.0, often - 1)
        yield _Cut(one, often, min(1.0, again / max(1, whole[one.layer])))


def _tasks(recording: Recording, loading: Loading) -> int:
    """The different tasks that loaded: some may have run again."""
    keys = recording.store.keys(recording.timeline.runs["key"][loading.rows])
    return len(set(keys))


def _found(recording: Recording, line: Line, cuts: list[_Cut], limits: Limits) -> Iterator[Finding]:
    reading = _reading(recording, cuts)
    wastes = _wastes(cuts, reading)
    cost = sum(
        waste.middle * cost_of(recording, steps=_COMPUTE, runs=rows.tolist())
        for rows, waste in wastes
    )
    if cost < limits["share"] * recording.wall:
        return
    low = _saving(recording, [(rows, LEAST * waste.low) for rows, waste in wastes])[0]
    high = _saving(recording, [(rows, waste.high) for rows, waste in wastes])[1]
    saved = min(low, high), high
    main = max(cuts, key=lambda cut: cut.waste * len(cut.loading.rows))
    shapes, layer = shapes_of(main.loading.label), main.loading.layer
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=f"{headline(shapes, main.times, *line)}: {of_wall(cost, recording)}",
        stage=Stage.EXECUTION,
        evidence={
            "times_unpacked": round(main.times, 2),
            "arrays": len({cut.loading.by for cut in cuts}),
            "tasks": sum(len(rows) for rows, _ in wastes),
            "reading_share": reading[layer].middle,
        },
        cost_s=cost,
        saving_s=saved,
        fix=fix(shapes),
        where=Where(line.file, line.line, "", layer, key_split(layer)),
        cause=f"chunks:{main.loading.by}",
    )


def _wastes(cuts: list[_Cut], reading: dict[str, Share]) -> list[tuple[Ints, Share]]:
    """Of each layer its runs, and the part of their time in which chunks are unpacked again."""
    parts: defaultdict[str, float] = defaultdict(float)
    for cut in cuts:
        parts[cut.loading.layer] += cut.waste
    rows = {cut.loading.layer: cut.loading.rows for cut in cuts}
    return [(rows[layer], _part(reading[layer], min(1.0, part))) for layer, part in parts.items()]


def _part(reading: Share, waste: float) -> Share:
    return Share(waste * reading.low, waste * reading.middle, waste * reading.high)


def _reading(recording: Recording, cuts: list[_Cut]) -> dict[str, Share]:
    """Of each layer the part of its time in a library that unpacks; all, if it was not seen."""
    seen = inside(recording, _LIBRARIES).get("unpacks", {})
    layers = {cut.loading.layer for cut in cuts}
    return {layer: seen.get(key_split(layer), _UNSEEN) for layer in layers}


def _saving(recording: Recording, parts: list[tuple[Ints, float]]) -> tuple[float, float]:
    """Seconds saved if these parts of the time of some runs were gone."""
    compute = np.ones(len(recording.timeline.runs["run"]))
    for rows, part in parts:
        compute[rows] = 1 - part
    return recording.replay.saving(Change(compute=compute))


# -- shapes -------------------------------------------------------------------------------------


def shapes_of(label: str) -> Shapes | None:
    """What the label says, unless it was left out or makes no sense."""
    parts = [part.split("x") for part in label.split(" ")]
    if len(parts) != 3 or len({len(part) for part in parts}) != 1 or len(parts[0]) > _DIMENSIONS:
        return None
    if not all(n.isascii() and n.isdecimal() and len(n) < 19 for part in parts for n in part):
        return None
    shapes = Shapes(*(tuple(map(int, part)) for part in parts))
    return shapes if all(min(shape) > 0 for shape in shapes) else None


def aligned(shapes: Shapes) -> Sizes:
    """Pieces of whole chunks of the file, of about as many elements as those asked for.

    Each is rounded up to whole chunks; then those that span most chunks are halved.
    """
    whole, stored, asked = shapes
    most = max(math.prod(asked), math.prod(stored))
    chunks = [-(-n // size) for n, size in zip(asked, stored, strict=True)]
    while math.prod(map(int.__mul__, chunks, stored)) > most and max(chunks) > 1:
        longest = chunks.index(max(chunks))
        chunks[longest] = -(-chunks[longest] // 2)
    return tuple(min(n * size, end) for n, size, end in zip(chunks, stored, whole, strict=True))


def headline(shapes: Shapes | None, times: float, file: str, line: int) -> str:
    """What cuts across what, and how often each chunk of the file is unpacked for it."""
    made = made_at(file, line)
    return f"{_cut(shapes, made)}, each of which is unpacked {times:,.{times < 9.95:d}f} times"


def _cut(shapes: Shapes | None, made: str) -> str:
    if shapes is None:
        return f"The chunks{made} cut across those of the file"
    asked, stored = (" x ".join(f"{n:,}" for n in shape) for shape in (shapes.asked, shapes.stored))
    return f"Chunks of {asked}{made} cut across the file's of {stored}"


def fix(shapes: Shapes | None) -> Fix:
    """What to ask for instead."""
    if shapes is None:
        code = _CODE.format(stored="", chunks="source.chunks", asked="chunks")
    else:
        stored = f", whose chunks are {' x '.join(map(str, shapes.stored))}"
        code = _CODE.format(stored=stored, chunks=aligned(shapes), asked=shapes.asked)
    return Fix(_TEXT, code)


RULE = Rule(
    id="misaligned-chunks",
    stage=Stage.EXECUTION,
    summary="Chunks cut across those of a compressed file, which is unpacked several times.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "times": Limit(1.5, "as many elements unpacked as loaded: below, little is gained"),
        "share": Limit(0.03, "of the wall time in it: less is not worth a change"),
    },
)
