"""What of an array's source is loaded and not used, by the layers of a graph.

A slice right above the layer that loads: whole chunks are loaded, whatever is sliced (but of
`from_array`, whose tasks Dask has load the slice). And chunks that cut across those of a file,
which keeps them compressed: whoever reads a part of one unpacks the whole of it. Of a file's array
only what is known without reading is asked for, and of h5py's while no thread reads; that of a
netCDF file is not asked at all, for its library allows nobody else meanwhile and does not say.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from stageprof_runtime.chains import Layers, layers_of, pieces

#: Tasks of a slice that are looked at: of more the chunks are taken to be alike.
TASKS: Final = 10_000
#: Arrays of fewer bytes in a file are read in no time.
LEAST: Final = 1_000_000
#: Wrappers of xarray's around an array in a file, at most: for lazy slices, scales, missing values.
WRAPPED: Final = 12

#: Kinds of rows: parts of chunks are loaded for nothing, or chunks cut across those of a file.
SLICE, STORED = "slice", "stored"


class Unused(NamedTuple):
    """A row of UNUSED without its time."""

    name: str
    how: str
    label: str
    variable: str
    used: int
    total: int


def of_layers(graph: Any) -> Iterator[Unused]:
    """What a high level graph loads and does not use."""
    known = layers_of(graph)
    for name in known.layers:
        if type(name) is str:
            yield from _of_layer(known, name)


def _of_layer(known: Layers, name: str) -> Iterator[Unused]:
    try:
        layer, needed = known.layers[name], known.needs[name]
        if name.startswith("getitem-") and len(needed) == 1:
            (source,) = needed
            alone = len(known.users[source]) == 1 and known.loads(source)
            if alone and not _pushed(layer, known.layers[source]):
                yield from _of_slice(known, name, source)
        elif type(layer).__name__ == "Blockwise" and known.loads(name):
            yield from _of_file(known, name, layer)
    except Exception:  # sizes that are not known yet, or an array in a file that is closed
        return


def _pushed(layer: Any, source: Any) -> bool:
    """Whether Dask has the tasks of a source load no more than a slice above it."""
    inputs = getattr(source, "io_deps", None) or {}
    if not any(type(each).__name__ == "ArraySliceDep" for each in inputs.values()):
        return False
    if getattr(source.task.func, "__name__", "") == "getter_nofancy":
        return False
    task = next(task for task in layer.mapping.values() if hasattr(task, "args"))
    index = task.args[1]  # of a list of numbers it is where these are
    return type(index) is tuple and all(map(_is_forward, index))


def _is_forward(part: object) -> bool:
    return type(part) is int or (type(part) is slice and (part.step or 1) > 0)


def _whole(known: Layers, name: str) -> bool:
    """Whether all chunks of a layer are needed, as far as the layers right above it tell."""
    users = [known.layers[user] for user in known.users.get(name, [])]
    return not users or not all(_cuts(user, known.layers[name]) for user in users)


def _cuts(user: Any, layer: Any) -> bool:
    """Whether it takes some chunks of a layer only, one for each of its own."""
    if not 0 < pieces(user) < pieces(layer) or type(user).__name__ == "Blockwise":
        return False
    first = next(iter(user.mapping.values()))
    is_key = type(first) is tuple and type(first[0]) is str
    return is_key or len(getattr(first, "dependencies", ())) == 1


def _of_slice(known: Layers, name: str, source: str) -> Iterator[Unused]:
    kept, loaded = (known.layers[one].collection_annotations for one in (name, source))
    count, total = math.prod(kept["shape"]), _needed(known.layers[name], source, loaded["chunks"])
    if total < 0:
        taken, whole = pieces(known.layers[name]), pieces(known.layers[source])
        total = int(math.prod(loaded["shape"]) * taken / whole)
    if 0 < count < total:
        for ran in known.fused(name):
            yield Unused(ran, SLICE, "", source, int(count), total)


def _needed(layer: Any, source: str, chunks: tuple[tuple[int, ...], ...]) -> int:
    """Elements in the chunks of a source that a slice needs; -1 if they are too many to look at."""
    numbers: list[set[int]] = [set() for _ in chunks]
    if len(layer.mapping) > TASKS:
        return -1
    for task in layer.mapping.values():
        for key in getattr(task, "dependencies", ()):
            if key[0] == source:
                for needed, number in zip(numbers, key[1:], strict=True):
                    needed.add(number)
    if not all(numbers):
        return -1
    return math.prod(sum(map(each.__getitem__, n)) for each, n in zip(chunks, numbers, strict=True))


# -- files --------------------------------------------------------------------------------------


class Stored(NamedTuple):
    """An array in a file, which keeps it in compressed chunks."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    itemsize: int
    #: bytes of unpacked chunks that its library keeps
    cache: int = 0


def _of_file(known: Layers, name: str, layer: Any) -> Iterator[Unused]:
    found = next(filter(None, map(stored, _sources(known, name, layer))), None)
    if found is None:
        return
    chunks, count = layer.collection_annotations["chunks"], math.prod(found.shape)
    if count * found.itemsize < LEAST or found.shape != tuple(map(sum, chunks)):
        return  # of a part of it the pieces begin anywhere in a chunk
    fused = list(known.fused(name))
    if not _whole(known, fused[-1]):
        return  # how many times those are unpacked that are needed nobody has worked out
    asked = tuple(map(max, chunks))
    total = count if _kept(found, chunks) else math.prod(map(_unpacked, chunks, found.chunks))
    label = " ".join("x".join(map(str, each)) for each in (found.shape, found.chunks, asked))
    for ran in fused:
        yield Unused(ran, STORED, label, name, count, total)


def _sources(known: Layers, name: str, layer: Any) -> Iterator[Any]:
    """What a layer loads from: the one value of the layer that it needs, or within it."""
    for other in known.needs[name]:
        mapping = getattr(known.layers[other], "mapping", None)
        if type(mapping) is dict and len(mapping) == 1:
            (value,) = mapping.values()
            yield value.value if type(value).__name__ == "DataNode" else value
    for value, index in layer.indices:
        if index is None:
            yield value


def stored(source: Any) -> Stored | None:
    """What is known of an array in a file without reading; None if it is none that is known.

    Known are arrays of zarr and h5py, and those of zarr in wrappers of xarray's.
    """
    for _ in range(WRAPPED):
        if type(source).__module__.partition(".")[0] != "xarray":
            break
        if any(part != slice(None) for part in getattr(getattr(source, "key", None), "tuple", ())):
            return None  # a part of it, or its dimensions in another order
        source = getattr(source, "array", getattr(source, "_array", None))
    if _is(source, "zarr", "Array"):
        return _of_zarr(source)
    return _of_h5py(source) if _is(source, "h5py", "Dataset") else None


def _is(source: Any, library: str, name: str) -> bool:
    return type(source) is getattr(sys.modules.get(library), name, None)


def _of_zarr(source: Any) -> Stored | None:
    # Before 3.0 an array has one compressor at most.
    packed = source.compressors if hasattr(source, "compressors") else source.compressor
    return Stored(*_shapes(source), source.dtype.itemsize) if packed else None


def _of_h5py(source: Any) -> Stored | None:
    """Unless a thread is at a file: h5py lets nobody else ask while it reads."""
    lock = getattr(sys.modules.get("h5py._objects"), "phil", None)
    if lock is None or not lock.acquire(blocking=False):
        return None
    try:
        if not source.chunks or not source.id.get_create_plist().get_nfilters():
            return None
        cache = source.id.get_access_plist().get_chunk_cache()[1]
        return Stored(*_shapes(source), source.dtype.itemsize, int(cache))
    finally:
        lock.release()


def _shapes(source: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(map(int, source.shape)), tuple(map(int, source.chunks))


def _unpacked(sizes: tuple[int, ...], stored: int) -> int:
    """Elements along a dimension of what is unpacked to load pieces of these sizes."""
    total, start, end = 0, 0, sum(sizes)
    for size in sizes:
        stop = start + size
        if size:
            total += min(end, -(-stop // stored) * stored) - start // stored * stored
        start = stop
    return total


def _kept(found: Stored, chunks: tuple[tuple[int, ...], ...]) -> bool:
    """Whether a chunk that was cut is still in the library's cache when its next part is read.

    Pieces are read in the order of their numbers: from one part of a chunk to the next all pieces
    are in between that lie along the dimensions after the one that is cut.
    """
    cut = (_unpacked(*each) > sum(each[0]) for each in zip(chunks, found.chunks, strict=True))
    first = next((i for i, is_cut in enumerate(cut) if is_cut), None)
    if first is None:
        return True
    before = math.prod(map(max, chunks[:first]))
    after = math.prod(found.shape[first + 1 :])
    return before * found.chunks[first] * after * found.itemsize <= found.cache
