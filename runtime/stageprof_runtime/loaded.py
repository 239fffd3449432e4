"""What of an array's source is loaded and not used, by the layers of a graph.

A slice right above the layer that loads: whole chunks are loaded, whatever is sliced (but of
`from_array`, whose tasks Dask has load the slice). And chunks that cut across those of a file,
which keeps them compressed: whoever reads a part of one unpacks the whole of it. Of a file's array
only what is known without reading is asked for; that of a netCDF file is not asked at all, for its
library allows nobody else while a thread reads.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

#: Layers looked at in one graph: some 2 us each.
MOST: Final = 3_000
#: Layers that are followed from one that loads: Dask may fuse them with it.
FUSED: Final = 20
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


class _Layers(NamedTuple):
    """A graph's layers, and who needs whom."""

    layers: dict[str, Any]
    needs: dict[str, Any]
    users: dict[str, list[str]]


def of_layers(graph: Any) -> Iterator[Unused]:
    """What a high level graph loads and does not use."""
    layers, needs = getattr(graph, "layers", None), getattr(graph, "dependencies", None)
    if type(layers) is not dict or type(needs) is not dict or len(layers) > MOST:
        return
    users: dict[str, list[str]] = {}
    for user, names in needs.items():
        for name in names:
            users.setdefault(name, []).append(user)
    known = _Layers(layers, needs, users)
    for name in layers:
        if type(name) is str:
            yield from _of_layer(known, name)


def _of_layer(known: _Layers, name: str) -> Iterator[Unused]:
    layer, needed = known.layers[name], known.needs[name]
    try:
        if name.startswith("getitem-") and len(needed) == 1:
            (source,) = needed
            alone = len(known.users[source]) == 1 and _loads(source, known.needs)
            if alone and not _slices(known.layers[source]):
                yield from _of_slice(known, name, source)
        elif type(layer).__name__ == "Blockwise" and _loads(name, known.needs):
            yield from _of_file(known, name, layer)
    except Exception:  # sizes that are not known yet, or an array in a file that is closed
        return


def _loads(name: str, needs: dict[str, Any]) -> bool:
    """Whether a layer needs nothing, or only what needs nothing."""
    return all(not needs[other] for other in needs[name])


def _slices(layer: Any) -> bool:
    """Whether its tasks take slices of a source: then they take those of a slice above, too."""
    inputs = getattr(layer, "io_deps", None) or {}
    return any(type(each).__name__ == "ArraySliceDep" for each in inputs.values())


def _fused(known: _Layers, name: str) -> Iterator[str]:
    """A layer and those that Dask may fuse it with: tasks have the name of the last of them."""
    pieces = _pieces(known.layers[name])
    for _ in range(FUSED):
        yield name
        users = known.users.get(name, [])
        if len(users) != 1 or _pieces(known.layers[users[0]]) != pieces:
            return
        name = users[0]


def _pieces(layer: Any) -> int:
    """How many chunks a layer makes; 0 if that is not known."""
    facts = getattr(layer, "collection_annotations", None)
    return math.prod(map(len, facts["chunks"])) if type(facts) is dict and "chunks" in facts else 0


def _needed(known: _Layers, name: str) -> int:
    """How many chunks of a layer are needed at most: a slice above it may need few."""
    pieces = _pieces(known.layers[name])
    for _ in range(FUSED):
        users = known.users.get(name, [])
        if len(users) != 1:
            break
        name, own = users[0], _pieces(known.layers[users[0]])
        if name.startswith("getitem-") and own:
            pieces = min(pieces, own)
        elif own != pieces:
            break
    return pieces


def _of_slice(known: _Layers, name: str, source: str) -> Iterator[Unused]:
    kept, loaded = (known.layers[one].collection_annotations for one in (name, source))
    count = math.prod(kept["shape"])
    pieces, whole = _pieces(known.layers[name]), _pieces(known.layers[source])
    total = int(math.prod(loaded["shape"]) * pieces / whole)
    if 0 < count < total:
        for ran in _fused(known, name):
            yield Unused(ran, SLICE, "", source, int(count), total)


# -- files --------------------------------------------------------------------------------------


def _of_file(known: _Layers, name: str, layer: Any) -> Iterator[Unused]:
    found = next(filter(None, map(stored, _sources(known, name, layer))), None)
    if found is None:
        return
    (shape, sizes), chunks = found, layer.collection_annotations["chunks"]
    if shape != tuple(map(sum, chunks)):
        return  # a part of it only, whose pieces begin anywhere in a chunk
    count = math.prod(shape)
    # Each task that is needed unpacks a chunk once at most.
    total = min(math.prod(map(_unpacked, chunks, sizes)), count * _needed(known, name))
    if 0 < count < total:
        asked = tuple(map(max, chunks))
        label = " ".join("x".join(map(str, each)) for each in (shape, sizes, asked))
        for ran in _fused(known, name):
            yield Unused(ran, STORED, label, name, count, total)


def _sources(known: _Layers, name: str, layer: Any) -> Iterator[Any]:
    """What a layer loads from: the one value of the layer that it needs, or within it."""
    for other in known.needs[name]:
        mapping = getattr(known.layers[other], "mapping", None)
        if type(mapping) is dict and len(mapping) == 1:
            (value,) = mapping.values()
            yield value.value if type(value).__name__ == "DataNode" else value
    for value, index in layer.indices:
        if index is None:
            yield value


def stored(source: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The shape of an array in a file, and that of its compressed chunks; None if it has none.

    Known are arrays of zarr and h5py, and those of zarr in wrappers of xarray's.
    """
    for _ in range(WRAPPED):
        if type(source).__module__.partition(".")[0] != "xarray":
            break
        source = getattr(source, "array", getattr(source, "_array", None))
    if _is(source, "zarr", "Array") or (_is(source, "h5py", "Dataset") and _packed(source)):
        shape, chunks = tuple(map(int, source.shape)), tuple(map(int, source.chunks))
        return (shape, chunks) if chunks and min(chunks) > 0 else None
    return None


def _is(source: Any, library: str, name: str) -> bool:
    return type(source) is getattr(sys.modules.get(library), name, None)


def _packed(dataset: Any) -> bool:
    return bool(dataset.chunks) and dataset.id.get_create_plist().get_nfilters() > 0


def _unpacked(sizes: tuple[int, ...], stored: int) -> int:
    """Elements along a dimension of what is unpacked to load pieces of these sizes."""
    total, start, end = 0, 0, sum(sizes)
    for size in sizes:
        stop = start + size
        if size:
            total += min(end, -(-stop // stored) * stored) - start // stored * stored
        start = stop
    return total
